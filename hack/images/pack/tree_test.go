// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func tree() Tree {
	return Tree{
		Files:       map[string][]byte{"/usr/bin/tool": []byte("tool"), "/etc/config": []byte("a: b\n")},
		Executables: map[string]bool{"/usr/bin/tool": true},
		Links:       map[string]string{"/bin": "usr/bin", "/usr/bin/alias": "tool"},
		Open:        []string{"/tmp"},
	}
}

func TestALayerListsFoldersBeforeTheirFiles(t *testing.T) {
	g := NewWithT(t)
	created := time.Unix(1_700_000_000, 0)

	raw, err := tree().Tar(created)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tree().Tar(created)).To(Equal(raw), "packing is deterministic")
	var names []string
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		names = append(names, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname)
	}
	g.Expect(names).To(Equal([]string{
		"Lrwxrwxrwx bin usr/bin", "drwxr-xr-x etc/ ", "-rw-r--r-- etc/config ", "dtrwxrwxrwx tmp/ ", "drwxr-xr-x usr/ ",
		"drwxr-xr-x usr/bin/ ", "Lrwxrwxrwx usr/bin/alias tool", "-rwxr-xr-x usr/bin/tool ",
	}))
}

func TestATreeIsWrittenToAFolder(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	g.Expect(tree().Write(folder)).To(Succeed())

	g.Expect(os.ReadFile(filepath.Join(folder, "bin/alias"))).To(BeEquivalentTo("tool"), "through both links")
	info, err := os.Stat(filepath.Join(folder, "usr/bin/tool"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o755))
}

func TestAnImageHasAnEntrypointAndAUser(t *testing.T) {
	g := NewWithT(t)

	image, err := Image{
		Name:       "tool",
		Arch:       "arm64",
		User:       "1:2",
		Path:       "/usr/bin",
		CreatedBy:  "a test",
		Entrypoint: []string{"/usr/bin/tool"},
		Ports:      []string{"80/tcp"},
		Layers:     []Tree{tree()},
	}.Pack()

	g.Expect(err).NotTo(HaveOccurred())
	config, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Architecture).To(Equal("arm64"))
	g.Expect(config.Config.User).To(Equal("1:2"))
	g.Expect(config.Config.Env).To(Equal([]string{"PATH=/usr/bin"}))
	g.Expect(config.Config.ExposedPorts).To(HaveKey("80/tcp"))
	g.Expect(config.RootFS.DiffIDs).To(HaveLen(1))
}

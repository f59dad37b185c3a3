// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An Entry is an image or an index of images, and its name in an archive.
type Entry struct {
	Image     mutate.Appendable
	Reference string // with registry and tag
	Tag       string
}

// Archive writes the entries as an OCI layout in a tar file. Readers without a name take the entry of an archive with a
// single entry.
func Archive(file string, created time.Time, entries ...Entry) (rerr error) {
	folder, err := os.MkdirTemp("", "images-*")
	if err != nil {
		return fmt.Errorf("making a folder for an image: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	top := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, e := range entries {
		top = mutate.AppendManifests(top, mutate.IndexAddendum{
			Add: e.Image,
			Descriptor: v1.Descriptor{Annotations: map[string]string{
				"org.opencontainers.image.ref.name": e.Tag,
				"io.containerd.image.name":          e.Reference,
			}},
		})
	}
	if _, err := layout.Write(folder, top); err != nil {
		return fmt.Errorf("laying out %s: %w", file, err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	defer func() { rerr = errors.Join(rerr, out.Close()) }()
	if err := tarFolder(out, folder, created.UTC()); err != nil {
		return fmt.Errorf("writing %s: %w", out.Name(), err)
	}
	return nil
}

// tarFolder writes the files in a folder, sorted by name.
func tarFolder(out io.Writer, folder string, created time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{
			Name:    filepath.ToSlash(name),
			Mode:    0o644,
			Size:    int64(len(content)),
			ModTime: created,
		}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close())
}

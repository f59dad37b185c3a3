// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// The code below reads archives according to the OCI specification with Go's standard library alone. So it does not
// repeat mistakes of the library that writes them.

type descriptor struct {
	MediaType    string
	ArtifactType string
	Digest       string
	Size         int
	Annotations  map[string]string
	Platform     struct{ OS, Architecture string }
}

type manifest struct {
	SchemaVersion int
	MediaType     string
	ArtifactType  string
	Config        descriptor
	Layers        []descriptor
	Manifests     []descriptor
	Subject       *descriptor
	Annotations   map[string]string
}

type config struct {
	Created, Architecture, OS string
	Config                    struct {
		User, WorkingDir     string
		Entrypoint, Cmd, Env []string
		Labels               map[string]string
		ExposedPorts         map[string]struct{}
	}
	RootFS struct {
		Type    string
		DiffIDs []string `json:"diff_ids"`
	}
	History []struct{ Created string }
}

// An entry is a file or folder of an image.
type entry struct {
	header  *tar.Header
	content []byte
}

// An opened image is an image of an archive, with its files and configuration at run time.
type opened struct {
	arch   string
	config config
	files  map[string]entry // by absolute path
	sbom   []byte
}

// A layoutTar is an archive that was read. used are the referenced blobs.
type layoutTar struct {
	g     *WithT
	files map[string][]byte
	used  map[string]bool
}

func readArchive(g *WithT, file string) *layoutTar {
	raw, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	l := &layoutTar{g: g, files: map[string][]byte{}, used: map[string]bool{}}
	for name, e := range untar(g, raw) {
		l.files[name[1:]] = e.content
	}
	return l
}

// untar reads a tar file to its end, which a truncated file does not have.
func untar(g *WithT, raw []byte) map[string]entry {
	g.Expect(bytes.HasSuffix(raw, make([]byte, 1024))).To(BeTrue(), "two empty blocks end a tar file")
	found := map[string]entry{}
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		name := path.Join("/", h.Name)
		g.Expect(found).NotTo(HaveKey(name), "twice in one tar file")
		found[name] = entry{h, content}
	}
}

// blob returns the content of a descriptor, after verifying it.
func (l *layoutTar) blob(d descriptor) []byte {
	name := path.Join("blobs", "sha256", d.Digest[len("sha256:"):])
	l.used[name] = true
	content, ok := l.files[name]
	l.g.Expect(ok).To(BeTrue(), name)
	l.g.Expect(content).To(HaveLen(d.Size), name)
	l.g.Expect(digest(content)).To(Equal(d.Digest))
	return content
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func into[T any](g *WithT, raw []byte) T {
	var v T
	g.Expect(json.Unmarshal(raw, &v)).To(Succeed())
	return v
}

// top returns the only entry of the layout, and its index.
func (l *layoutTar) top() (descriptor, manifest) {
	l.g.Expect(string(l.files["oci-layout"])).To(MatchJSON(`{"imageLayoutVersion": "1.0.0"}`))
	top := into[manifest](l.g, l.files["index.json"])
	l.g.Expect(top.Manifests).To(HaveLen(1), "readers without a name take the only entry")
	l.g.Expect(top.Manifests[0].MediaType).To(Equal("application/vnd.oci.image.index.v1+json"))
	index := into[manifest](l.g, l.blob(top.Manifests[0]))
	l.g.Expect(index.MediaType).To(Equal(top.Manifests[0].MediaType))
	l.g.Expect([]int{top.SchemaVersion, index.SchemaVersion}).To(Equal([]int{2, 2}))
	return top.Manifests[0], index
}

// images opens every image with its bill of materials, in the order of the index. It checks that the archive has no
// other blobs.
func (l *layoutTar) images() []opened {
	_, index := l.top()
	bills := map[string][]byte{}
	var images []opened
	for _, d := range index.Manifests {
		if d.Annotations["vnd.docker.reference.type"] == "attestation-manifest" {
			subject, bill := l.bill(d)
			bills[subject] = bill
		}
	}
	for _, d := range index.Manifests {
		if d.Platform.OS == "linux" {
			image := l.image(d)
			image.sbom = bills[d.Digest]
			images = append(images, image)
		}
	}
	l.g.Expect(bills).To(HaveLen(len(images)))
	l.g.Expect(index.Manifests).To(HaveLen(2 * len(images)))
	for name := range l.files {
		l.g.Expect(name == "oci-layout" || name == "index.json" || l.used[name]).To(BeTrue(), "nothing refers to %s",
			name)
	}
	return images
}

// bill opens an artifact and returns the digest of its subject image.
func (l *layoutTar) bill(d descriptor) (string, []byte) {
	m := into[manifest](l.g, l.blob(d))
	l.g.Expect([]string{d.Platform.OS, d.Platform.Architecture}).To(Equal([]string{"unknown", "unknown"}))
	l.g.Expect([]string{
		d.ArtifactType, m.ArtifactType,
		m.Layers[0].MediaType,
	}).To(HaveEach("application/vnd.cyclonedx+json"))
	l.g.Expect(m.Config.MediaType).To(Equal("application/vnd.oci.empty.v1+json"))
	l.g.Expect(string(l.blob(m.Config))).To(Equal("{}"))
	l.g.Expect(m.Layers).To(HaveLen(1))
	l.g.Expect(m.Subject).NotTo(BeNil())
	l.blob(*m.Subject)
	l.g.Expect(d.Annotations).To(HaveKeyWithValue("vnd.docker.reference.digest", m.Subject.Digest))
	return m.Subject.Digest, l.blob(m.Layers[0])
}

// image opens an image and merges its layers.
func (l *layoutTar) image(d descriptor) opened {
	g := l.g
	m := into[manifest](g, l.blob(d))
	g.Expect([]string{d.MediaType, m.MediaType}).To(HaveEach("application/vnd.oci.image.manifest.v1+json"))
	g.Expect([]string{d.ArtifactType, m.ArtifactType}).To(HaveEach(""), "an image is not an artifact")
	g.Expect(m.Config.MediaType).To(Equal("application/vnd.oci.image.config.v1+json"))
	c := into[config](g, l.blob(m.Config))
	g.Expect([]string{c.OS, c.Architecture}).To(Equal([]string{d.Platform.OS, d.Platform.Architecture}))
	g.Expect(c.RootFS.Type).To(Equal("layers"))
	g.Expect(c.RootFS.DiffIDs).To(HaveLen(len(m.Layers)))
	g.Expect(c.History).To(HaveLen(len(m.Layers)))
	files := map[string]entry{}
	for i, layer := range m.Layers {
		g.Expect(layer.MediaType).To(Equal("application/vnd.oci.image.layer.v1.tar+gzip"))
		zipped, err := gzip.NewReader(bytes.NewReader(l.blob(layer)))
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := io.ReadAll(zipped)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(digest(raw)).To(Equal(c.RootFS.DiffIDs[i]))
		for name, e := range untar(g, raw) {
			files[name] = e
		}
	}
	return opened{arch: c.Architecture, config: c, files: files}
}

// extract writes a file of an image, to run it.
func (o opened) extract(t *testing.T, name string) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), path.Base(name))
	NewWithT(t).Expect(os.WriteFile(place, o.files[name].content, 0o755)).To(Succeed())
	return place
}

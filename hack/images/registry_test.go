// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

// TestARegistryListsTheSBOMs pushes an archive to a registry, and requests the referrers of the image.
func TestARegistryListsTheSBOMs(t *testing.T) {
	g := NewWithT(t)
	b, err := built()
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	archive := readArchive(g, filepath.Join(b.out, "cpi-crs-airgapped.tar"))
	for file, content := range archive.files {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, file), content, 0o644)).To(Succeed())
	}
	top, index := archive.top()
	images, err := layout.ImageIndexFromPath(folder)
	g.Expect(err).NotTo(HaveOccurred())
	digest, err := v1.NewHash(top.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	image, err := images.ImageIndex(digest)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	tag, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/site/cpi-crs-airgapped:"+testVersion,
		name.Insecure)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(remote.WriteIndex(tag, image)).To(Succeed())

	pushed, err := remote.Head(tag)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pushed.Digest.String()).To(Equal(top.Digest))
	for _, bill := range index.Manifests[strings.Count(*archs, ",")+1:] {
		answer, err := http.Get(server.URL + "/v2/site/cpi-crs-airgapped/referrers/" +
			bill.Annotations["vnd.docker.reference.digest"])
		g.Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(answer.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Body.Close()).To(Succeed())
		g.Expect(into[manifest](g, body).Manifests).To(ConsistOf(HaveField("Digest", bill.Digest)), string(body))
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A content is one image for one architecture, before it is packed.
type content struct {
	title, description      string
	arch                    string
	layers                  []tree
	entrypoint, args, ports []string
	sbom                    []byte
}

// pack makes the image.
func (b build) pack(c content) (v1.Image, error) {
	ports := map[string]struct{}{}
	for _, port := range c.ports {
		ports[port] = struct{}{}
	}
	created := v1.Time{Time: b.created.UTC()}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), &v1.ConfigFile{
		Architecture: c.arch, OS: "linux", Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, Entrypoint: c.entrypoint, Cmd: c.args, ExposedPorts: ports, WorkingDir: "/",
			Env: []string{"PATH=/"}, Labels: b.labels(c.title, c.description),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", c.title, err)
	}
	for _, t := range c.layers {
		raw, err := t.tar(b.created.UTC())
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(raw)),
				nil
		},
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("packing a layer of %s: %w", c.title, err)
		}
		if image, err = mutate.Append(image,
			mutate.Addendum{
				Layer:   layer,
				History: v1.History{Created: created, CreatedBy: "make images"},
			}); err != nil {
			return nil, fmt.Errorf("adding a layer to %s: %w", c.title, err)
		}
	}
	return runnable{image}, nil
}

// A runnable is an image that the index calls no artifact: to the library everything with a configuration is one.
type runnable struct{ v1.Image }

func (runnable) ArtifactType() (string, error) { return "", nil }

// index gathers the images of all architectures and, for each, its bill of materials. The bills are in the index,
// marked as builders mark attestations, so that whatever copies the image copies them too and nothing takes them for an
// image; they name their image as subject, so that a registry lists them as its referrers.
func (b build) index(contents []content) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []mutate.IndexAddendum
	for _, c := range contents {
		image, err := b.pack(c)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: c.arch}},
		})
		bill, err := billOf(image, c.sbom)
		if err != nil {
			return nil, err
		}
		bills = append(bills, bill)
	}
	return mutate.AppendManifests(index, bills...), nil
}

// emptyJSON is the configuration of what is no image, as OCI has it.
var emptyJSON = []byte("{}")

const emptyType types.MediaType = "application/vnd.oci.empty.v1+json"

// A bill is an artifact: a manifest with one blob, about another manifest.
type bill struct {
	manifest []byte
	blob     v1.Layer
}

func (bill) MediaType() (types.MediaType, error)                      { return types.OCIManifestSchema1, nil }
func (bill) RawConfigFile() ([]byte, error)                           { return emptyJSON, nil }
func (b bill) RawManifest() ([]byte, error)                           { return b.manifest, nil }
func (b bill) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return b.blob, nil }

func billOf(image v1.Image, sbom []byte) (mutate.IndexAddendum, error) {
	var none mutate.IndexAddendum
	subject, err := partial.Descriptor(image)
	if err != nil {
		return none, fmt.Errorf("naming an image: %w", err)
	}
	blob := static.NewLayer(sbom, sbomType)
	layer, err := partial.Descriptor(blob)
	if err != nil {
		return none, fmt.Errorf("naming a bill of materials: %w", err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(emptyJSON))
	if err != nil {
		return none, fmt.Errorf("naming an empty configuration: %w", err)
	}
	raw, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: sbomType,
		Config: v1.Descriptor{MediaType: emptyType, Digest: digest, Size: size}, Layers: []v1.Descriptor{*layer},
		Subject: subject,
	})
	if err != nil {
		return none, fmt.Errorf("writing a bill's manifest: %w", err)
	}
	artifact, err := partial.CompressedToImage(bill{raw, blob})
	if err != nil {
		return none, fmt.Errorf("packing a bill of materials: %w", err)
	}
	return mutate.IndexAddendum{Add: artifact, Descriptor: v1.Descriptor{
		MediaType: types.OCIManifestSchema1, ArtifactType: sbomType,
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
		Annotations: map[string]string{
			"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": subject.Digest.String(),
		},
	}}, nil
}

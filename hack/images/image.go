// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

// A content is the content of one image for one architecture.
type content struct {
	title, description      string
	arch                    string
	layers                  []pack.Tree
	entrypoint, args, ports []string
	sbom                    []byte
}

// pack packs an image.
func (b build) pack(c content) (v1.Image, error) {
	return pack.Image{
		Name:       c.title,
		Arch:       c.arch,
		User:       user,
		Path:       "/",
		CreatedBy:  "make images",
		Created:    b.created,
		Labels:     b.labels(c.title, c.description),
		Entrypoint: c.entrypoint,
		Args:       c.args,
		Ports:      c.ports,
		Layers:     c.layers,
	}.Pack()
}

// index returns an index of the images of all architectures and their SBOMs. The SBOMs are in the index and are marked
// like attestations of image builders. Therefore tools that copy the image copy them too, and no tool treats them as an
// image. Each SBOM names its image as the subject, so that registries list it as a referrer of the image.
func (b build) index(contents []content) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []mutate.IndexAddendum
	for _, c := range contents {
		image, err := b.pack(c)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: c.arch}},
		})
		bill, err := billOf(image, c.sbom)
		if err != nil {
			return nil, err
		}
		bills = append(bills, bill)
	}
	return mutate.AppendManifests(index, bills...), nil
}

// emptyJSON is OCI's configuration of artifacts that are not images.
var emptyJSON = []byte("{}")

const emptyType types.MediaType = "application/vnd.oci.empty.v1+json"

// A bill is an SBOM as an artifact: a manifest with one blob, which refers to another manifest.
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
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  sbomType,
		Config:        v1.Descriptor{MediaType: emptyType, Digest: digest, Size: size},
		Layers:        []v1.Descriptor{*layer},
		Subject:       subject,
	})
	if err != nil {
		return none, fmt.Errorf("writing a bill's manifest: %w", err)
	}
	artifact, err := partial.CompressedToImage(bill{raw, blob})
	if err != nil {
		return none, fmt.Errorf("packing a bill of materials: %w", err)
	}
	return mutate.IndexAddendum{
		Add: artifact,
		Descriptor: v1.Descriptor{
			MediaType:    types.OCIManifestSchema1,
			ArtifactType: sbomType,
			Platform:     &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{
				"vnd.docker.reference.type":   "attestation-manifest",
				"vnd.docker.reference.digest": subject.Digest.String(),
			},
		},
	}, nil
}

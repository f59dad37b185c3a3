// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

// The carrier image brings the manifests of a cloud controller manager into a site without internet access. Its name,
// its folder, its file names and the word that is replaced by the site's registry are those that the container service
// extension expects.
const (
	carrierName   = "cpi-crs-airgapped"
	carrierFolder = "/src/artifact"
	templateFile  = "cloud-director-ccm-crs-airgap.yaml.template"
	registryWord  = "__REGISTRY__"
	// carriedImage is the image in the site's registry that the manifest refers to.
	carriedImage = "cloud-provider-for-cloud-director"
)

// A partsList is the carrier's bom.json.
type partsList struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Components parts  `json:"components"`
}

type parts struct {
	Manifests    []manifestPart `json:"manifests"`
	Binaries     []string       `json:"binaries"`
	Dependencies []imagePart    `json:"dependencies"`
}

type manifestPart struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type imagePart struct {
	Name            string `json:"name"`
	Version         string `json:"version"`
	ImageRepository string `json:"imageRepository"`
}

// carrier returns the image with the manifests. It runs nothing. It has an entrypoint because some tools copy files out
// of a container, and cannot create a container without an entrypoint.
func (b build) carrier(ctx context.Context) ([]content, error) {
	template, err := b.template(ctx)
	if err != nil {
		return nil, err
	}
	list, err := json.MarshalIndent(partsList{
		Name:    carrierName,
		Version: b.version,
		Components: parts{
			Manifests:    []manifestPart{{Name: templateFile}},
			Binaries:     []string{},
			Dependencies: []imagePart{{carriedImage, b.version, registryWord}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the carrier's list of parts: %w", err)
	}
	license, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("reading the licence: %w", err)
	}
	files := map[string][]byte{
		carrierFolder + "/" + templateFile:  template,
		carrierFolder + "/bom.json":         append(list, '\n'),
		carrierFolder + "/dependencies.txt": fmt.Appendf(nil, "%s %s %s\n", registryWord, carriedImage, b.version),
		licenseFolder + "/LICENSE":          license,
	}
	var contents []content
	for _, arch := range b.platforms() {
		c := content{
			title:       "Manifests of the cloud controller manager for VMware Cloud Director",
			description: "Carries the manifests into sites without internet, where a container service extension reads them.",
			arch:        arch,
			entrypoint:  []string{"/bin/sh"},
			layers:      []pack.Tree{{Files: files}},
		}
		if c.sbom, err = b.carrierSBOM(c, template); err != nil {
			return nil, err
		}
		contents = append(contents, c)
	}
	return contents, nil
}

// template renders the manifest of the release.
func (b build) template(ctx context.Context) ([]byte, error) {
	folder, err := os.MkdirTemp("", "images-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	cmd := exec.CommandContext(ctx, "go", "run", "./addons/cmd/ccm-manifests", "--out", folder, "--version", b.version)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("rendering manifests: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(folder, templateFile))
}

// carrierSBOM returns the SBOM of the carrier. It lists the content of the carrier and the image that the manifest
// runs.
func (b build) carrierSBOM(c content, template []byte) ([]byte, error) {
	apache := &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	subject := cdx.Component{
		BOMRef:      "carrier",
		Type:        cdx.ComponentTypeContainer,
		Name:        carrierName,
		Version:     b.version,
		Description: c.description,
		Licenses:    apache,
	}
	image := cdx.Component{
		BOMRef:   "image",
		Type:     cdx.ComponentTypeContainer,
		Name:     carriedImage,
		Version:  b.version,
		Licenses: apache,
		Scope:    cdx.ScopeRequired,
	}
	return b.encode(subject, sha256.Sum256(append([]byte(c.arch), template...)), []cdx.Component{image})
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbomType is the media type of an SBOM.
const sbomType = "application/vnd.cyclonedx+json"

// sbom returns the SBOM of a program from its own build information.
func (b build) sbom(p program, arch string, binary []byte, licenses licensesByModule) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", p.pkg, err)
	}
	sum := sha256.Sum256(binary)
	subject := cdx.Component{
		BOMRef:      "program",
		Type:        cdx.ComponentTypeApplication,
		Name:        info.Path,
		Version:     b.version,
		Description: p.description,
		PackageURL:  packageURL(info.Main.Path, b.version, "goos=linux", "goarch="+arch),
		Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:    licensesOf(licenses[mainModule]),
	}
	components := []cdx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"), "", licenses[stdlib])}
	for _, dep := range info.Deps {
		components = append(components, componentOf(dep, licenses))
	}
	return b.encode(subject, sum, components)
}

func componentOf(dep *debug.Module, licenses licensesByModule) cdx.Component {
	if dep.Replace != nil {
		dep = dep.Replace
	}
	return component(dep.Path, dep.Version, dep.Sum, licenses[dep.Path+"@"+dep.Version])
}

func component(name, version, sum string, terms *moduleLicenses) cdx.Component {
	url := packageURL(name, version)
	c := cdx.Component{
		BOMRef:     url,
		Type:       cdx.ComponentTypeLibrary,
		Name:       name,
		Version:    version,
		PackageURL: url,
		Scope:      cdx.ScopeRequired,
		Licenses:   licensesOf(terms),
	}
	// Go's sums are SHA-256 hashes of a listing of the module, in base64.
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil &&
		len(digest) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
	}
	return c
}

// packageURL returns the package URL of a Go module.
func packageURL(name, version string, qualifiers ...string) string {
	return "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+",
		"%2B") + "?" + strings.Join(append([]string{"type=module"}, qualifiers...), "&")
}

func licensesOf(terms *moduleLicenses) *cdx.Licenses {
	if terms == nil || len(terms.ids) == 0 {
		return nil
	}
	var all cdx.Licenses
	for _, id := range terms.ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}

// encode returns the SBOM in JSON. It is reproducible: the serial number is derived from the described program.
func (b build) encode(subject cdx.Component, sum [sha256.Size]byte, components []cdx.Component) ([]byte, error) {
	bom := cdx.NewBOM()
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80 // version 8 of RFC 9562: custom
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	bom.Metadata = &cdx.Metadata{
		Timestamp: b.created.UTC().Format(time.RFC3339),
		Component: &subject,
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{
			Type: cdx.ComponentTypeApplication,
			Name: path.Join(module, "hack/images"),
		}}},
	}
	bom.Components = &components
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: subject.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing a bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

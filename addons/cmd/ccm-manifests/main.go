// SPDX-License-Identifier: Apache-2.0

// Command ccm-manifests writes the manifests of the cloud controller manager of a release: those of a stand-alone
// installation, and the template for sites without internet.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

func main() {
	out := flag.String("out", "", "Output directory.")
	version := flag.String("version", "", "Release, such as v2.0.0, which is the tag of the image.")
	registry := flag.String("registry", "", "Registry of the image; the registry of this project if empty.")
	flag.Parse()
	if err := write(*out, *registry, *version); err != nil {
		fmt.Fprintln(os.Stderr, "ccm-manifests:", err)
		os.Exit(1)
	}
}

func write(out, registry, version string) error {
	files, err := addons.StandAlone(addons.Image(registry, version))
	if err != nil {
		return fmt.Errorf("rendering the stand-alone manifests: %w", err)
	}
	airgap, err := addons.AirgapTemplate(version)
	if err != nil {
		return fmt.Errorf("rendering the airgap template: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // Everybody may read a release.
		return fmt.Errorf("creating the directory: %w", err)
	}
	for _, f := range append(files, addons.File{Name: addons.AirgapTemplateName, Content: airgap}) {
		if err := os.WriteFile(filepath.Join(out, f.Name), f.Content, 0o644); err != nil { //nolint:gosec // Everybody may read a release.
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
	}
	return nil
}

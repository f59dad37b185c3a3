// SPDX-License-Identifier: Apache-2.0

// Command ccm-chart writes the Helm chart of the cloud controller manager of a release.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons/chart"
)

func main() {
	out := flag.String("out", "", "Output directory.")
	version := flag.String("version", "", "Release, such as v2.0.0, which is the tag of the image.")
	registry := flag.String("registry", "", "Registry of the image; the registry of this project if empty.")
	epoch := flag.Int64("epoch", 0, "Modification time of the files in the archive, in seconds since 1970.")
	flag.Parse()
	if err := write(*out, *registry, *version, time.Unix(*epoch, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "ccm-chart:", err)
		os.Exit(1)
	}
}

func write(out, registry, version string, dated time.Time) error {
	files, err := chart.Files(registry, version)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := chart.Write(&archive, files, dated); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // Everybody may read a release.
		return fmt.Errorf("creating the directory: %w", err)
	}
	path := filepath.Join(out, chart.FileName(version))
	if err := os.WriteFile(path, archive.Bytes(), 0o644); err != nil { //nolint:gosec // Everybody may read a release.
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}

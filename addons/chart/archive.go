// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

// FileName returns the name of the chart's archive.
func FileName(version string) string { return "helm-" + Name + "-" + version + ".tgz" }

// Write writes the archive of a chart, as "helm package" does. Equal files and times result in equal bytes.
func Write(w io.Writer, files []addons.File, dated time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: Name + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Content)), ModTime: dated}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.Content); err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// SPDX-License-Identifier: Apache-2.0

// Command pictures writes the drawings of the documentation as SVG. All are columns of 400 units, so that a phone shows
// their text without zoom, and follow the color scheme of the reader. drawings.go contains them.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "Folder of the repository.")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	for path, d := range drawings {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("creating the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(file, []byte(d.svg()), 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// versionTimeout is the time limit for a program to print its version.
const versionTimeout = 10 * time.Second

// copyInstalled copies the programs of the pinned versions that are installed on the machine.
func (b *builder) copyInstalled(ctx context.Context) error {
	if !b.reuse {
		return nil
	}
	for _, g := range b.groups {
		if err := b.prepare(g); err != nil {
			return err
		}
		for _, p := range g.Programs {
			if target := b.set.bins[p.Name]; !exists(target) {
				if _, err := b.copyIfInstalled(ctx, p, target); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// perProgram is the approximate build time of a program from an empty cache on two idle cores.
const perProgram = 65 * time.Second

// announce prints the programs to build and the approximate duration.
func (b *builder) announce() {
	var names []string
	for _, g := range b.groups {
		for _, p := range g.Programs {
			if !exists(b.set.bins[p.Name]) {
				names = append(names, p.Name)
			}
		}
	}
	if len(names) > 0 {
		about := (time.Duration(len(names))*perProgram + time.Minute - 1).Truncate(time.Minute)
		b.show.print(fmt.Sprintf("To build, once: %s. From empty caches that takes about %d minutes on two idle cores",
			strings.Join(names, ", "), int(about.Minutes())), false)
	}
}

// copyIfInstalled copies an installed program of exactly the pinned version, and reports whether it found one. The copy
// does not change if the installed program is upgraded.
func (b *builder) copyIfInstalled(ctx context.Context, p Program, target string) (bool, error) {
	if p.Version == "" {
		return false, nil
	}
	var candidates []string
	if b.assets != "" {
		candidates = append(candidates, filepath.Join(b.assets, p.Name))
	}
	if path, err := exec.LookPath(p.Name); err == nil {
		candidates = append(candidates, path)
	}
	for _, path := range candidates {
		if !printsVersion(ctx, path, p) {
			continue
		}
		if err := copyProgram(path, target); err != nil {
			return false, fmt.Errorf("copying %s: %w", path, err)
		}
		b.show.copied(p.Name, p.Version, path)
		return true, nil
	}
	return false, nil
}

// printsVersion reports whether the output of a program contains the pinned version as a word.
func printsVersion(ctx context.Context, path string, p Program) bool {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, p.VersionArgs...).Output() //nolint:gosec // the user's own program
	if err != nil {
		return false
	}
	return slices.Contains(strings.Fields(string(out)), p.Version)
}

func copyProgram(from, to string) error {
	source, err := os.Open(from) //nolint:gosec // the user's own program
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	temp := to + tempSuffix
	target, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a public program
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temp, to)
}

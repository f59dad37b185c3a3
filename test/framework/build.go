// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// Root returns the root folder of the repository: the nearest parent folder that pins the tools.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("finding the repository: no tools.mod from here upwards")
		}
		dir = up
	}
}

// BuildManager builds this provider's manager and writes it to path.
func BuildManager(ctx context.Context, root, path string) error {
	return Build(ctx, root, ".", path)
}

// tags are the build tags of released programs, as in the Makefile.
const tags = "grpcnotrace"

// Build builds the given package of the repository, and writes the program to path. Most test packages build the
// manager, and Go links only if the output file is outdated. Therefore all builds link to the same file in the folder
// out, which Build copies.
func Build(ctx context.Context, root, program, path string) error {
	folder := filepath.Join(root, "out", "tests")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("creating the folder of programs: %w", err)
	}
	unlock, err := process.LockWait(ctx, filepath.Join(folder, "lock"), func(string) {})
	if err != nil {
		return fmt.Errorf("waiting for another build: %w", err)
	}
	defer unlock()
	linked := filepath.Join(folder, filepath.Base(filepath.Join(root, program)))
	if _, err := run(ctx, root, "go", "build", "-tags", tags, "-o", linked, program); err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	return copyProgram(linked, path)
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from) //nolint:gosec // our own program
	if err != nil {
		return fmt.Errorf("reading a program: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return fmt.Errorf("creating the folder of a program: %w", err)
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // the old program may be running
		return fmt.Errorf("removing an older program: %w", err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil { //nolint:gosec // a program
		return fmt.Errorf("writing a program: %w", err)
	}
	return nil
}

// Components returns this provider's rendered infrastructure-components.yaml.
func Components(ctx context.Context, root string) ([]byte, error) {
	out, err := run(ctx, root, "go", "tool", "-modfile=tools.mod", "kustomize", "build", "config/default")
	if err != nil {
		return nil, fmt.Errorf("rendering the components: %w", err)
	}
	return out, nil
}

// run runs a program in dir and returns its output. An error contains its standard error.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // our own arguments
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

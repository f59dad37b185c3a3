// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root is the folder of the repository: the nearest one upwards that pins the tools.
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

// BuildManager builds this provider's manager to the file path.
func BuildManager(ctx context.Context, root, path string) error {
	return Build(ctx, root, ".", path)
}

// tags of the programs of a release, as in the Makefile.
const tags = "grpcnotrace"

// Build builds a program of the repository, given by its package, to the file path.
func Build(ctx context.Context, root, program, path string) error {
	if _, err := run(ctx, root, "go", "build", "-tags", tags, "-o", path, program); err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	return nil
}

// Components renders this provider's infrastructure-components.yaml.
func Components(ctx context.Context, root string) ([]byte, error) {
	out, err := run(ctx, root, "go", "tool", "-modfile=tools.mod", "kustomize", "build", "config/default")
	if err != nil {
		return nil, fmt.Errorf("rendering the components: %w", err)
	}
	return out, nil
}

// run runs a program in dir and returns its output; the error has its standard error.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // Arguments are our own.
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

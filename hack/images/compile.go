// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// architectures returns the architectures that images are built for. All are Linux.
func architectures() []string { return []string{"amd64", "arm64"} }

// tags are the build tags of all builds, as in the Makefile.
const tags = "grpcnotrace"

// goTool runs the go command in the source tree for an architecture. It overrides build settings in the caller's
// environment, so that the same source produces the same program everywhere.
func (b build) goTool(ctx context.Context, arch string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-tags="+tags, "GOEXPERIMENT=", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running go %s: %w\n%s", args[0], err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// compile returns the compiled program.
func (b build) compile(ctx context.Context, p program, arch string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "images-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder to compile in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "program")
	flags := fmt.Sprintf("-s -w -X %[1]s/internal/version.Version=%[2]s -X %[1]s/internal/version.Commit=%[3]s", module,
		b.version, b.commit)
	if _, err := b.goTool(ctx, arch, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", binary,
		p.pkg); err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", p.pkg, arch, err)
	}
	return os.ReadFile(binary)
}

// A goPackage is a package that a program is linked from.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

func (b build) packages(ctx context.Context, p program, arch string) ([]goPackage, error) {
	out, err := b.goTool(ctx, arch, "list", "-deps", "-json=Dir,Standard,Module", p.pkg)
	if err != nil {
		return nil, fmt.Errorf("listing what %s is linked from: %w", p.pkg, err)
	}
	var found []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		switch err := decoder.Decode(&pkg); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("reading what %s is linked from: %w", p.pkg, err)
		}
		found = append(found, pkg)
	}
}

// goRoot returns the folder of the Go toolchain.
func (b build) goRoot(ctx context.Context) (string, error) {
	out, err := b.goTool(ctx, "amd64", "env", "GOROOT")
	return strings.TrimSpace(string(out)), err
}

// SPDX-License-Identifier: Apache-2.0

// Command images writes the images of this project as OCI archives, without a container engine. It compiles the
// programs for every architecture, packs each with certificates and licenses, and adds an SBOM. The same commit
// produces the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var b build
	var epoch int64
	var only folderOf
	flag.StringVar(&b.root, "root", "../..", "the source tree")
	flag.StringVar(&b.out, "out", "../../out/images", "folder to write archives and bills of materials to")
	flag.StringVar(&b.version, "version", "", "release, such as v2.0.0: the tag of the images")
	flag.StringVar(&b.commit, "commit", "", "hash of the commit")
	flag.Int64Var(&epoch, "epoch", 0, "seconds since 1970 that everything is dated: SOURCE_DATE_EPOCH")
	flag.StringVar(&b.image, "image", "", "name of the manager's image; the others lie beside it")
	flag.StringVar(&only.folder, "rootfs", "",
		"write no archives, but the files of one image to this folder (for the Dockerfile)")
	flag.StringVar(&only.program, "program", "manager", "with --rootfs: manager, cpi or vcdsim")
	flag.StringVar(&only.arch, "arch", runtime.GOARCH, "with --rootfs: the architecture")
	flag.Func("programs", "archives of these only, separated by commas: manager, cpi, vcdsim (default all, and the carrier)", split(&b.only))
	flag.Func("architectures", "for these only, separated by commas (default "+strings.Join(architectures(), ",")+")",
		split(&b.architectures))
	flag.BoolVar(&b.toRegistry, "push", false, "also push the images to their registry")
	flag.Parse()
	b.created = time.Unix(epoch, 0)
	run := b.run
	if only.folder != "" {
		run = func(ctx context.Context, _ io.Writer) error { return b.writeFolder(ctx, only) }
	}
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// split parses a comma-separated list.
func split(to *[]string) func(string) error {
	return func(list string) error {
		*to = strings.Split(list, ",")
		return nil
	}
}

// run builds every image and prints its name, digest and archive.
func (b build) run(ctx context.Context, out io.Writer) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return fmt.Errorf("making the folder for archives: %w", err)
	}
	for _, p := range programs() {
		if b.only != nil && !slices.Contains(b.only, p.name) {
			continue
		}
		contents, err := b.program(ctx, p)
		if err != nil {
			return err
		}
		if err := b.write(ctx, p.image, contents, out); err != nil {
			return err
		}
	}
	if b.only != nil {
		return nil
	}
	contents, err := b.carrier(ctx)
	if err != nil {
		return err
	}
	return b.write(ctx, carrierName, contents, out)
}

// program returns the contents of a program's image for all architectures.
func (b build) program(ctx context.Context, p program) ([]content, error) {
	var contents []content
	for _, arch := range b.platforms() {
		c, err := b.content(ctx, p, arch)
		if err != nil {
			return nil, err
		}
		contents = append(contents, c)
	}
	return contents, nil
}

// content compiles a program and returns the content of its image.
func (b build) content(ctx context.Context, p program, arch string) (content, error) {
	binary, err := b.compile(ctx, p, arch)
	if err != nil {
		return content{}, err
	}
	licenses, err := b.licenses(ctx, p, arch)
	if err != nil {
		return content{}, err
	}
	sbom, err := b.sbom(p, arch, binary, licenses)
	return content{
		title:       p.title,
		description: p.description,
		arch:        arch,
		sbom:        sbom,
		entrypoint:  []string{p.binary},
		args:        p.args,
		ports:       p.ports,
		// Layers that rarely change come first.
		layers: []pack.Tree{
			base(),
			{Files: licenses.files()},
			{Files: map[string][]byte{p.binary: binary}, Executables: map[string]bool{p.binary: true}},
		},
	}, err
}

// A folderOf selects the files of one image to write to a folder.
type folderOf struct{ folder, program, arch string }

func (b build) writeFolder(ctx context.Context, o folderOf) error {
	for _, p := range programs() {
		if p.name != o.program {
			continue
		}
		c, err := b.content(ctx, p, o.arch)
		if err != nil {
			return err
		}
		for _, layer := range c.layers {
			if err := layer.Write(o.folder); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("there is no program %q", o.program)
}

// write writes the archive of an image and its SBOMs.
func (b build) write(ctx context.Context, name string, contents []content, out io.Writer) error {
	index, err := b.index(contents)
	if err != nil {
		return err
	}
	digest, err := b.archive(name, index)
	if err != nil {
		return err
	}
	for _, c := range contents {
		bill := filepath.Join(b.out, fmt.Sprintf("%s-linux-%s.cdx.json", b.file(name), c.arch))
		if err := os.WriteFile(bill, c.sbom, 0o644); err != nil {
			return fmt.Errorf("writing a bill of materials: %w", err)
		}
	}
	if b.toRegistry {
		if err := b.push(ctx, name, index); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s@%s %s\n", b.reference(name), digest, filepath.Join(b.out, b.file(name)+".tar"))
	return err
}

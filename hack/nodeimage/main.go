// SPDX-License-Identifier: Apache-2.0

// Command nodeimage builds the images that simulated virtual machines boot as Kubernetes nodes. An image contains a
// root file system of Debian packages, the programs of Kubernetes compiled from their Go modules, and an image store of
// the container runtime with every container image, so that nodes pull nothing. The command requires root on Linux and
// debootstrap, but neither a container engine nor a hypervisor. Results are cached by a hash of their inputs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := builder{out: os.Stdout}
	var kubernetes string
	flag.StringVar(&kubernetes, "kubernetes", releases()[0].version,
		"versions of Kubernetes, separated by commas, or all: one of "+strings.Join(versions(), ", "))
	flag.StringVar(&b.root, "root", "../..", "the source tree")
	flag.StringVar(&b.cache, "cache", "", "folder of the build cache; images are in its folder nodes (default: the user's cache)")
	flag.StringVar(&b.mirror, "mirror", "", "mirror of Debian (default: the machine's own, from its sources of apt)")
	flag.StringVar(&b.own.version, "version", "v2.0.0-dev", "tag of this project's images")
	flag.StringVar(&b.own.commit, "commit", "", "hash of the commit")
	flag.Int64Var(&b.own.epoch, "epoch", 0, "seconds since 1970 that the images are dated: SOURCE_DATE_EPOCH")
	flag.StringVar(&b.own.image, "image", "ghcr.io/cluster-api-provider-vcd/cluster-api-vcd-controller",
		"name of the manager's image; the cloud controller manager's is beside it")
	flag.Parse()
	if err := b.run(ctx, kubernetes); err != nil {
		fmt.Fprintln(os.Stderr, "node-image:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// run builds the images of the given versions.
func (b *builder) run(ctx context.Context, kubernetes string) error {
	wanted, err := parseReleases(kubernetes)
	if err != nil {
		return err
	}
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	if b.cache == "" {
		if b.cache, err = programs.DefaultCache(); err != nil {
			return err
		}
	}
	b.dir = filepath.Join(b.cache, "nodes")
	b.created = time.Unix(b.own.epoch, 0)
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, r := range wanted {
		if err := b.image(ctx, r); err != nil {
			return fmt.Errorf("making the image for Kubernetes %s: %w", r.version, err)
		}
	}
	return b.prune()
}

// image builds one image. It writes the record last.
func (b *builder) image(ctx context.Context, r release) error {
	began := time.Now()
	base, err := b.base(ctx)
	if err != nil {
		return err
	}
	built, err := b.programs(ctx, r)
	if err != nil {
		return err
	}
	system, err := b.system(built)
	if err != nil {
		return err
	}
	node, err := b.node(ctx, r, built, base)
	if err != nil {
		return err
	}
	store, err := b.store(ctx, r, built, node)
	if err != nil {
		return err
	}
	path, err := b.record(r, store, node, system, base)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "Image %s: %s (%s)\n", r.name(), path, round(time.Since(began)))
	return nil
}

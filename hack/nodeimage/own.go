// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
)

// ownImages contains the parameters of make images for this project's images.
type ownImages struct {
	version, commit, image string
	epoch                  int64
}

// references returns the references of the manager's image and of the cloud controller manager's image.
func (o ownImages) references() []string {
	return []string{
		o.image + ":" + o.version,
		path.Join(path.Dir(o.image), "cloud-provider-for-cloud-director") + ":" + o.version,
	}
}

// sources returns the paths that this project's images are compiled from. Documentation and tests are excluded, because
// they change more often.
func sources() []string {
	return []string{
		"LICENSE", "go.mod", "go.sum", "main.go", "flags.go", "addons", "api", "cmd", "config", "controllers", "cpi",
		"internal", "hack/images",
	}
}

// store builds the image store of a node: the store of the release plus this project's images as built by make images.
func (b *builder) store(ctx context.Context, r release, built kit, node string) (string, error) {
	code, err := hashOf(b.root, sources()...)
	if err != nil {
		return "", err
	}
	hash := digest(append(b.own.references(), node, code)...)
	return b.artifact("This project's images for Kubernetes "+r.version, "store-"+r.version, hash,
		func(dir string) error {
			archives := filepath.Join(dir, "archives")
			if err := b.makeImages(ctx, archives); err != nil {
				return err
			}
			store := filepath.Join(dir, "containerd")
			if err := copyStore(ctx, filepath.Join(b.dir, node, "containerd"), store); err != nil {
				return err
			}
			if err := b.load(ctx, built, store, filepath.Join(archives, path.Base(b.own.image)+".tar"),
				filepath.Join(archives, "cloud-provider-for-cloud-director.tar")); err != nil {
				return err
			}
			return os.RemoveAll(archives)
		})
}

func (b *builder) makeImages(ctx context.Context, folder string) error {
	cmd := exec.CommandContext(ctx, "go", "run", ".", "--root", b.root, "--out", folder, "--version", b.own.version,
		"--commit", b.own.commit, "--epoch", strconv.FormatInt(b.own.epoch, 10), "--image", b.own.image,
		"--programs", "manager,cpi", "--architectures", runtime.GOARCH)
	cmd.Dir = filepath.Join(b.root, "hack/images")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making this project's images: %w\n%s", err, lastLines(string(out), 12))
	}
	return nil
}

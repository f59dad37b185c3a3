// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

// The content of the layers above Debian's packages, by path.
var (
	//go:embed all:system
	systemFiles embed.FS
	//go:embed all:node
	nodeFiles embed.FS
	//go:embed network/network.yaml
	networkManifest []byte
)

const (
	units = "/etc/systemd/system/"
	// manifest is the path of the network plug-in's manifest in an image.
	manifest = "/usr/local/share/kubernetes/network.yaml"
)

// maskedUnits returns the units that fail in a container, or that a node must not run.
func maskedUnits() []string {
	return []string{
		"getty.target", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service",
		"fstrim.timer", "dpkg-db-backup.timer", "systemd-timesyncd.service", "systemd-pstore.service",
		"nftables.service", "modprobe@.service", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
		"dev-hugepages.mount", "cloud-init-hotplugd.socket",
	}
}

// enabledUnits returns the units that Debian does not enable by default, by link.
func enabledUnits() map[string]string {
	return map[string]string{
		"multi-user.target.wants/systemd-networkd.service":                 "systemd-networkd.service",
		"sockets.target.wants/systemd-networkd.socket":                     "systemd-networkd.socket",
		"network-online.target.wants/systemd-networkd-wait-online.service": "systemd-networkd-wait-online.service",
		"dbus-org.freedesktop.network1.service":                            "systemd-networkd.service",
	}
}

// system builds the layer that turns Debian into a VMware virtual machine.
func (b *builder) system(built kit) (string, error) {
	recipe, err := b.recipe()
	if err != nil {
		return "", err
	}
	hash := digest(recipe, built.hash("own"), string(networkManifest))
	return b.artifact("System layer", "system", hash, func(dir string) error {
		t, err := treeOf(systemFiles, "system", nil)
		if err != nil {
			return err
		}
		t.Files[manifest] = networkManifest
		for _, unit := range maskedUnits() {
			t.Links[units+unit] = "/dev/null"
		}
		for alias, unit := range enabledUnits() {
			t.Links[units+alias] = "/lib/systemd/system/" + unit
		}
		if err := addProgram(&t, "/usr/bin/vmware-rpctool", built.bin("own", "rpctool")); err != nil {
			return err
		}
		return t.Write(filepath.Join(dir, "rootfs"))
	})
}

// node builds the layer of a version of Kubernetes, and the image store of the container runtime.
func (b *builder) node(ctx context.Context, r release, built kit, base string) (string, error) {
	recipe, err := b.recipe()
	if err != nil {
		return "", err
	}
	hash := digest(recipe, base, r.agnhost, r.busybox,
		built.hash(slices.Sorted(maps.Keys(built))...))
	return b.artifact("Node layer and image store of Kubernetes "+r.version, "kubernetes-"+r.version, hash,
		func(dir string) error {
			images, err := b.images(ctx, r, built, base)
			if err != nil {
				return err
			}
			t, err := nodeTree(built, images)
			if err != nil {
				return err
			}
			if err := t.Write(filepath.Join(dir, "rootfs")); err != nil {
				return err
			}
			archive := filepath.Join(dir, "images.tar")
			if err := b.archive(archive, images); err != nil {
				return err
			}
			if err := b.load(ctx, built, filepath.Join(dir, "containerd"), archive); err != nil {
				return err
			}
			return os.Remove(archive)
		})
}

// nodeTree returns the programs of a node and their configuration.
func nodeTree(built kit, images []image) (pack.Tree, error) {
	pause, err := referenceOf(images, "pause")
	if err != nil {
		return pack.Tree{}, err
	}
	t, err := treeOf(nodeFiles, "node", struct{ Pause string }{pause})
	if err != nil {
		return t, err
	}
	for _, unit := range []string{"containerd.service", "kubelet.service"} {
		t.Links[units+"multi-user.target.wants/"+unit] = units + unit
	}
	for target, program := range map[string][2]string{
		"/usr/local/bin/kubelet":                 {"kubernetes", "kubelet"},
		"/usr/local/bin/kubectl":                 {"kubernetes", "kubectl"},
		"/usr/bin/kubeadm":                       {"kubernetes", "kubeadm"}, // called by the wrapper in /usr/local/bin
		"/usr/local/bin/containerd":              {"containerd", "containerd"},
		"/usr/local/bin/ctr":                     {"containerd", "ctr"},
		"/usr/local/bin/containerd-shim-runc-v2": {"containerd", "containerd-shim-runc-v2"},
		"/opt/cni/bin/bridge":                    {"cni", "bridge"},
		"/opt/cni/bin/loopback":                  {"cni", "loopback"},
		"/opt/cni/bin/host-local":                {"cni", "host-local"},
		"/opt/cni/bin/portmap":                   {"cni", "portmap"},
	} {
		if err := addProgram(&t, target, built.bin(program[0], program[1])); err != nil {
			return t, err
		}
	}
	return t, nil
}

func newTree() pack.Tree {
	return pack.Tree{Files: map[string][]byte{}, Executables: map[string]bool{}, Links: map[string]string{}}
}

func addProgram(t *pack.Tree, target, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a program: %w", err)
	}
	t.Files[target] = content
	t.Executables[target] = true
	return nil
}

// treeOf returns the files of an embedded folder. Templates are rendered. Files in a folder of programs and scripts are
// executable.
func treeOf(files fs.FS, folder string, values any) (pack.Tree, error) {
	t := newTree()
	err := fs.WalkDir(files, folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		target := strings.TrimPrefix(name, folder)
		if trimmed, ok := strings.CutSuffix(target, ".tmpl"); ok {
			target = trimmed
			if content, err = fill(content, values); err != nil {
				return err
			}
		}
		t.Files[target] = content
		t.Executables[target] = bytes.HasPrefix(content, []byte("#!"))
		return nil
	})
	return t, err
}

func fill(content []byte, values any) ([]byte, error) {
	parsed, err := template.New("").Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// referenceOf returns the reference of an image by the last part of its name.
func referenceOf(images []image, name string) (string, error) {
	for _, i := range images {
		if last, _, _ := strings.Cut(path.Base(i.reference), ":"); last == name {
			return i.reference, nil
		}
	}
	return "", fmt.Errorf("no image %s", name)
}

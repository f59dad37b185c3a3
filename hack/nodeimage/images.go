// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

const (
	searchPath   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	testRegistry = "registry.k8s.io/e2e-test-images/"
	// kubeVIP is the image of internal/kubevip's manifest. networkImage is the image of the network plug-in's manifest.
	kubeVIP      = "ghcr.io/kube-vip/kube-vip:v0.9.1"
	networkImage = "localhost/node-network:v1"

	accounts = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
	groups   = "root:x:0:\nnogroup:x:65534:\n"
)

// An image is an image in the store of a node.
type image struct {
	reference  string
	entrypoint []string
	args       []string
	layers     []pack.Tree
}

// images returns all images that a cluster of this release requires, including those for tests.
func (b *builder) images(ctx context.Context, r release, built kit, base string) ([]image, error) {
	d := debian{filepath.Join(b.dir, base, "rootfs")}
	kubernetes, err := kubeadmImages(ctx, r, built, d)
	if err != nil {
		return nil, err
	}
	proxies, err := otherProxies(r, built, d)
	if err != nil {
		return nil, err
	}
	network, err := networkTrees(d, "/usr/local/bin/network", built.bin("own", "network"))
	if err != nil {
		return nil, err
	}
	providers, err := providerImages(built)
	if err != nil {
		return nil, err
	}
	vip, err := programTree("/kube-vip", built.bin("kube-vip", "kube-vip"))
	if err != nil {
		return nil, err
	}
	agnhost, err := b.agnhost(ctx, r, built, d)
	if err != nil {
		return nil, err
	}
	busybox, err := busyboxTree(ctx, d, "/bin")
	if err != nil {
		return nil, err
	}
	busybox.Files["/etc/passwd"] = []byte(accounts)
	busybox.Files["/etc/group"] = []byte(groups)
	busybox.Open = []string{"/tmp"}
	return append(slices.Concat(kubernetes, proxies, providers),
		image{reference: kubeVIP, entrypoint: []string{"/kube-vip"}, layers: []pack.Tree{vip}},
		image{reference: networkImage, entrypoint: []string{"/usr/local/bin/network"}, layers: network},
		image{
			reference:  testRegistry + "agnhost:" + r.agnhost,
			entrypoint: []string{"/agnhost"},
			args:       []string{"pause"},
			layers:     agnhost,
		},
		image{reference: testRegistry + "busybox:" + r.busybox, args: []string{"sh"}, layers: []pack.Tree{busybox}},
	), nil
}

// kubeadmImages returns the images that kubeadm requires, under kubeadm's names. Etcd, CoreDNS and pause are the same
// programs for every release.
func kubeadmImages(ctx context.Context, r release, built kit, d debian) ([]image, error) {
	out, err := exec.CommandContext(ctx, built.bin("kubernetes", "kubeadm"), "config", "images", "list",
		"--kubernetes-version", r.version).Output()
	if err != nil {
		return nil, fmt.Errorf("asking kubeadm for its images: %w", err)
	}
	var found []image
	for _, reference := range strings.Fields(string(out)) {
		name, _, _ := strings.Cut(path.Base(reference), ":")
		i := image{reference: reference}
		var tree pack.Tree
		switch name {
		case "kube-proxy":
			i, err = proxyImage(reference, built.bin("kubernetes", name), d)
		case "pause", "coredns":
			group := map[string]string{"pause": "own", "coredns": "coredns"}[name]
			tree, err = programTree("/"+name, built.bin(group, name))
			i.entrypoint = []string{"/" + name}
			i.layers = []pack.Tree{tree}
		case "etcd":
			tree, err = programTree("/usr/local/bin/etcd", built.bin("etcd", name))
			i.layers = []pack.Tree{tree}
		default:
			tree, err = programTree("/usr/local/bin/"+name, built.bin("kubernetes", name))
			i.layers = []pack.Tree{tree}
		}
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, nil
}

// otherProxies returns the kube-proxy images of the other releases. One DaemonSet serves all nodes of a cluster. During
// an upgrade it runs the old release on new nodes, and after the upgrade of the control planes it runs the new release
// on old nodes.
func otherProxies(r release, built kit, d debian) ([]image, error) {
	var found []image
	for _, other := range otherReleases(r) {
		i, err := proxyImage("registry.k8s.io/kube-proxy:"+other.version, built.bin(proxyGroup+other.version,
			"kube-proxy"), d)
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, nil
}

// providerImages returns the images of Cluster API's managers, for self-managed clusters.
func providerImages(built kit) ([]image, error) {
	var found []image
	references := programs.Images()
	for _, name := range slices.Sorted(maps.Keys(references)) {
		tree, err := programTree("/manager", built.bin(stackGroup, name))
		if err != nil {
			return nil, err
		}
		found = append(found, image{
			reference:  references[name],
			entrypoint: []string{"/manager"},
			layers:     []pack.Tree{tree},
		})
	}
	return found, nil
}

func proxyImage(reference, program string, d debian) (image, error) {
	layers, err := networkTrees(d, "/usr/local/bin/kube-proxy", program)
	return image{reference: reference, entrypoint: []string{"/usr/local/bin/kube-proxy"}, layers: layers}, err
}

// programTree returns a tree with one static program.
func programTree(target, file string) (pack.Tree, error) {
	t := newTree()
	t.Files["/etc/passwd"] = []byte(accounts)
	t.Files["/etc/group"] = []byte(groups)
	t.Open = []string{"/tmp"}
	return t, addProgram(&t, target, file)
}

// networkTrees returns the layers of a program that runs nft or iptables: these with their plug-ins in the lower layer,
// the program in the upper one.
func networkTrees(d debian, target, file string) ([]pack.Tree, error) {
	below := d.tree()
	if err := errors.Join(
		d.add(&below, "/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/sbin/xtables-nft-multi"),
		d.addMatching(&below, libraries()+"/xtables/*.so"),
	); err != nil {
		return nil, err
	}
	for _, command := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			below.Links["/usr/sbin/"+command+suffix] = "xtables-nft-multi"
		}
	}
	above := newTree()
	return []pack.Tree{below, above}, addProgram(&above, target, file)
}

// agnhost returns the layers with the program of Kubernetes' tests and the programs that the tests run beside it.
func (b *builder) agnhost(ctx context.Context, r release, built kit, d debian) ([]pack.Tree, error) {
	below := d.tree()
	if err := d.add(&below, "/usr/bin/bash", "/usr/bin/dash", "/usr/bin/curl", "/usr/bin/dig",
		"/usr/bin/nc.openbsd"); err != nil {
		return nil, err
	}
	tools, err := busyboxTree(ctx, d, "/usr/bin")
	if err != nil {
		return nil, err
	}
	maps.Copy(below.Files, tools.Files)
	maps.Copy(below.Executables, tools.Executables)
	for link, target := range tools.Links {
		if _, ok := below.Files[link]; !ok {
			below.Links[link] = target
		}
	}
	// The shell of busybox prefers its own nc, which lacks options that tests use.
	below.Links["/usr/bin/sh"] = "dash"
	below.Links["/usr/bin/nc"] = "nc.openbsd"
	below.Files["/etc/passwd"] = []byte(accounts +
		"user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n")
	below.Files["/etc/group"] = []byte(groups +
		"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")
	below.Open = append(below.Open, "/uploads")

	above := newTree()
	above.Links["/agnhost-2"] = "agnhost"
	if err := b.porterFiles(ctx, r, &above); err != nil {
		return nil, err
	}
	return []pack.Tree{below, above}, addProgram(&above, "/agnhost", built.bin("kubernetes", "agnhost"))
}

// porterFiles adds the certificate that agnhost serves, from the module of agnhost.
func (b *builder) porterFiles(ctx context.Context, r release, t *pack.Tree) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(r.module))
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("finding the module of Kubernetes: %w", err)
	}
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "test/images/agnhost/porter", name))
		if err != nil {
			return fmt.Errorf("reading agnhost's certificate: %w", err)
		}
		t.Files["/"+name] = content
	}
	return nil
}

// busyboxTree returns a tree with busybox in a folder, and a link for each of its commands.
func busyboxTree(ctx context.Context, d debian, folder string) (pack.Tree, error) {
	t := newTree()
	file := filepath.Join(d.root, "usr/bin/busybox")
	out, err := exec.CommandContext(ctx, file, "--list").Output()
	if err != nil {
		return t, fmt.Errorf("asking busybox for its commands: %w", err)
	}
	for _, command := range strings.Fields(string(out)) {
		if command != "busybox" {
			t.Links[folder+"/"+command] = "busybox"
		}
	}
	return t, addProgram(&t, folder+"/busybox", file)
}

// archive packs the images into one archive.
func (b *builder) archive(file string, images []image) error {
	var entries []pack.Entry
	for _, i := range images {
		packed, err := pack.Image{
			Name:       i.reference,
			Arch:       runtime.GOARCH,
			Path:       searchPath,
			CreatedBy:  "make node-image",
			Created:    b.created,
			Entrypoint: i.entrypoint,
			Args:       i.args,
			Layers:     i.layers,
		}.Pack()
		if err != nil {
			return err
		}
		_, tag, _ := strings.Cut(path.Base(i.reference), ":")
		entries = append(entries, pack.Entry{Image: packed, Reference: i.reference, Tag: tag})
	}
	return pack.Archive(file, b.created, entries...)
}

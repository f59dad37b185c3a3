// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

const (
	ownModule  = "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/nodeimage"
	containerd = "github.com/containerd/containerd/v2/cmd/"
	plugins    = "github.com/containernetworking/plugins/plugins/"
	stripped   = "-s -w"
)

// A kit contains the built programs by group. The group of the image's own release is named kubernetes.
type kit map[string]*programs.Set

// bin returns the path of a program. The path contains the hash of the program's inputs.
func (k kit) bin(group, name string) string {
	return k[group].Bin(name)
}

// hash returns a hash that changes when any program of the groups changes.
func (k kit) hash(groups ...string) string {
	var dirs []string
	for _, g := range groups {
		dirs = append(dirs, k[g].Dir())
	}
	return digest(dirs...)
}

// programs builds missing programs. They have a separate cache, so that tests that build their stack need not wait.
func (b *builder) programs(ctx context.Context, r release) (kit, error) {
	groups, err := b.groups(r)
	if err != nil {
		return nil, err
	}
	built := kit{}
	for _, g := range groups {
		set, err := programs.BuildGroups(ctx, programs.Options{
			Cache:  filepath.Join(b.dir, "programs"),
			Source: b.root,
			Out:    b.out,
		}, g)
		if err != nil {
			return nil, err
		}
		built[strings.TrimSuffix(g.Name, "-"+r.version)] = set
	}
	// The managers of Cluster API are those of the quickstart, from its cache.
	built[stackGroup], err = programs.Build(ctx, programs.Options{
		Cache:  b.cache,
		Source: filepath.Join(b.root, "test/framework/stack/programs"),
		Out:    b.out,
	})
	return built, err
}

// stackGroup is the group of programs that make quickstart builds.
const stackGroup = "stack"

func (b *builder) groups(r release) ([]programs.Group, error) {
	salt, err := hashOf(b.root, "hack/nodeimage/rpctool", "hack/nodeimage/pause", "hack/nodeimage/network")
	if err != nil {
		return nil, err
	}
	pinned := filepath.Join(b.root, "hack/nodeimage/programs")
	groups := []programs.Group{
		{
			Name:     "own",
			Folder:   filepath.Join(b.root, "hack/nodeimage"),
			Salt:     salt,
			Ldflags:  stripped,
			Programs: list(ownModule+"/", "rpctool", "pause", "network"),
		},
		{
			Name:     "containerd",
			Folder:   filepath.Join(pinned, "containerd"),
			Ldflags:  stripped,
			Programs: list(containerd, "containerd", "ctr", "containerd-shim-runc-v2"),
		},
		{
			Name:     "cni",
			Folder:   filepath.Join(pinned, "cni"),
			Ldflags:  stripped,
			Programs: list(plugins, "main/bridge", "main/loopback", "ipam/host-local", "meta/portmap"),
		},
		b.kubernetes(r),
		{
			Name:     "etcd",
			Folder:   filepath.Join(b.root, "test/framework/stack/programs/etcd"),
			Ldflags:  stripped,
			Programs: []programs.Program{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}},
		},
		{
			Name:     "coredns",
			Folder:   filepath.Join(pinned, "coredns"),
			Ldflags:  stripped,
			Programs: list("github.com/coredns/", "coredns"),
		},
		{
			Name:     "kube-vip",
			Folder:   filepath.Join(b.root, "hack/kubevip"),
			Ldflags:  stripped,
			Programs: list("github.com/kube-vip/", "kube-vip"),
		},
	}
	for _, other := range otherReleases(r) {
		groups = append(groups, b.proxy(other))
	}
	return groups, nil
}

// kubernetes returns the group of all programs of a release of Kubernetes.
func (b *builder) kubernetes(r release) programs.Group {
	return b.kubernetesPrograms(kubernetesGroup, r, "cmd/kubelet", "cmd/kubeadm", "cmd/kubectl", "cmd/kube-apiserver",
		"cmd/kube-controller-manager", "cmd/kube-scheduler", "cmd/kube-proxy", "test/images/agnhost")
}

// proxy returns the group of kube-proxy alone. An image of another release needs no other program of r.
func (b *builder) proxy(r release) programs.Group {
	return b.kubernetesPrograms(proxyGroup, r, "cmd/kube-proxy")
}

// Name prefixes of groups of Kubernetes' programs. The version follows.
const (
	kubernetesGroup = "kubernetes-"
	proxyGroup      = "kube-proxy-"
)

func (b *builder) kubernetesPrograms(prefix string, r release, packages ...string) programs.Group {
	return programs.Group{
		Name:   prefix + r.version,
		Folder: filepath.Join(b.root, filepath.FromSlash(r.module)),
		Ldflags: stripped + " -X k8s.io/component-base/version.gitVersion=" + r.version +
			" -X k8s.io/client-go/pkg/version.gitVersion=" + r.version,
		Programs: list("k8s.io/kubernetes/", packages...),
	}
}

// list returns one program per package, named after the last part of the package's path.
func list(prefix string, packages ...string) []programs.Program {
	var found []programs.Program
	for _, p := range packages {
		found = append(found, programs.Program{Name: filepath.Base(p), Package: prefix + p})
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs of the test stack from their Go modules, once, into a cache outside the work
// tree.
//
// Each folder beside this file is a Go module that pins one group of programs. Only Go modules are downloaded, so a
// machine with a Go toolchain and a module proxy is sufficient.
package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Names of the programs.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Kubectl               = "kubectl"
	Clusterctl            = "clusterctl"
	CoreManager           = "cluster-api-core"
	BootstrapManager      = "cluster-api-kubeadm-bootstrap"
	ControlPlaneManager   = "cluster-api-kubeadm-control-plane"
	IPAMManager           = "cluster-api-ipam-in-cluster"
)

// Versions of the programs, as pinned in the go.mod files.
const (
	EtcdVersion       = "v3.6.16"
	KubernetesVersion = "v1.36.3"
	ClusterAPIVersion = "v1.14.2"
	IPAMVersion       = "v1.1.0"
)

const (
	capiModule = "sigs.k8s.io/cluster-api"
	ipamModule = "sigs.k8s.io/cluster-api-ipam-provider-in-cluster"
	capiImages = "registry.k8s.io/cluster-api/"
)

// A Group is a module and the programs that are built from it.
type Group struct {
	Name string
	// Folder is the folder of the module. If it is empty, it is the folder named Name beside this package.
	Folder  string
	Ldflags string
	// CGO is set for programs that need a C compiler.
	CGO bool
	// Salt is an additional input of the build, such as a hash of sources that go.mod does not pin.
	Salt     string
	Programs []Program
}

// A Program is one binary. If it has a config folder, it is a Cluster API provider whose components are rendered as
// well.
type Program struct {
	Name    string
	Package string
	Module  string
	Config  string
	// Version is a word that the program prints with VersionArgs if it has the pinned version. If it is empty,
	// installed programs are never used.
	Version     string
	VersionArgs []string
	// Image is the image of a provider's manager in its maintainers' releases. It is empty for other programs.
	Image string
}

func (g Group) folder(source string) string {
	if g.Folder != "" {
		return g.Folder
	}
	return filepath.Join(source, g.Name)
}

func groups() []Group { //nolint:funlen // a table with one field per line
	return []Group{
		{
			Name:    "etcd",
			Ldflags: "-s -w",
			Programs: []Program{{
				Name:        Etcd,
				Package:     "go.etcd.io/etcd/server/v3",
				Version:     strings.TrimPrefix(EtcdVersion, "v"),
				VersionArgs: []string{"--version"},
			}},
		},
		{
			Name: "kubernetes",
			Ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion +
				" -X k8s.io/client-go/pkg/version.gitVersion=" + KubernetesVersion,
			Programs: []Program{
				{
					Name:        Kubectl,
					Package:     "k8s.io/kubernetes/cmd/kubectl",
					Version:     KubernetesVersion,
					VersionArgs: []string{"version", "--client"},
				},
				{
					Name:        KubeAPIServer,
					Package:     "k8s.io/kubernetes/cmd/kube-apiserver",
					Version:     KubernetesVersion,
					VersionArgs: []string{"--version"},
				},
				{
					Name:        KubeControllerManager,
					Package:     "k8s.io/kubernetes/cmd/kube-controller-manager",
					Version:     KubernetesVersion,
					VersionArgs: []string{"--version"},
				},
			},
		},
		{
			Name: "clusterapi",
			Ldflags: "-s -w -X sigs.k8s.io/cluster-api/version.gitVersion=" + ClusterAPIVersion +
				" -X sigs.k8s.io/cluster-api/version.gitMajor=1 -X sigs.k8s.io/cluster-api/version.gitMinor=14",
			Programs: []Program{
				{
					Name:    CoreManager,
					Package: capiModule + "/core",
					Module:  capiModule,
					Config:  "core/config/default",
					Image:   capiImages + "cluster-api-controller:" + ClusterAPIVersion,
				},
				{
					Name:    BootstrapManager,
					Package: capiModule + "/bootstrap/kubeadm",
					Module:  capiModule,
					Config:  "bootstrap/kubeadm/config/default",
					Image:   capiImages + "kubeadm-bootstrap-controller:" + ClusterAPIVersion,
				},
				{
					Name:    ControlPlaneManager,
					Package: capiModule + "/controlplane/kubeadm",
					Module:  capiModule,
					Config:  "controlplane/kubeadm/config/default",
					Image:   capiImages + "kubeadm-control-plane-controller:" + ClusterAPIVersion,
				},
				{
					Name:        Clusterctl,
					Package:     capiModule + "/cmd/clusterctl",
					Version:     ClusterAPIVersion,
					VersionArgs: []string{"version", "--output=short"},
				},
			},
		},
		{
			Name:    "ipam",
			Ldflags: "-s -w",
			Programs: []Program{{
				Name:    IPAMManager,
				Package: ipamModule,
				Module:  ipamModule,
				Config:  "config/default",
				Image:   "registry.k8s.io/capi-ipam-ic/cluster-api-ipam-in-cluster-controller:" + IPAMVersion,
			}},
		},
	}
}

// Images returns the images of the providers' managers in their maintainers' releases, by name of the program.
func Images() map[string]string {
	images := map[string]string{}
	for _, g := range groups() {
		for _, p := range g.Programs {
			if p.Image != "" {
				images[p.Name] = p.Image
			}
		}
	}
	return images
}

// A Set contains the paths of built programs.
type Set struct {
	dir        string
	bins       map[string]string
	components map[string]string
}

// Dir returns the folder that contains a link to each program under its name.
func (s *Set) Dir() string {
	return s.dir
}

// Bin returns the path of a program.
func (s *Set) Bin(name string) string {
	return s.bins[name]
}

// Components returns the rendered components file of the Cluster API provider with this manager.
func (s *Set) Components(name string) ([]byte, error) {
	path, ok := s.components[name]
	if !ok {
		return nil, fmt.Errorf("program %s is not a Cluster API provider", name)
	}
	return os.ReadFile(path) //nolint:gosec // our own path
}

// missing returns the files of the set that do not exist.
func (s *Set) missing() []string {
	var names []string
	for _, files := range []map[string]string{s.bins, s.components} {
		for name, path := range files {
			if _, err := os.Stat(path); err != nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// plan returns the paths of all programs. Each group has a folder that is named after a hash of all inputs of its
// build.
func plan(groups []Group, source, cache string) (*Set, map[string]string, error) {
	set := &Set{bins: map[string]string{}, components: map[string]string{}}
	folders := map[string]string{}
	all := sha256.New()
	for _, g := range groups {
		hash, err := g.hash(source)
		if err != nil {
			return nil, nil, err
		}
		all.Write([]byte(hash))
		folder := filepath.Join(cache, g.Name+"-"+hash)
		folders[g.Name] = folder
		for _, p := range g.Programs {
			set.bins[p.Name] = filepath.Join(folder, p.Name)
			if p.Config != "" {
				set.components[p.Name] = filepath.Join(folder, p.Name+".yaml")
			}
		}
	}
	set.dir = filepath.Join(cache, "bin-"+hex.EncodeToString(all.Sum(nil))[:12])
	return set, folders, nil
}

func (g Group) hash(source string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, g.Salt+g.Ldflags, runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, p := range g.Programs {
		_, _ = fmt.Fprintln(h, p.Name, p.Package, p.Config)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(g.folder(source), name)) //nolint:gosec // our own path
		if err != nil {
			return "", fmt.Errorf("reading the pinned versions of the programs: %w", err)
		}
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// Source returns the folder of the nested modules. from can be any folder in the repository.
func Source(from string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for {
		for _, sub := range []string{"test/framework/stack/programs", "framework/stack/programs"} {
			candidate := filepath.Join(dir, filepath.FromSlash(sub))
			_, err := os.Stat(filepath.Join(candidate, "kubernetes", "go.mod"))
			if err == nil {
				return candidate, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no %s above %s: run this inside the repository", "test/framework/stack/programs",
				from)
		}
		dir = parent
	}
}

// DefaultCache returns the folder for built programs in the user's cache.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder (name another one instead): %w", err)
	}
	return filepath.Join(dir, "cluster-api-provider-vcd"), nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivsphere "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vsphereconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

const (
	// defaultVSphereConfig is the path in the manifests of the vSphere CPI.
	defaultVSphereConfig = "/etc/cloud/vsphere.conf"
	// keepNodesVariable is the environment variable that prevents the vSphere CPI from deleting Nodes, with any value.
	keepNodesVariable = "SKIP_NODE_DELETION"
)

// vsphereFlags are the flags of vSphere.
type vsphereFlags struct{ labels map[string]string }

// vsphereProvider returns vSphere's entry in the registry.
func vsphereProvider() provider {
	f := &vsphereFlags{}
	return provider{
		name:     cpivsphere.ProviderName,
		config:   defaultVSphereConfig,
		flags:    f.add,
		validate: f.validate,
		load:     f.load,
	}
}

func (f *vsphereFlags) add(fs *pflag.FlagSet) {
	fs.StringToStringVar(&f.labels, "node-labels", nil,
		"Labels for all new Nodes, as key=value,… (vsphere only).")
}

func (f *vsphereFlags) validate() error {
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(f.labels)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(f.labels[key])) > 0 {
			wrong = append(wrong, fmt.Errorf("--node-labels: %s=%s is not a label", key, f.labels[key]))
		}
	}
	return errors.Join(wrong...)
}

func (f *vsphereFlags) load(from source) (*configuration, error) {
	c, warnings, err := vsphereconfig.Parse(from.file, from.env)
	if err != nil {
		return nil, err
	}
	_, keep := environment(from.env)[keepNodesVariable]
	v := &vsphereCloud{flags: f, Config: c, keepNodes: keep}
	return &configuration{
		warnings:    warnings,
		about:       []any{"vCenters", slices.Sorted(maps.Keys(c.VCenters))},
		settings:    cpi.Settings{MaxAge: c.Nodes.MaxAge.Duration},
		credentials: v.checkCredentials,
		open:        v.open,
	}, nil
}

// environment returns all environment variables.
func environment(env ccmconfig.Environment) map[string]string {
	out := map[string]string{}
	if env.Environ != nil {
		for _, name := range env.Environ() {
			key, value, _ := strings.Cut(name, "=")
			out[key] = value
		}
	}
	return out
}

// A vsphereCloud is vSphere with its configuration.
type vsphereCloud struct {
	vsphereconfig.Config

	flags     *vsphereFlags
	keepNodes bool
}

// source returns the location of the credentials for a vCenter.
func (v *vsphereCloud) source(c *vsphereconfig.VCenter, h host) *cpivsphere.CredentialSource {
	s := &cpivsphere.CredentialSource{
		Host:       c.Server,
		Secret:     c.SecretName,
		Namespace:  cmp.Or(c.SecretNamespace, h.namespace),
		Directory:  cmp.Or(v.Global.SecretsDirectory, vsphereconfig.DefaultSecretsDirectory),
		Configured: cpivsphere.Credentials{User: c.User, Password: string(c.Password)},
		Now:        time.Now,
	}
	if h.client != nil {
		s.Secrets = h.client.CoreV1()
	}
	return s
}

// checkCredentials returns an error that lists the vCenters without the credentials that should be in files.
func (v *vsphereCloud) checkCredentials() error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(v.VCenters)) {
		c := v.VCenters[name]
		if c.SecretName != "" {
			continue // only available in Kubernetes
		}
		if _, _, err := v.source(c, host{}).Current(context.Background()); err != nil {
			wrong = append(wrong, fmt.Errorf("vCenter %s: credentials: %w", name, err))
		}
	}
	return errors.Join(wrong...)
}

func (v *vsphereCloud) open(h host) (*backend, error) {
	requests := cpivsphere.NewRequests()
	if err := legacyregistry.Registerer().Register(requests); err != nil {
		if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); !again {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	o := cpivsphere.MachineOptions{
		Topology: cpivsphere.Topology{
			Zone:         v.Labels.Zone,
			Region:       v.Labels.Region,
			InstanceType: v.Labels.InstanceType,
			HostLabel:    v.Labels.Host,
			ClusterLabel: v.Labels.Cluster,
		},
		Labels:    v.flags.labels,
		KeepNodes: v.keepNodes,
		UserAgent: "cluster-api-provider-vcd-cpi/" + version.String(),
		NodeIDs:   func() []string { return vsphereNodes(h.nodes) },
		Observe: func(vCenter string, err error) {
			requests.WithLabelValues(vCenter, map[bool]string{true: "answered", false: "failed"}[err == nil]).Inc()
		},
	}
	for _, name := range slices.Sorted(maps.Keys(v.VCenters)) {
		o.VCenters = append(o.VCenters, v.vCenter(name, h))
	}
	machines := cpivsphere.NewMachines(o)
	return &backend{Backend: cpi.Backend{
		Name:     cpivsphere.ProviderName,
		Machines: machines,
		Explain:  cpivsphere.Explain,
		Parts:    []cpi.Starter{machines},
		Close:    machines.Close,
	}}, nil
}

func (v *vsphereCloud) vCenter(name string, h host) cpivsphere.VCenter {
	c := v.VCenters[name]
	n := v.Nodes
	out := cpivsphere.VCenter{
		Name:        name,
		Host:        c.Server,
		Port:        c.Port,
		Insecure:    c.Insecure,
		CAFile:      c.CAFile,
		Thumbprint:  c.Thumbprint,
		RoundTrips:  c.RoundTrips,
		Datacenters: c.Datacenters,
		Credentials: v.source(c, h).Current,
		Addresses: cpivsphere.AddressPolicy{
			Internal: cpivsphere.Selection{
				CIDRs:   n.InternalCIDRs,
				Network: n.InternalNetwork,
				Exclude: n.ExcludeInternal,
			},
			External: cpivsphere.Selection{
				CIDRs:   n.ExternalCIDRs,
				Network: n.ExternalNetwork,
				Exclude: n.ExcludeExternal,
			},
		},
	}
	for _, family := range c.Families {
		out.Addresses.Families = append(out.Addresses.Families, map[string]corev1.IPFamily{
			"ipv4": corev1.IPv4Protocol,
			"ipv6": corev1.IPv6Protocol,
		}[family])
	}
	return out
}

func vsphereNodes(lister corelisters.NodeLister) []string {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // cannot happen: the lister reads a cache
	}
	return cpivsphere.NodeIDs(all)
}

// readConfig reads the configuration file. If optional is set, the file may be missing, because the environment may
// contain the whole configuration.
func readConfig(path string, optional bool) ([]byte, error) {
	file, err := os.ReadFile(path) //nolint:gosec // the administrator names the file
	if optional && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

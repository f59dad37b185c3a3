// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/kubevip"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/wirelog"
)

// minTaskPoll and maxTaskPoll limit the interval for polling running tasks.
const minTaskPoll, maxTaskPoll = 10 * time.Millisecond, time.Minute

// vcdFlags are the flags of VMware Cloud Director.
type vcdFlags struct{ wireLog, taskPoll time.Duration }

// vcdProvider returns VMware Cloud Director's entry in the registry.
func vcdProvider() provider {
	f := &vcdFlags{}
	return provider{name: cpivcd.ProviderName, flags: f.add, validate: f.validate, load: f.load}
}

func (f *vcdFlags) add(fs *pflag.FlagSet) {
	fs.DurationVar(&f.wireLog, "vcd-wire-log-duration", 10*time.Minute, "Duration of the request log after the signal SIGUSR1; a second signal ends it. At --v=7 all requests to VCD are logged.")
	fs.DurationVar(&f.taskPoll, "vcd-task-poll", 750*time.Millisecond,
		"Interval for polling running tasks, all with one request.")
}

func (f *vcdFlags) validate() error {
	if f.taskPoll < minTaskPoll || f.taskPoll > maxTaskPoll {
		return fmt.Errorf("--vcd-task-poll: is %s, but must be from %s to %s", f.taskPoll, minTaskPoll, maxTaskPoll)
	}
	return nil
}

func (f *vcdFlags) load(from source) (*configuration, error) {
	c, warnings, err := vcdconfig.Parse(from.file, from.env)
	if err != nil {
		return nil, err
	}
	v := &vcdCloud{flags: f, Config: c}
	b := c.LoadBalancer
	files := cpivcd.NewCredentials(from.credentials, c.VCD, time.Now)
	out := &configuration{
		manifest: addons.ManifestName,
		warnings: warnings,
		about:    []any{"site", c.VCD.Host, "org", c.VCD.Org, "cluster", c.ClusterID},
		settings: cpi.Settings{
			Addresses: addressPolicy(c.Nodes.Addresses),
			MaxAge:    c.Nodes.MaxAge.Duration,
			Class:     b.Class,
			ClassOnly: b.ClassOnly,
			Drift:     b.DriftInterval.Duration,
		},
		open: func(h host) (*backend, error) { return v.open(h, files.Current) },
	}
	if c.VCD.ServiceAccountSecret == "" {
		out.credentials = func() error {
			_, _, err := files.Current()
			return err
		}
	}
	return out, nil
}

// A vcdCloud is VMware Cloud Director with its configuration.
type vcdCloud struct {
	vcdconfig.Config

	flags *vcdFlags
}

func (v *vcdCloud) open(h host, credentials func() (vcd.Credentials, string, error)) (*backend, error) {
	c := v.VCD
	pool := vcd.NewPool(vcd.PoolOptions{
		Metrics:           legacyregistry.Registerer(),
		UserAgent:         "cluster-api-provider-vcd-cpi/" + version.String(),
		RequestsPerSecond: c.RequestsPerSecond,
		Burst:             c.Burst,
		InFlight:          c.InFlight,
		RequestTimeout:    c.RequestTimeout.Duration,
		TaskPoll:          v.flags.taskPoll,
	})
	wire := wirelog.New(klog.Background().WithName("vcd"), wirelog.Wanted(os.Getenv), pool.SetWireLog, clock.RealClock{})
	wire.OnSignal(wait.ContextForChannel(h.stop), v.flags.wireLog)
	site := vcd.Config{Site: c.Host, Org: c.Org, CABundle: []byte(c.CABundle), Insecure: c.InsecureSkipVerify}
	sessions := cpivcd.NewSessions(pool, site, credentials)
	if name := c.ServiceAccountSecret; name != "" {
		sessions.As(vcd.NewServiceAccount(cpivcd.NewTokenSecret(h.client.CoreV1().Secrets(h.namespace), name)))
	}
	out := &backend{
		Backend: cpi.Backend{
			Name:     cpivcd.ProviderName,
			Machines: cpivcd.NewMachines(v.machineOptions(sessions, h.nodes)),
			Explain:  cpivcd.Explain(c.Host),
			Close:    pool.Close,
		},
		debug: map[string]http.Handler{wirelog.Path: wire.Handler(v.flags.wireLog)},
	}
	if !v.LoadBalancer.Disabled() {
		v.addBalancer(out, sessions)
	}
	if v.LoadBalancer.KubeVIP.Enabled() {
		out.Parts = append(out.Parts, v.assigner(h))
	}
	return out, nil
}

// assigner returns the assigner of the addresses that kube-vip announces for Services.
func (v *vcdCloud) assigner(h host) *kubevip.Assigner {
	kube := v.LoadBalancer.KubeVIP
	options := kubevip.Options{
		Client:      h.client,
		Namespace:   h.namespace,
		Services:    h.informers.Services().Informer(),
		Nodes:       h.nodes,
		NodesSynced: h.informers.Nodes().Informer().HasSynced,
		Recorder:    h.recorder,
		Class:       kube.Class,
		Reserved:    v.LoadBalancer.ReservedAddresses,
	}
	for _, r := range kube.AddressRanges {
		options.Ranges = append(options.Ranges, kubevip.Range{First: r.StartIP, Last: r.EndIP})
	}
	return kubevip.New(options)
}

// addBalancer adds load balancers, and their report in the runtime defined entity.
func (v *vcdCloud) addBalancer(to *backend, sessions *cpivcd.Sessions) {
	b := v.LoadBalancer
	gateways := v.LoadBalancer.AllGateways()
	dialect := &cpivcd.Dialect{
		Certificate:    b.CertAlias,
		EngineGroup:    b.EngineGroup,
		Algorithm:      b.Algorithm,
		Gateways:       gateways,
		Reserved:       b.ReservedAddresses,
		TLSAsAnnotated: b.TLSPorts == vcdconfig.TLSPortsAnnotated,
	}
	to.Services = dialect.Defaults(v.ClusterID, b.SourceRanges, b.IncludeControlPlane)
	options := cpivcd.BalancerOptions{
		Session:   sessions.Session,
		Driver:    edge.New(sessions.Session, edge.Options{SourceRanges: b.SourceRanges}),
		ClusterID: v.ClusterID,
		VDCs:      v.VCD.VDCs,
		Gateways:  gateways,
	}
	if id := v.RDE.ID; id != "" {
		report := cpivcd.ReporterOptions{Session: sessions.Session, ID: id, Version: version.String()}
		options.Reporter = cpivcd.NewReporter(report)
		to.Parts = append(to.Parts, options.Reporter)
		logout := to.Close
		to.Close = func(ctx context.Context) error {
			flush(ctx, options.Reporter)
			return logout(ctx)
		}
	}
	to.Balancer = cpivcd.NewBalancer(options)
}

// flush writes pending reports. It uses at most half of the close timeout, so that the logout has the rest.
func flush(ctx context.Context, r *cpivcd.Reporter) {
	limited, cancel := context.WithTimeout(ctx, closeTimeout/2)
	defer cancel()
	if err := r.Flush(limited); err != nil {
		klog.V(2).InfoS("Skipped writing to the runtime defined entity", "reason", err.Error())
	}
}

func (v *vcdCloud) machineOptions(sessions *cpivcd.Sessions, nodes corelisters.NodeLister) cpivcd.MachineOptions {
	n := v.Nodes
	o := cpivcd.MachineOptions{
		Session:       sessions.Session,
		ClusterID:     v.ClusterID,
		VDCs:          v.VCD.VDCs,
		VApps:         n.VApps,
		Prefix:        n.VAppNamePrefix,
		Region:        n.Region,
		NoDefaultZone: n.DefaultZone == vcdconfig.DefaultZoneNone,
		Nodes:         func() cpivcd.Nodes { return nodesOf(nodes) },
	}
	for _, zone := range n.Zones {
		o.Zones = append(o.Zones, cpivcd.Zone(zone))
	}
	return o
}

// nodesOf returns the provider IDs of the Nodes, and the names of the Nodes without one.
func nodesOf(lister corelisters.NodeLister) cpivcd.Nodes {
	var out cpivcd.Nodes
	all, err := lister.List(labels.Everything())
	if err != nil {
		return out // cannot happen: the lister reads a cache
	}
	for _, node := range all {
		switch {
		case node.Spec.ProviderID == "":
			out.Nameless = append(out.Nameless, node.Name)
		case strings.HasPrefix(strings.ToLower(node.Spec.ProviderID), cpivcd.ProviderName+"://"):
			out.ProviderIDs = append(out.ProviderIDs, node.Spec.ProviderID)
		}
	}
	return out
}

func addressPolicy(a vcdconfig.Addresses) cpi.AddressPolicy {
	return cpi.AddressPolicy{
		Internal: cpi.Selection(a.Internal),
		External: cpi.Selection(a.External),
		IPv4:     1 + slices.Index(a.Families, corev1.IPv4Protocol),
		IPv6:     1 + slices.Index(a.Families, corev1.IPv6Protocol),
	}
}

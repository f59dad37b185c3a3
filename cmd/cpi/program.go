package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/wirelog"
)

const (
	// logoutTimeout is how long sessions may take to be closed at the end.
	logoutTimeout = 5 * time.Second
	// minTaskPoll and maxTaskPoll bound how often running tasks are asked for.
	minTaskPoll, maxTaskPoll = 10 * time.Millisecond, time.Minute
)

// A program is what the configuration makes of the flags.
type program struct {
	flags       *ourFlags
	config      vcdconfig.Config
	warnings    []string
	credentials *ccmconfig.Files[vcd.Credentials]

	closing  sync.Once
	pool     *vcd.Pool
	reporter *cpivcd.Reporter // nil: none
}

// load reads the configuration: what is wrong with it does not heal while we run.
func load(path string, flags *ourFlags, clusterID string) (*program, error) {
	if flags.taskPoll < minTaskPoll || flags.taskPoll > maxTaskPoll {
		return nil, fmt.Errorf("--vcd-task-poll: is %s, but must be from %s to %s", flags.taskPoll, minTaskPoll, maxTaskPoll)
	}
	file, err := os.ReadFile(path) //nolint:gosec // the administrator's choice
	if err != nil {
		return nil, fmt.Errorf("--cloud-config: %w", err)
	}
	if flags.clusterID != "" && clusterID == "" {
		id, err := os.ReadFile(flags.clusterID)
		if err != nil {
			return nil, fmt.Errorf("--cluster-id-file: %w", err)
		}
		clusterID = string(id)
	}
	getenv := func(string) string { return clusterID }
	c, warnings, err := vcdconfig.Parse(file, ccmconfig.Environment{Getenv: getenv, ReadFile: os.ReadFile})
	if err != nil {
		return nil, fmt.Errorf("the configuration %s is wrong:\n%w", path, err)
	}
	return &program{flags: flags, config: c, warnings: warnings, credentials: cpivcd.NewCredentials(flags.credentials, c.VCD, time.Now)}, nil
}

// validate says what is to be known of the configuration and the credentials.
func (p *program) validate(to io.Writer) error {
	for _, warning := range p.warnings {
		fmt.Fprintln(to, "warning:", warning)
	}
	if p.config.VCD.ServiceAccountSecret == "" {
		if _, _, err := p.credentials.Current(); err != nil {
			return err
		}
	}
	fmt.Fprintln(to, "The configuration is right.")
	return nil
}

// cloud makes the provider. It ends by itself when stop is closed, but for [program.close].
func (p *program) cloud(c *cloudconfig.CompletedConfig, stop <-chan struct{}) (cloudprovider.Interface, error) {
	klog.InfoS("Starting the cloud controller manager", "version", version.Long(), "site", p.config.VCD.Host, "org", p.config.VCD.Org, "cluster", p.config.ClusterID)
	for _, warning := range p.warnings {
		klog.InfoS("Configuration", "warning", warning)
	}
	v := p.config.VCD
	p.pool = vcd.NewPool(vcd.PoolOptions{
		Metrics: legacyregistry.Registerer(), UserAgent: "cluster-api-provider-vcd-cpi/" + version.String(),
		RequestsPerSecond: v.RequestsPerSecond, Burst: v.Burst, InFlight: v.InFlight, RequestTimeout: v.RequestTimeout.Duration, TaskPoll: p.flags.taskPoll,
	})
	p.closeOnExit()
	wire := wirelog.New(klog.Background().WithName("vcd"), p.pool.SetWireLog, clock.RealClock{})
	wire.OnSignal(wait.ContextForChannel(stop), p.flags.wireLog)

	nodes := c.SharedInformers.Core().V1().Nodes().Lister()
	site := vcd.Config{Site: v.Host, Org: v.Org, CABundle: []byte(v.CABundle), Insecure: v.InsecureSkipVerify}
	sessions := cpivcd.NewSessions(p.pool, site, p.credentials.Current)
	if name := p.config.VCD.ServiceAccountSecret; name != "" {
		sessions.As(vcd.NewServiceAccount(cpivcd.NewTokenSecret(c.Client.CoreV1().Secrets(p.flags.namespace), name)))
	}
	backend := cpi.Backend{
		Name: cpivcd.ProviderName, Machines: cpivcd.NewMachines(machineOptions(p.config, sessions, nodes)), Services: serviceDefaults(p.config),
		Explain: cpivcd.Explain(v.Host),
	}
	if b := p.config.LoadBalancer; !b.Disabled() {
		backend.Balancer = p.balancer(sessions)
	}
	if p.reporter != nil {
		backend.Parts = append(backend.Parts, p.reporter)
	}
	ready := &readiness{}
	backend.Parts = append(backend.Parts, ready)
	b := p.config.LoadBalancer
	cloud, err := cpi.New(cpi.Options{
		Backend: backend, Client: c.Client, Informers: c.SharedInformers, Recorder: c.EventRecorder, Self: p.flags.self(), Metrics: legacyregistry.Registerer(),
		Settings: cpi.Settings{
			Addresses: addressPolicy(p.config.Nodes), MaxAge: p.config.Nodes.MaxAge.Duration, Drift: b.DriftInterval.Duration,
			Class: b.Class, ClassOnly: b.ClassOnly,
		},
	})
	if err != nil {
		return nil, err
	}
	ready.machines = cloud.Machines()
	if err := serveProbes(c, p.flags.probes, ready, wire.Handler(p.flags.wireLog), stop); err != nil {
		return nil, err
	}
	return cloud, nil
}

// closeOnExit makes sessions end, too, when k8s.io/cloud-provider ends the process: when the lease is lost, or by a fatal error.
func (p *program) closeOnExit() {
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		_ = p.close()
		exit(code)
	}
}

// close writes down what was noted last, and logs out.
func (p *program) close() (err error) {
	p.closing.Do(func() {
		if p.pool == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), logoutTimeout)
		defer cancel()
		if p.reporter != nil {
			p.flush(ctx)
		}
		err = p.pool.Close(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // VCD ends sessions by itself, too
	}
	return err
}

// flush has the record written. Half of the time is left for the logout.
func (p *program) flush(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, logoutTimeout/2)
	defer cancel()
	if err := p.reporter.Flush(limited); err != nil {
		klog.V(2).InfoS("Not written to the runtime defined entity", "reason", err.Error())
	}
}

func machineOptions(c vcdconfig.Config, sessions *cpivcd.Sessions, nodes corelisters.NodeLister) cpivcd.MachineOptions {
	o := cpivcd.MachineOptions{
		Session: sessions.Session, ClusterID: c.ClusterID, VDCs: c.VCD.VDCs, VApps: c.Nodes.VApps, Prefix: c.Nodes.VAppNamePrefix, Region: c.Nodes.Region,
		Nodes: func() cpivcd.Nodes { return nodesOf(nodes) },
	}
	for _, zone := range c.Nodes.Zones {
		o.Zones = append(o.Zones, cpivcd.Zone(zone))
	}
	return o
}

// nodesOf returns what Nodes say of their machines.
func nodesOf(lister corelisters.NodeLister) cpivcd.Nodes {
	var out cpivcd.Nodes
	all, err := lister.List(labels.Everything())
	if err != nil {
		return out // cannot happen: it is read from memory
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

func addressPolicy(n vcdconfig.Nodes) cpi.AddressPolicy {
	policy := cpi.AddressPolicy{Internal: cpi.Selection(n.Addresses.Internal), External: cpi.Selection(n.Addresses.External)}
	for i, family := range n.Addresses.Families {
		switch family {
		case corev1.IPv4Protocol:
			policy.IPv4 = i + 1
		case corev1.IPv6Protocol:
			policy.IPv6 = i + 1
		}
	}
	return policy
}

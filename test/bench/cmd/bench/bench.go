// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	clusterNamespace = "default"
	// pollEvery and pollPerMachine determine the interval between reads of all objects. It is long and grows with their
	// number, so that reads do not slow down Cluster API and the API server.
	pollEvery      = 2 * time.Second
	pollPerMachine = 2 * time.Millisecond
)

// A bench is one run of the benchmark.
type bench struct {
	options

	out   io.Writer
	began time.Time

	site       *simsite.Site
	management *framework.ManagementCluster
	client     client.Client
}

func (b *bench) run(ctx context.Context) (result, error) {
	if err := b.start(ctx); err != nil {
		return result{}, err
	}
	machines := b.clusters * (b.controlPlanes + b.workers)
	creation, err := b.measure(func() error { return b.create(ctx, machines) })
	if err != nil {
		return result{}, err
	}
	r, err := b.result(machines, creation)
	if err != nil {
		return result{}, err
	}
	if b.rest > 0 {
		b.logf("all machines are up; measuring the rest for %s after %s", b.rest, settle)
		if err := b.wait(ctx, settle); err != nil {
			return r, err
		}
		r.Rest, err = b.measure(func() error { return b.wait(ctx, b.rest) })
	}
	return r, err
}

// create creates all clusters and waits until their machines are up.
func (b *bench) create(ctx context.Context, machines int) error {
	began := time.Now()
	if err := b.createClusters(ctx); err != nil {
		return err
	}
	b.logf("all objects created after %.0f s", time.Since(began).Seconds())
	return b.await(ctx, machines)
}

// settle is the time between the creation and the rest, in which controllers finish their last reconciles.
const settle = 30 * time.Second

// measure returns the resources that a function used.
func (b *bench) measure(work func() error) (spent, error) {
	before, err := b.use()
	if err != nil {
		return spent{}, err
	}
	if err := work(); err != nil {
		return spent{}, err
	}
	after, err := b.use()
	return after.since(before), err
}

// wait waits while the manager runs.
func (b *bench) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-b.management.Failed():
		return err
	case <-time.After(d):
		return nil
	}
}

// start starts the simulator and a management cluster with this provider.
func (b *bench) start(ctx context.Context) error {
	var err error
	b.site, err = simsite.Start(context.WithoutCancel(ctx), b.dir, model(), func(c *vcdsim.Config) {
		c.Profile = b.profile
		c.Log = nil
		if b.setup == setupMachines {
			c.Guest = nil
		}
	})
	if err != nil {
		return err
	}
	opts := framework.Options{
		Out:                 b.out,
		ManagerArgs:         b.managerArgs,
		StorageVersionsOnly: b.storedOnly,
	}
	if b.setup == setupMachines {
		opts.Parts = []stack.Part{stack.Core}
	}
	if b.profiler != "" {
		opts.ManagerArgs = append(opts.ManagerArgs, "--profiler-address="+b.profiler)
	}
	if b.management, err = b.site.NewManagementCluster(ctx, opts); err != nil {
		return fmt.Errorf("starting the management cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		infrav1.AddToScheme(scheme)); err != nil {
		return err
	}
	access := b.management.RESTConfig()
	access.QPS = 200
	access.Burst = 400
	b.client, err = client.New(access, client.Options{Scheme: scheme})
	return err
}

// model returns a tenant with addresses for many machines.
func model() vcdsim.Model {
	model := vcdsim.K8sTenant()
	nodes := &model.Orgs[1].VDCs[0].Networks[0]
	nodes.Gateway = netip.MustParsePrefix("10.0.0.1/16")
	nodes.StaticPool = []vcdsim.Range{{From: netip.MustParseAddr("10.0.1.0"), To: netip.MustParseAddr("10.0.99.255")}}
	nodes.DHCPPool = nil
	return model
}

// await waits until all machines are ready and, in setup full, all clusters are available.
func (b *bench) await(ctx context.Context, machines int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.timeout,
		fmt.Errorf("the clusters were not ready within %s", b.timeout))
	defer cancel()
	ticker := time.NewTicker(pollEvery + time.Duration(machines)*pollPerMachine)
	defer ticker.Stop()
	reported := time.Now()
	for {
		p, err := b.progress(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("listing the clusters: %w", err)
		}
		if p.complete(b, machines) {
			return nil
		}
		if time.Since(reported) > 20*time.Second {
			reported = time.Now()
			b.logf("%s", p)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), p)
		case err := <-b.management.Failed():
			return err
		case <-ticker.C:
		}
	}
}

// progress counts the objects that are complete.
type progress struct {
	vms       int // ready VCDMachines
	nodes     int // Machines with a Node
	available int // available Clusters
	problem   string
}

// String implements fmt.Stringer.
func (p progress) String() string {
	return fmt.Sprintf("VCDMachines ready %d, nodes %d, clusters available %d; %s", p.vms, p.nodes, p.available,
		p.problem)
}

func (p progress) complete(b *bench, machines int) bool {
	if b.setup == setupMachines {
		return p.vms == machines
	}
	return p.vms == machines && p.nodes == machines && p.available == b.clusters
}

func (b *bench) progress(ctx context.Context) (progress, error) {
	var p progress
	vms := &infrav1.VCDMachineList{}
	machines := &clusterv1.MachineList{}
	clusters := &clusterv1.ClusterList{}
	lists := []client.ObjectList{vms}
	if b.setup == setupFull {
		lists = append(lists, machines, clusters)
	}
	for _, list := range lists {
		if err := b.client.List(ctx, list, client.InNamespace(clusterNamespace)); err != nil {
			return p, err
		}
	}
	for i := range vms.Items {
		switch c := conditions.Get(&vms.Items[i], clusterv1.ReadyCondition); {
		case c == nil:
		case c.Status == metav1.ConditionTrue:
			p.vms++
		default:
			p.problem = vms.Items[i].Name + ": " + c.Reason + ": " + c.Message
		}
	}
	p.nodes = count(machines.Items, func(m *clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() })
	p.available = count(clusters.Items,
		func(c *clusterv1.Cluster) bool { return conditions.IsTrue(c, clusterv1.AvailableCondition) })
	return p, nil
}

// count returns the number of matching items.
func count[T any](items []T, wanted func(*T) bool) int {
	n := 0
	for i := range items {
		if wanted(&items[i]) {
			n++
		}
	}
	return n
}

// logf prints a line with the time since the start.
func (b *bench) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, "[%4.0fs] %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// close stops everything that was started.
func (b *bench) close() error {
	if b.site == nil {
		return nil
	}
	return b.site.Close()
}

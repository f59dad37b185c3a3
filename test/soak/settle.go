// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A view is all objects of the clusters at one time.
type view struct {
	clusters     clusterv1.ClusterList
	planes       controlplanev1.KubeadmControlPlaneList
	deployments  clusterv1.MachineDeploymentList
	machines     clusterv1.MachineList
	vcdClusters  infrav1.VCDClusterList
	vcdMachines  infrav1.VCDMachineList
	services     corev1.ServiceList
	vmsOfSites   int
	poolsOfSites map[string][]string // addresses of members by address of the virtual service and site
}

func (w *world) view(ctx context.Context) (*view, error) {
	v := &view{poolsOfSites: map[string][]string{}}
	for _, list := range []client.ObjectList{
		&v.clusters,
		&v.planes,
		&v.deployments,
		&v.machines,
		&v.vcdClusters,
		&v.vcdMachines,
		&v.services,
	} {
		if err := w.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing objects: %w", err)
		}
	}
	for _, s := range w.sites {
		state := s.State()
		v.vmsOfSites += len(state.VMs)
		for address, members := range members(&state) {
			v.poolsOfSites[s.URL()+" "+address] = members
		}
	}
	return v, nil
}

// members returns the addresses of the members of each virtual service's pool, sorted, by address. The members of a pool
// are in the pool, or in an IP set.
func members(state *vcdsim.State) map[string][]string {
	sets := map[string][]string{}
	pools := map[string]pool{}
	for i := range state.Documents {
		d := &state.Documents[i]
		switch {
		case strings.HasSuffix(d.Path, "/loadBalancer/pools"):
			var p pool
			if json.Unmarshal(d.Body, &p) == nil {
				pools[d.ID] = p
			}
		case strings.HasSuffix(d.Path, "/firewallGroups"):
			var set struct {
				Addresses []string `json:"ipAddresses"`
			}
			if json.Unmarshal(d.Body, &set) == nil {
				sets[d.ID] = set.Addresses
			}
		}
	}
	out := map[string][]string{}
	for address, service := range virtualServices(state) {
		p := pools[service.Pool.ID]
		found := slices.Clone(sets[p.Group.ID])
		for _, m := range p.Members {
			found = append(found, m.Address)
		}
		slices.Sort(found)
		out[address] = found
	}
	return out
}

// A pool is the part of a pool that judges read.
type pool struct {
	Members []struct {
		Address string `json:"ipAddress"`
	} `json:"members"`
	Group struct {
		ID string `json:"id"`
	} `json:"memberGroupRef"`
}

// unsettled returns, by cluster, the reason why a cluster is not as its spec requires.
func (v *view) unsettled() map[string]string {
	out := map[string]string{}
	want := map[string]int{}
	for i := range v.planes.Items {
		p := &v.planes.Items[i]
		want[p.Labels[clusterv1.ClusterNameLabel]] += int(*p.Spec.Replicas)
	}
	for i := range v.deployments.Items {
		d := &v.deployments.Items[i]
		want[d.Spec.ClusterName] += int(*d.Spec.Replicas)
	}
	has := map[string]int{}
	for i := range v.machines.Items {
		m := &v.machines.Items[i]
		has[m.Spec.ClusterName]++
		if c := conditions.Get(m, clusterv1.ReadyCondition); c == nil || c.Status != metav1.ConditionTrue {
			out[m.Spec.ClusterName] = fmt.Sprintf("Machine %s: %s", m.Name, described(c))
		}
	}
	for i := range v.clusters.Items {
		c := &v.clusters.Items[i]
		available := conditions.Get(c, clusterv1.AvailableCondition)
		switch {
		case !c.DeletionTimestamp.IsZero():
			out[c.Name] = "is still being deleted"
		case has[c.Name] != want[c.Name]:
			out[c.Name] = fmt.Sprintf("has %d Machines, not %d", has[c.Name], want[c.Name])
		case available == nil || available.Status != metav1.ConditionTrue:
			out[c.Name] = described(available)
		}
	}
	maps.Copy(out, v.wrongPools())
	maps.Copy(out, v.unservedServices())
	if total := len(v.machines.Items); len(out) == 0 && v.vmsOfSites != total {
		out[""] = fmt.Sprintf("%d VMs exist for %d Machines", v.vmsOfSites, total)
	}
	return out
}

// described formats a condition for messages.
func described(c *metav1.Condition) string {
	if c == nil {
		return "has no condition yet"
	}
	return fmt.Sprintf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// wrongPools returns the clusters whose endpoint at an edge gateway does not lead to all their control planes.
func (v *view) wrongPools() map[string]string {
	planes := map[string][]string{}
	for i := range v.vcdMachines.Items {
		m := &v.vcdMachines.Items[i]
		if _, isPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !isPlane || len(m.Status.NICs) == 0 {
			continue
		}
		cluster := m.Labels[clusterv1.ClusterNameLabel]
		planes[cluster] = append(planes[cluster], m.Status.NICs[0].Address)
	}
	out := map[string]string{}
	for i := range v.vcdClusters.Items {
		c := &v.vcdClusters.Items[i]
		if c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointEdgeGateway {
			continue
		}
		want := planes[c.Name]
		slices.Sort(want)
		has := v.poolsOfSites[c.Spec.Site+" "+c.Spec.ControlPlaneEndpoint.Host]
		if !slices.Equal(has, want) {
			out[c.Name] = fmt.Sprintf("its endpoint %s leads to %v, and its control planes have %v",
				c.Spec.ControlPlaneEndpoint.Host, has, want)
		}
	}
	return out
}

// unservedServices returns the clusters with a Service whose load balancer does not lead to all nodes of the cluster.
func (v *view) unservedServices() map[string]string {
	nodes := map[string][]string{}
	sites := map[string]string{}
	for i := range v.vcdClusters.Items {
		sites[v.vcdClusters.Items[i].Name] = v.vcdClusters.Items[i].Spec.Site
	}
	for i := range v.vcdMachines.Items {
		m := &v.vcdMachines.Items[i]
		_, isPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		if !isPlane && len(m.Status.NICs) > 0 {
			cluster := m.Labels[clusterv1.ClusterNameLabel]
			nodes[cluster] = append(nodes[cluster], m.Status.NICs[0].Address)
		}
	}
	out := map[string]string{}
	for i := range v.services.Items {
		s := &v.services.Items[i]
		cluster := s.Labels[clusterLabel]
		if cluster == "" || len(nodes[cluster]) == 0 || !s.DeletionTimestamp.IsZero() {
			continue // Without workers, a Service has no members.
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			out[cluster] = fmt.Sprintf("Service %s has no address", s.Name)
			continue
		}
		slices.Sort(nodes[cluster])
		address := s.Status.LoadBalancer.Ingress[0].IP
		has := v.poolsOfSites[sites[cluster]+" "+address]
		if !slices.Equal(has, nodes[cluster]) {
			out[cluster] = fmt.Sprintf("Service %s at %s leads to %v, and its workers have %v", s.Name, address, has,
				nodes[cluster])
		}
	}
	return out
}

// converge waits until all clusters are as their specs require. It reports each that is not within the bound.
func (w *world) converge(ctx context.Context) error {
	began := time.Now()
	for looks := 0; ; looks++ {
		v, err := w.view(ctx)
		if err != nil {
			return err
		}
		left := v.unsettled()
		if reason := w.cloudStack.unsettled(v.services.Items); reason != "" {
			left[cloudStackName] = reason
		}
		if len(left) == 0 {
			w.logf("all %d clusters with %d Machines are ready %s after the last fault", len(v.clusters.Items),
				len(v.machines.Items), time.Since(began).Round(time.Second))
			return nil
		}
		if time.Since(began) > w.bound {
			w.reportUnsettled(v, left)
			return nil
		}
		if looks%15 == 0 {
			first := slices.Sorted(maps.Keys(left))[0]
			w.logf("%d clusters are not ready yet; %s: %s", len(left), or(first, "(all)"), left[first])
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// reportUnsettled reports the clusters that are not ready, with the last changes of their sites.
func (w *world) reportUnsettled(v *view, left map[string]string) {
	for _, cluster := range slices.Sorted(maps.Keys(left)) {
		found := violation{
			At:      w.now(),
			Cluster: cluster,
			Text:    fmt.Sprintf("not ready %s after the last fault: %s", w.bound, left[cluster]),
		}
		for i := range v.vcdClusters.Items {
			for _, s := range w.sites {
				if c := &v.vcdClusters.Items[i]; c.Name == cluster && c.Spec.Site == s.URL() {
					found.Calls = lastCalls(s.Requests(), "")
				}
			}
		}
		w.judge.report(found)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// restPeriod is how long the calls at rest are counted.
const restPeriod = syncPeriod

// maxRest is the maximum number of calls at rest per second, site and manager.
const maxRest = 1.0

// rest counts the calls to all sites at rest.
func (w *world) rest(ctx context.Context) error {
	if err := pause(ctx, 20*time.Second); err != nil { // the last changes end
		return err
	}
	before := w.calls()
	if err := pause(ctx, restPeriod); err != nil {
		return err
	}
	rate := float64(w.calls()-before) / restPeriod.Seconds()
	w.logf("at rest, the sites receive %.2f calls per second", rate)
	if bound := maxRest * float64(len(w.sites)*len(w.managers)); rate > bound {
		text := fmt.Sprintf("%.2f calls per second at rest, more than %.2f", rate, bound)
		w.judge.report(violation{At: w.now(), Text: text})
	}
	return nil
}

// calls returns the number of calls to all sites so far.
func (w *world) calls() int {
	total := 0
	for _, s := range w.sites {
		for _, n := range s.Counters() {
			total += n
		}
	}
	return total
}

// removeAll deletes all clusters, and reports what is not gone within the bound.
func (w *world) removeAll(ctx context.Context) error {
	if err := w.deleteHalfOfServices(ctx); err != nil {
		return err
	}
	for _, shard := range shards() {
		err := retryRequest(ctx, func() error {
			return w.client.DeleteAllOf(ctx, &clusterv1.Cluster{}, client.InNamespace(shard))
		})
		if err != nil {
			return fmt.Errorf("deleting all clusters: %w", err)
		}
	}
	began := time.Now()
	for {
		v, err := w.view(ctx)
		if err != nil {
			return err
		}
		if len(v.clusters.Items)+len(v.vcdClusters.Items)+len(v.vcdMachines.Items) == 0 {
			w.logf("all clusters are deleted after %s", time.Since(began).Round(time.Second))
			return nil
		}
		if time.Since(began) > w.bound {
			w.reportRemaining(v)
			return nil
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// deleteHalfOfServices deletes every second Service. The others remain until their clusters are gone.
func (w *world) deleteHalfOfServices(ctx context.Context) error {
	list := &corev1.ServiceList{}
	err := retryRequest(ctx, func() error { return w.client.List(ctx, list, client.HasLabels{clusterLabel}) })
	if err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	for i := range list.Items {
		if i%2 == 0 || list.Items[i].Namespace == cloudStackNamespace {
			continue
		}
		err := retryRequest(ctx, func() error { return client.IgnoreNotFound(w.client.Delete(ctx, &list.Items[i])) })
		if err != nil {
			return fmt.Errorf("deleting Service %s: %w", list.Items[i].Name, err)
		}
	}
	return nil
}

func (w *world) reportRemaining(v *view) {
	for i := range v.vcdClusters.Items {
		c := &v.vcdClusters.Items[i]
		w.judge.report(violation{
			At:      w.now(),
			Cluster: c.Name,
			Text:    fmt.Sprintf("not deleted within %s: %s", w.bound, described(conditions.Get(c, "Deleting"))),
		})
	}
	for i := range v.vcdMachines.Items {
		m := &v.vcdMachines.Items[i]
		w.judge.report(violation{
			At:      w.now(),
			Cluster: m.Labels[clusterv1.ClusterNameLabel],
			Text:    fmt.Sprintf("machine %s is not deleted within %s", m.Name, w.bound),
		})
	}
}

// panics reports the panics in the logs of all programs, and the programs that ended by themselves.
func (w *world) panics() error {
	select {
	case err := <-w.management.Failed():
		w.judge.report(violation{At: w.now(), Text: err.Error()})
	default:
	}
	logs, err := filepath.Glob(filepath.Join(w.logs(), "*.log"))
	if err != nil {
		return fmt.Errorf("listing the logs: %w", err)
	}
	for _, path := range logs {
		content, err := os.ReadFile(path) //nolint:gosec // a log of this run
		if err != nil {
			return fmt.Errorf("reading a log: %w", err)
		}
		for line := range strings.Lines(string(content)) {
			if strings.HasPrefix(line, "panic: ") || strings.Contains(line, "Observed a panic") {
				w.judge.report(violation{At: w.now(), Text: fmt.Sprintf("%s: %s", filepath.Base(path), line)})
				break
			}
		}
	}
	return nil
}

// compare reports the differences between the sites now and before the run.
func (w *world) compare() error {
	for _, s := range w.sites {
		s.restoreCredentials()
		after, err := inventory(s.State())
		if err != nil {
			return err
		}
		for _, text := range differences(s.before, after) {
			w.judge.report(violation{At: w.now(), Text: fmt.Sprintf("site %d: %s", s.index, text)})
		}
		for _, route := range s.Unhandled() {
			w.judge.report(violation{At: w.now(), Text: "the simulator does not support " + route})
		}
	}
	return nil
}

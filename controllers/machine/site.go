// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// A site describes the missing VMs on the site of a machine, and the machines of other clusters that can provide more
// evidence. The records are read from objects, so that a restart loses none.
type site struct {
	gone.Site

	others    bool                  // VMs of other machines of the cluster are missing
	neighbors []*infrav1.VCDMachine // machines of the site's other clusters, shared with the cache
}

// site returns the state of the site, without the machine itself. It reads all machines without copying them, because it
// runs for each missing VM, and all VMs may be missing.
func (l *lostVM) site(ctx context.Context, me gone.Missing) (*site, error) {
	clusters := &infrav1.VCDClusterList{}
	machines := &infrav1.VCDMachineList{}
	if err := l.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if err := l.client.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	s := &site{Site: gone.Site{
		Machines:     1,
		NotifiedAt:   l.missing.announced,
		Acknowledged: acknowledgedAt(l.inputs.vcdCluster, l.now()),
	}}
	if at := l.inputs.vcdCluster.Spec.RecordedState.LastGoneAt; at != nil {
		s.Released = at.Time
	}
	onSite := s.addClusters(clusters.Items, l.inputs.vcdCluster)
	for i := range machines.Items {
		m := &machines.Items[i]
		cluster := m.Namespace + "/" + m.Labels[clusterv1.ClusterNameLabel]
		if onSite[cluster] && m.Spec.ProviderID != "" && m.UID != l.inputs.vcdMachine.UID {
			s.add(m, cluster, cluster == me.Cluster, l.heldAt(m))
		}
	}
	s.Neighbors = len(s.neighbors) > 0
	return s, nil
}

// addClusters returns the clusters on the site of mine, by namespace and name. It also records whether one of them
// stopped the site.
func (s *site) addClusters(clusters []infrav1.VCDCluster, mine *infrav1.VCDCluster) map[string]bool {
	s.Stopped = mine.Spec.RecordedState.GoneStoppedSince != nil
	onSite := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		if !sites.Same(c.Spec.Site, mine.Spec.Site) {
			continue
		}
		onSite[c.Namespace+"/"+capicluster.Name(c, nil)] = true
		if c.UID != mine.UID {
			at := c.Spec.RecordedState.GoneStoppedSince
			s.Stopped = s.Stopped || at != nil && at.After(s.Acknowledged)
		}
	}
	return onSite
}

// add counts another machine. held is when it was last held back.
func (s *site) add(m *infrav1.VCDMachine, cluster string, mine bool, held time.Time) {
	if mine {
		s.Machines++
	} else {
		s.neighbors = append(s.neighbors, m)
	}
	if missing, ok := missingOf(m, cluster); ok {
		missing.Held = held
		s.Missing = append(s.Missing, missing)
		s.others = s.others || mine
	}
}

// heldAt returns when another machine was last held back although its VM could have been declared gone; zero if it was
// not.
func (l *lostVM) heldAt(m *infrav1.VCDMachine) time.Time {
	if at := l.states.Of(m.UID).missing.held.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// missingOf reads from the records of a machine whether its VM is missing. A VM that a user declared gone does not
// count.
func missingOf(m *infrav1.VCDMachine, cluster string) (gone.Missing, bool) {
	found := gone.Missing{Cluster: cluster, Name: m.Name, Since: absence.Since(m)}
	if since := m.Spec.RecordedState.VMNotFoundSince; since != nil {
		found.Gone = since.Time
	}
	return found, !found.Since.IsZero() && !absence.IsDeclared(m)
}

// acknowledgedAt returns when a user last acknowledged that missing VMs are gone; zero if never. The reconciler of
// VCDClusters replaces "true" with the time, and until then the annotation does not count. Neither does a time in the
// future, which would cover VMs that go missing later.
func acknowledgedAt(c *infrav1.VCDCluster, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, c.Annotations[infrav1.GoneAcknowledgedAnnotation])
	if err != nil || at.After(now) {
		return time.Time{}
	}
	return at
}

// wakeNeighbors makes the machines of the site's other clusters observe their VMs at once, so that a failure of the
// whole site is noticed before the first of its machines counts as gone.
func (l *lostVM) wakeNeighbors(around *site) {
	if !l.missing.announced.IsZero() {
		return
	}
	l.missing.announced = l.now()
	for _, other := range around.neighbors {
		l.states.Of(other.UID).freshness.stale.Store(true)
		l.wakeUps.ForObject(other)()
	}
}

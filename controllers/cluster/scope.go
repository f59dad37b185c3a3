// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// scope holds the inputs of one reconcile of a VCDCluster, and the facts that its phases find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	read       *infrav1.VCDCluster // as the pass found it
	cluster    *clusterv1.Cluster  // nil: deleted
	patcher    *patch.Helper

	session        *session.Session // set by open
	failureDomains failureDomains   // set by findZones
	home                            // set by reconcileNetwork
	unclaimed      phases.Outcome   // warns of a virtual IP that no pool keeps; set by virtualIPs

	requeueAfter time.Duration // although all is complete; zero: not needed
	gone         bool          // the vApp is proved gone; set by deleteVApp
}

// A home is the VDC and the network that a cluster is in, as they were found.
type home struct {
	vdc     vcd.VDC
	network vcd.Network

	by         *session.Machines // the session that found them: another may see others
	generation int64
	until      time.Time
}

// newScope returns nil while c has no owner yet, which one that is deleted does not need, and if c is managed
// externally.
func (r *Reconciler) newScope(ctx context.Context, c *infrav1.VCDCluster) (*scope, error) {
	if session.ExternallyManaged(c) || !session.Watched(c, r.WatchFilterValue) {
		return nil, nil // Not ours.
	}
	if !c.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(c, infrav1.ClusterFinalizer) {
		return nil, nil // Released: its runtime defined entity is deleted last.
	}
	cluster, err := session.OwnerCluster(ctx, r.Client, c)
	if err != nil {
		return nil, err
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() {
		return nil, nil // Not ours yet: the owner reference triggers the next reconcile.
	}
	return &scope{reconciler: r, vcdCluster: c, read: c.DeepCopy(), cluster: cluster}, nil
}

// Established reports whether the cluster was complete once. Machines and load balancers of such a cluster work on
// while VCD cannot be asked.
func (s *scope) Established() bool {
	return s.vcdCluster.DeletionTimestamp.IsZero() && established(s.vcdCluster)
}

// established reports whether a cluster was complete once, here or, by what a move keeps, elsewhere.
func established(c *infrav1.VCDCluster) bool { return ownership.Established(c) }

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}

// open logs in, once per pass.
func (s *scope) open(ctx context.Context) (phases.Outcome, error) {
	if s.session != nil {
		return phases.Done, nil
	}
	opened, out, err := s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, s.vcdCluster)
	s.session = opened
	return out, err
}

// hidden marks the outcome of a look-up: what VCD does not show may be there, and hidden from the user.
func hidden(out phases.Outcome, err error) (phases.Outcome, error) { return out.NoAccess(), err }

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A scope holds the inputs of one reconcile of a VCDCluster, and the facts that its phases find. Only phases have
// access to it. They pass values from it to their steps, and store the results.
type scope struct {
	reconciler *Reconciler
	vcdCluster *infrav1.VCDCluster
	read       *infrav1.VCDCluster // as the pass found it
	cluster    *clusterv1.Cluster  // nil: deleted
	store      *store
	login      *login
	wake       func() // triggers another reconcile
	now        func() time.Time

	session        *session.Session // set by reconcileIdentityReady
	failureDomains failureDomains   // set by reconcileFailureDomains or reconcileNetwork, whichever runs first
	home           home             // set by reconcileNetwork
	requeueAfter   time.Duration    // delay until the next check of a complete cluster; zero: none; set by reconcileEndpoint
	vAppsGone      bool             // whether all vApps are proved gone; set by deleteVApp
}

// open returns an empty entry, which ends the reconcile, if another controller manages the cluster, if it was released,
// or if it has no owner yet. A cluster in deletion needs no owner.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if capicluster.ExternallyManaged(c) || !capicluster.Watched(c, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil // Managed by another controller.
	}
	if !c.DeletionTimestamp.IsZero() && !phases.Holds(c, infrav1.ClusterFinalizer) {
		return phases.Entry[scope]{}, nil // Released: its runtime defined entity is deleted last.
	}
	cluster, err := capicluster.Owner(ctx, r.Client, c)
	if err != nil {
		return phases.Entry[scope]{}, err
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, nil // The owner reference triggers the next reconcile.
	}
	return phases.Entry[scope]{
		Scope:   newScope(r, c, cluster, patcher),
		Cluster: cluster,
	}, nil
}

func newScope(r *Reconciler, c *infrav1.VCDCluster, cluster *clusterv1.Cluster, patcher *phases.Patcher) *scope {
	read := c.DeepCopy()
	s := &scope{
		reconciler: r,
		vcdCluster: c,
		read:       read,
		cluster:    cluster,
		store: &store{
			client:     r.Client,
			vcdCluster: c,
			read:       read,
			patcher:    patcher,
		},
		login: &login{
			identities: r.Identities,
			sessions:   r.Sessions,
			vcdCluster: c,
		},
		wake: r.wakeUps.ForObject(c),
		now:  r.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Established reports whether the cluster was complete once. Its machines and load balancers keep working while VCD
// does not respond.
func (s *scope) Established() bool {
	return s.vcdCluster.DeletionTimestamp.IsZero() && ownership.Established(s.vcdCluster)
}

// clusterName returns the name of the Cluster, even after it is gone.
func (s *scope) clusterName() string { return capicluster.Name(s.vcdCluster, s.cluster) }

// forgetNetwork makes the next pass read the network again, because users may fix its problem in VCD.
func (s *scope) forgetNetwork() {
	s.session.ForgetNetwork(s.home.vdc, s.home.network.Ref)
	s.reconciler.homes.Drop(s.vcdCluster.UID)
}

// claims returns the claims of the VCDCluster for addresses. Their ID is its UID until the VCDCluster has its own ID.
func (s *scope) claims() ipam.Claims {
	return ipam.Claims{
		Client:  s.reconciler.Client,
		Live:    s.reconciler.Live,
		Owner:   s.vcdCluster,
		ID:      cmp.Or(s.vcdCluster.Spec.InfraID, string(s.vcdCluster.UID)),
		Cluster: s.clusterName(),
	}
}

// nodeSecret returns the Secret of the cluster whose name ends with suffix.
func (s *scope) nodeSecret(suffix, holds string) nodesecret.Secret {
	return nodesecret.Secret{
		Client:  s.reconciler.Client,
		Secrets: s.reconciler.Secrets,
		Owner:   s.vcdCluster,
		Cluster: s.cluster.Name,
		Suffix:  suffix,
		Holds:   holds,
	}
}

// places returns the homes in which the cluster has, or may have, vApps.
func (s *scope) places() places {
	return places{
		reader:      s.reconciler.Client,
		login:       s.login,
		vcdCluster:  s.vcdCluster,
		clusterName: s.clusterName(),
	}
}

// A login logs in with the identity of a cluster once per pass.
type login struct {
	identities identities.Resolver
	sessions   session.Opener
	vcdCluster *infrav1.VCDCluster

	held   phases.Result    // why credentials of CAPVCD cannot be moved to an identity; set by begin
	opened *session.Session // set by open
}

// open logs in, or returns the problem that prevents it.
func (l *login) open(ctx context.Context) (*session.Session, phases.Result, error) {
	if l.opened != nil {
		return l.opened, phases.Done, nil
	}
	if l.held != phases.Done {
		return nil, l.held, nil
	}
	opened, out, err := l.identities.Open(ctx, l.sessions, l.vcdCluster)
	l.opened = opened
	return opened, out, err
}

// openZone logs in with the identity of a zone, or returns the problem that prevents it.
func (l *login) openZone(ctx context.Context, z *infrav1.VCDDeploymentZone) (*session.Session, phases.Result, error) {
	return l.identities.OpenZone(ctx, l.sessions, z)
}

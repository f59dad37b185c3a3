// SPDX-License-Identifier: Apache-2.0

// Package machinetemplate publishes the capacity of the machines of VCDMachineTemplates.
package machinetemplate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachinetemplates,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachinetemplates/status,verbs=patch

const (
	// capacityAge is how long a capacity is current. Templates are immutable, but the objects in VCD they refer to may
	// change.
	capacityAge = time.Hour
	// capacityRetry is the interval between attempts to read an unknown capacity. It is long because no machine waits
	// for it.
	capacityRetry = 5 * time.Minute
	// clusterRetry is the interval between attempts to find the cluster of a template.
	clusterRetry = time.Minute
)

// Reconciler publishes the capacity of the machines of VCDMachineTemplates for autoscalers.
type Reconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Now              func() time.Time // nil: time.Now

	known local.Store[found]
}

// found records when the capacity of a template was last read, and for which generation.
type found struct {
	at         time.Time
	generation int64
}

// left returns how long the capacity of a template remains current.
func (r *Reconciler) left(t *infrav1.VCDMachineTemplate) time.Duration {
	last := r.known.Of(t.UID)
	if last.generation != t.Generation || len(t.Status.Capacity) == 0 {
		return 0
	}
	return last.at.Add(phases.Jitter(capacityAge, string(t.UID))).Sub(r.now())
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdmachinetemplate")
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDMachineTemplate{},
			builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilterValue))).
		Watches(&infrav1.VCDMachineTemplate{}, r.known.DropDeleted()).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// scope holds the inputs of one reconcile of a VCDMachineTemplate, and the facts that its phases find.
type scope struct {
	reconciler *Reconciler

	template   *infrav1.VCDMachineTemplate
	vcdCluster *infrav1.VCDCluster // nil: unknown
	ambiguous  bool                // several VCDClusters with different VDCs or identities match
}

// Reconcile determines the capacity of machines of t.
func (r *Reconciler) Reconcile(ctx context.Context, t *infrav1.VCDMachineTemplate) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDMachineTemplate, scope]{
		Client:      r.Client,
		Recorder:    r.Recorder,
		Writes:      r.Writes,
		Open:        r.open,
		Phases:      []phases.Phase[*scope]{{Condition: infrav1.CapacityKnownCondition, Run: reconcileCapacity}},
		Ready:       true,
		BeforeStore: finish,
	}.Reconcile(ctx, t)
}

// open returns an entry without a scope, which ends the reconcile, if the capacity is current or the cluster is paused.
func (r *Reconciler) open(ctx context.Context, t *infrav1.VCDMachineTemplate, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !t.DeletionTimestamp.IsZero() || annotations.HasPaused(t) {
		return phases.Entry[scope]{}, nil
	}
	if left := r.left(t); left > 0 {
		return phases.Entry[scope]{After: left}, nil
	}
	s := &scope{reconciler: r, template: t}
	isPaused, err := s.findCluster(ctx)
	if isPaused || err != nil {
		return phases.Entry[scope]{After: clusterRetry}, err
	}
	return phases.Entry[scope]{Scope: s}, nil
}

// finish schedules the next read of the capacity for when it is no longer current.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.After == 0 {
		pass.After = max(s.reconciler.left(s.template), clusterRetry)
	}
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// findCluster finds the VCDCluster of a template. The cluster-name label or an owner of the template names its Cluster.
// Otherwise, the VCDClusters of the namespace must agree on one VDC and identity. It reports whether the VCDCluster is
// paused, as during a move.
func (s *scope) findCluster(ctx context.Context) (isPaused bool, err error) {
	for _, name := range clustersOfTemplate(s.template) {
		cluster := &clusterv1.Cluster{}
		if err := s.reconciler.Client.Get(ctx, client.ObjectKey{Namespace: s.template.Namespace, Name: name},
			cluster); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return false, fmt.Errorf("getting Cluster %s of VCDMachineTemplate %s: %w", name, s.template.Name, err)
		}
		c := &infrav1.VCDCluster{}
		if err := s.reconciler.Client.Get(ctx,
			client.ObjectKey{Namespace: s.template.Namespace, Name: cluster.Spec.InfrastructureRef.Name},
			c); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return false, fmt.Errorf("getting the VCDCluster of Cluster %s: %w", name, err)
		}
		s.vcdCluster = c
		return annotations.IsPaused(cluster, c), nil
	}
	return false, s.findAnyCluster(ctx)
}

// clustersOfTemplate returns the names of the Clusters in the label and the owner references of a template.
func clustersOfTemplate(t *infrav1.VCDMachineTemplate) []string {
	var names []string
	if name := t.Labels[clusterv1.ClusterNameLabel]; name != "" {
		names = append(names, name)
	}
	for _, owner := range t.OwnerReferences {
		if owner.Kind == "Cluster" {
			names = append(names, owner.Name)
		}
	}
	return names
}

// findAnyCluster finds a VCDCluster of the namespace if all of them have the same VDC and identity.
func (s *scope) findAnyCluster(ctx context.Context) error {
	list := &infrav1.VCDClusterList{}
	if err := s.reconciler.Client.List(ctx, list, client.InNamespace(s.template.Namespace)); err != nil {
		return fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if s.vcdCluster != nil && !sameVDC(s.vcdCluster, c) {
			s.vcdCluster = nil
			s.ambiguous = true
			return nil
		}
		s.vcdCluster = c
	}
	return nil
}

func sameVDC(a, b *infrav1.VCDCluster) bool {
	return sites.Same(a.Spec.Site, b.Spec.Site) && a.Spec.Org == b.Spec.Org &&
		a.Spec.OVDC == b.Spec.OVDC && a.Spec.IdentityRef == b.Spec.IdentityRef
}

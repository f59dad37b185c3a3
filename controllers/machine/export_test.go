// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Helpers for package machine_test. The tests are external because controllertest imports this package.
const (
	InventoryEvery         = inventoryEvery
	MaxRevivals            = maxRevivals
	MaxNotedDisks          = maxNotedDisks
	CancelRetry            = cancelRetry
	DefaultShutdownTimeout = defaultShutdownTimeout
	HardwareRetry          = hardwareRetry
)

var (
	ReconcileVM    = reconcileVM
	ReleaseMachine = releaseMachine
	Specs          = specs
)

// ConditionsOf returns the conditions of the phases of a machine without a cluster.
func ConditionsOf(m *infrav1.VCDMachine) []string {
	var found []string
	for _, p := range provisioning() {
		if p.Applies == nil || p.Applies(&scope{inputs: inputs{vcdMachine: m}}) {
			found = append(found, p.Condition)
		}
	}
	return found
}

// NewScope returns a scope that has observed only VMs with the machine's name.
func (r *Reconciler) NewScope(m *infrav1.VCDMachine, c *infrav1.VCDCluster, found ...vcd.Ref) *scope {
	s := r.newScope(inputs{vcdMachine: m, vcdCluster: c})
	s.target.networks = make([]vcd.Network, 1)
	s.creation.found = found
	return s
}

func (s *scope) Key() string          { return s.inputs.key() }
func (s *scope) Line() string         { return s.inputs.batchKey() }
func (s *scope) Member() batch.Member { return newCreator(s).member() }

func (s *scope) Batch(ctx context.Context, members ...batch.Member) ([]batch.Member, error) {
	s.creation.current = batch.Batch{Members: members}
	return newCreator(s).batch(ctx, func(batch.Member) bool { return true })
}

func (s *scope) ObserveRenamed(ctx context.Context) (phases.Result, error) {
	_, out, err := newObserver(s).observeRenamed(ctx)
	return out, err
}

var (
	ClusterConcernsMachines = clusterConcernsMachines
	ExceptResyncOfReady     = exceptResyncOfReady
)

func (r *Reconciler) Batches() *batch.Queues { return &r.batches }

func (r *Reconciler) States() *local.Store[state] { return &r.states }

func (r *Reconciler) IdentityToMachines(ctx context.Context, identity client.Object) []ctrl.Request {
	return identityToDeletedMachines(r.Client)(ctx, identity)
}

func (r *Reconciler) SecretToMachines(ctx context.Context, secret client.Object) []ctrl.Request {
	return secretToDeletedMachines(r.Client)(ctx, secret)
}

package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// What the tests of package machine_test need. They are outside because controllertest imports this package.
const (
	LookEvery              = lookEvery
	MaxRevivals            = maxRevivals
	MaxNotedDisks          = maxNotedDisks
	CancelRetry            = cancelRetry
	DefaultShutdownTimeout = defaultShutdownTimeout
)

var (
	PhasesOf       = phasesOf
	ReconcileVM    = reconcileVM
	ReleaseMachine = releaseMachine
	Specs          = specs
)

// NewScope returns a scope that has seen nothing yet.
func (r *Reconciler) NewScope(m *infrav1.VCDMachine, c *infrav1.VCDCluster, found ...vcd.Ref) *scope {
	return &scope{Reconciler: r, vcdMachine: m, vcdCluster: c, memory: &memory{}, placement: placement{networks: make([]vcd.Network, 1)}, found: found}
}

func (s *scope) Key() string          { return s.key() }
func (s *scope) Line() string         { return s.line() }
func (s *scope) Member() batch.Member { return s.creation() }

func (s *scope) Company(ctx context.Context, members ...batch.Member) ([]batch.Member, error) {
	s.turn = batch.Turn{VMs: members}
	return s.company(ctx, func(batch.Member) bool { return true })
}

func (s *scope) ObserveRenamed(ctx context.Context) (phases.Outcome, error) {
	return s.observeRenamed(ctx)
}

func (r *Reconciler) Batches() *batch.Queue { return &r.creations }

func (r *Reconciler) Memories() int { return len(r.memories.byUID) }

func (r *Reconciler) Remembers(m *infrav1.VCDMachine) bool { return r.memories.byUID[m.UID] != nil }

func (r *Reconciler) Forget(ctx context.Context, m *infrav1.VCDMachine) {
	r.memories.forgetting().Delete(ctx, event.DeleteEvent{Object: m}, nil)
}

func (r *Reconciler) IdentityToMachines(ctx context.Context, identity client.Object) []ctrl.Request {
	return r.identityToMachines(ctx, identity)
}

func (r *Reconciler) SecretToMachines(ctx context.Context, secret client.Object) []ctrl.Request {
	return r.secretToMachines(ctx, secret)
}

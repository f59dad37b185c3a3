// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A facts scope contains the results of the tests' phases.
type facts struct {
	pass    Pass
	applies bool
}

// machines is a VCDMachine reconciler with its API server.
type machines struct {
	Reconciler[*infrav1.VCDMachine, facts]

	scope *facts
}

func newMachines(t *testing.T, objects ...client.Object) *machines {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	m := &machines{scope: &facts{}}
	m.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build()
	m.Recorder = events.NewFakeRecorder(9)
	m.Ready = true
	m.Open = func(context.Context, *infrav1.VCDMachine, *Patcher) (Entry[facts], error) {
		return Entry[facts]{Scope: m.scope}, nil
	}
	m.BeforeStore = func(_ context.Context, s *facts, pass *Pass) { s.pass = *pass }
	return m
}

// statuses runs a reconcile, and returns the stored conditions.
func (m *machines) statuses(t *testing.T) map[string]metav1.ConditionStatus {
	t.Helper()
	g := NewWithT(t)
	key := client.ObjectKey{Namespace: "default", Name: "m"}
	obj := &infrav1.VCDMachine{}
	g.Expect(m.Client.Get(t.Context(), key, obj)).To(Succeed())
	_, err := m.Reconcile(t.Context(), obj)
	g.Expect(err).To(Or(Not(HaveOccurred()), MatchError(errBoom)))
	stored := &infrav1.VCDMachine{}
	g.Expect(m.Client.Get(t.Context(), key, stored)).To(Succeed())
	found := map[string]metav1.ConditionStatus{}
	for _, c := range stored.GetConditions() {
		found[c.Type] = c.Status
	}
	return found
}

func newMachine() *infrav1.VCDMachine {
	return &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default"}}
}

// phase returns a phase with a result.
func phase(condition string, out Result, err error) Phase[*facts] {
	return Phase[*facts]{
		Condition: condition,
		Run:       func(context.Context, *facts) (Result, error) { return out, err },
	}
}

func TestMaintenancePhasesAreIndependent(t *testing.T) {
	g := NewWithT(t)
	m := newMachines(t, newMachine())
	m.Phases = []Phase[*facts]{phase("Main", Wait(time.Hour, "R", "m"), nil)}
	m.Maintenance = []Phase[*facts]{
		phase("First", Fail(time.Minute/2, "R", "m"), nil),
		phase("Second", Done, errBoom),
		phase("Third", Done, nil),
	}

	g.Expect(m.statuses(t)).To(Equal(map[string]metav1.ConditionStatus{
		"Main":                   metav1.ConditionFalse,
		"First":                  metav1.ConditionFalse,
		"Second":                 metav1.ConditionUnknown,
		"Third":                  metav1.ConditionTrue,
		clusterv1.ReadyCondition: metav1.ConditionFalse,
	}))

	g.Expect(m.scope.pass.IncompleteMaintenance).To(Equal([]string{"First", "Second"}))
	g.Expect(m.scope.pass.After).To(Equal(time.Minute / 2))
	g.Expect(errors.Is(m.scope.pass.Err, errBoom)).To(BeTrue())
	g.Expect(m.scope.pass.Blocked.Message).To(Equal("m"))
}

func TestMaintenanceDoesNotAffectReady(t *testing.T) {
	g := NewWithT(t)
	m := newMachines(t, newMachine())
	m.Phases = []Phase[*facts]{phase("Main", Done, nil)}
	m.Maintenance = []Phase[*facts]{phase("Extra", Stop("R", "m"), nil)}

	g.Expect(m.statuses(t)).To(Equal(map[string]metav1.ConditionStatus{
		"Main":                   metav1.ConditionTrue,
		"Extra":                  metav1.ConditionFalse,
		clusterv1.ReadyCondition: metav1.ConditionTrue,
	}))
	g.Expect(m.scope.pass.Complete).To(BeTrue())
}

func TestNoMaintenanceAfterAnErrorOrDuringDeletion(t *testing.T) {
	g := NewWithT(t)
	m := newMachines(t, newMachine())
	m.Phases = []Phase[*facts]{phase("Main", Done, errBoom)}
	m.Maintenance = []Phase[*facts]{phase("Extra", Done, nil)}
	g.Expect(m.statuses(t)).NotTo(HaveKey("Extra"))

	deleted := newMachine()
	deleted.Finalizers = []string{infrav1.MachineFinalizer}
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	m = newMachines(t, deleted)
	m.Phases = []Phase[*facts]{phase("Main", Done, nil)}
	m.Deletion = []Phase[*facts]{phase("Gone", Done, nil)}
	m.Maintenance = []Phase[*facts]{phase("Extra", Done, nil)}

	g.Expect(m.statuses(t)).To(Equal(map[string]metav1.ConditionStatus{
		"Gone":                   metav1.ConditionTrue,
		clusterv1.ReadyCondition: metav1.ConditionTrue,
	}))
}

func TestInapplicablePhasesAreSkipped(t *testing.T) {
	g := NewWithT(t)
	m := newMachines(t, newMachine())
	m.scope.applies = true
	optional := phase("Optional", Done, nil)
	optional.Applies = func(s *facts) bool { return s.applies }
	optional.Optional = true
	kept := optional
	kept.Condition = "Kept"
	kept.Optional = false
	m.Phases = []Phase[*facts]{optional, kept}
	g.Expect(m.statuses(t)).To(And(HaveKey("Optional"), HaveKey("Kept")))

	m.scope.applies = false

	g.Expect(m.statuses(t)).To(And(Not(HaveKey("Optional")), HaveKey("Kept")))
}

func TestASkippedReconcileStoresNothing(t *testing.T) {
	key := client.ObjectKey{Namespace: "default", Name: "m"}
	for name, tt := range map[string]struct {
		change func(*machines)
		want   time.Duration
	}{
		"without a scope": {
			change: func(m *machines) {
				m.Open = func(context.Context, *infrav1.VCDMachine, *Patcher) (Entry[facts], error) {
					return Entry[facts]{After: time.Minute}, nil
				}
			},
			want: time.Minute,
		},
		"that waits before its phases": {
			change: func(m *machines) {
				m.BeforePhases = func(context.Context, *facts) (Result, error) { return Wait(time.Second, "R", "m"), nil }
			},
			want: time.Second,
		},
		"of an object that only receives its finalizer": {
			change: func(m *machines) { m.Finalizer = infrav1.MachineFinalizer },
		},
		"of an outdated object": {
			change: func(m *machines) {
				m.BeforeStore = func(_ context.Context, _ *facts, pass *Pass) {
					pass.Outdated = true
					pass.After = time.Hour
				}
			},
			want: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := newMachine()
			m := newMachines(t, obj)
			m.Phases = []Phase[*facts]{phase("Main", Done, nil)}
			tt.change(m)

			got, err := m.Reconcile(t.Context(), obj)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.RequeueAfter).To(Equal(tt.want))
			stored := &infrav1.VCDMachine{}
			g.Expect(m.Client.Get(t.Context(), key, stored)).To(Succeed())
			g.Expect(conditions.Has(stored, "Main")).To(BeFalse())
		})
	}
}

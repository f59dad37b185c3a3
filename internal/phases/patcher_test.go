// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A generations API server counts generations and writes. Reads return the object as it was at the start of a
// reconcile, as a stale cache would, until the cache catches up.
type generations struct {
	cached *infrav1.VCDMachine // nil: the cache has caught up
	writes int
}

func (c *generations) patch(ctx context.Context, below client.WithWatch, obj client.Object, change client.Patch, opts ...client.PatchOption) error {
	c.writes++
	before := &infrav1.VCDMachine{}
	if err := below.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	if err := below.Patch(ctx, obj, change, opts...); err != nil {
		return err
	}
	m, isMachine := obj.(*infrav1.VCDMachine)
	if !isMachine || m.Spec.ProviderID == before.Spec.ProviderID {
		return nil
	}
	m.Generation = before.Generation + 1
	return below.Update(ctx, m)
}

func newGenerations(t *testing.T, m *machines, obj *infrav1.VCDMachine) *generations {
	t.Helper()
	c := &generations{}
	below, ok := m.Client.(client.WithWatch)
	NewWithT(t).Expect(ok).To(BeTrue())
	m.Client = interceptor.NewClient(below, interceptor.Funcs{
		Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if found, isMachine := into.(*infrav1.VCDMachine); isMachine && c.cached != nil {
				c.cached.DeepCopyInto(found)
				return nil
			}
			return below.Get(ctx, key, into, opts...)
		},
		Patch: c.patch,
		SubResourcePatch: func(ctx context.Context, below client.Client, sub string, obj client.Object, change client.Patch, opts ...client.SubResourcePatchOption) error {
			c.writes++
			return below.SubResource(sub).Patch(ctx, obj, change, opts...)
		},
	})
	NewWithT(t).Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return c
}

func TestObservedGenerationIncludesTheWrittenRecord(t *testing.T) {
	for name, saves := range map[string]bool{"at the end": false, "in the middle": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := newMachine()
			obj.Generation = 7
			m := newMachines(t, obj)
			c := newGenerations(t, m, obj)
			c.cached = obj.DeepCopy()
			var patcher *Patcher
			m.Open = func(_ context.Context, _ *infrav1.VCDMachine, p *Patcher) (Entry[facts], error) {
				patcher = p
				return Entry[facts]{Scope: m.scope}, nil
			}
			record := func(ctx context.Context, _ *facts) (Result, error) {
				obj.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:1"
				if saves {
					return Done, patcher.SaveIfCurrent(ctx)
				}
				return Done, nil
			}
			m.Phases = []Phase[*facts]{phase("First", Done, nil), {Condition: "Second", Run: record}, phase("Third", Done, nil)}

			_, err := m.Reconcile(t.Context(), obj)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.writes).To(Equal(2), "spec and status")
			c.cached = nil
			stored := &infrav1.VCDMachine{}
			g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
			g.Expect(stored.Generation).To(Equal(int64(8)))
			g.Expect(stored.Status.ObservedGeneration).To(Equal(int64(8)))
			g.Expect(stored.Status.Conditions).To(ConsistOf(ofGeneration("First"), ofGeneration("Second"), ofGeneration("Third"),
				ofGeneration(clusterv1.ReadyCondition)))
			c.writes = 0
			_, err = m.Reconcile(t.Context(), stored)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.writes).To(BeZero(), "nothing changed")
		})
	}
}

// ofGeneration matches a condition with the generation of the recorded change.
func ofGeneration(name string) any {
	return And(HaveField("Type", name), HaveField("ObservedGeneration", int64(8)))
}

func TestOutdatedObjectsAreNotSaved(t *testing.T) {
	g := NewWithT(t)
	obj := newMachine()
	m := newMachines(t, obj)
	g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	patcher := &Patcher{client: m.Client, obj: obj}
	patcher.begin()
	other := obj.DeepCopy()
	other.Labels = map[string]string{"a": "b"}
	g.Expect(m.Client.Update(t.Context(), other)).To(Succeed())
	obj.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:1"

	err := patcher.SaveIfCurrent(t.Context())

	g.Expect(err).To(MatchError(ContainSubstring("object was modified")))
}

// meanwhile makes the client change a machine as another client, before the first write of a status, and counts these
// writes.
func meanwhile(t *testing.T, m *machines, change func(*infrav1.VCDMachine)) *int {
	t.Helper()
	writes := 0
	below, ok := m.Client.(client.WithWatch)
	NewWithT(t).Expect(ok).To(BeTrue())
	m.Client = interceptor.NewClient(below, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, below client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			if writes == 1 {
				other := &infrav1.VCDMachine{}
				NewWithT(t).Expect(below.Get(ctx, client.ObjectKeyFromObject(obj), other)).To(Succeed())
				change(other)
				NewWithT(t).Expect(below.Status().Update(ctx, other)).To(Succeed())
			}
			return below.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	return &writes
}

func TestForeignConditionsAreKept(t *testing.T) {
	tests := []struct {
		name    string
		change  func(obj *infrav1.VCDMachine) // further changes by this client
		want    string                        // the message of the other condition
		refused bool
	}{
		{name: "a foreign condition", change: func(*infrav1.VCDMachine) {}, want: "changed"},
		{name: "a further generation", change: func(obj *infrav1.VCDMachine) { moveTo(obj, 8) }, want: "changed"},
		{
			name:    "a condition that both clients change",
			change:  func(obj *infrav1.VCDMachine) { set(obj, "Theirs", metav1.ConditionFalse, "Other", "changed otherwise") },
			want:    "changed",
			refused: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := newMachine()
			obj.Generation = 7
			set(obj, "Theirs", metav1.ConditionTrue, "Fine", "")
			m := newMachines(t, obj)
			writes := meanwhile(t, m, func(other *infrav1.VCDMachine) {
				set(other, "Theirs", metav1.ConditionFalse, "Fine", "changed")
			})
			g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			patcher := &Patcher{client: m.Client, obj: obj}
			patcher.begin()
			set(obj, "Ours", metav1.ConditionTrue, "Fine", "")
			obj.Status.VM = &infrav1.ResourceReference{Name: "vm"}
			tt.change(obj)

			err := patcher.finish(t.Context(), []string{"Ours"})

			g.Expect(err != nil).To(Equal(tt.refused), "%v", err)
			g.Expect(*writes).To(Equal(2), "the first is a conflict")
			stored := &infrav1.VCDMachine{}
			g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
			g.Expect(stored.Status.VM).To(Equal(obj.Status.VM))
			g.Expect(conditions.Get(stored, "Theirs")).To(HaveField("Message", tt.want))
			g.Expect(conditions.Has(stored, "Ours")).To(Equal(!tt.refused))
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A generations client counts generations as an API server does, and writes. What it reads is the object as it was at
// the beginning of a pass, as a cache may show it, until the cache catches up.
type generations struct {
	client.Client

	cached *infrav1.VCDMachine
	writes int
	reads  int
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
	m := obj.(*infrav1.VCDMachine) //nolint:forcetypeassert // Only VCDMachines are written.
	if m.Spec.ProviderID == before.Spec.ProviderID {
		return nil
	}
	m.Generation = before.Generation + 1
	return below.Update(ctx, m)
}

func newGenerations(t *testing.T, m *machines, obj *infrav1.VCDMachine) *generations {
	t.Helper()
	c := &generations{}
	m.Client = interceptor.NewClient(m.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // It is fake.
		Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			c.reads++
			if c.cached != nil {
				c.cached.DeepCopyInto(into.(*infrav1.VCDMachine)) //nolint:forcetypeassert // Only VCDMachines are read.
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
	c.Client = m.Client
	NewWithT(t).Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return c
}

func TestTheStatusIsOfTheGenerationThatARecordMakes(t *testing.T) {
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
			g.Expect(c.writes).To(Equal(3), "spec, conditions, the rest of the status")
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

// ofGeneration matches a condition of the generation that the record made.
func ofGeneration(name string) any {
	return And(HaveField("Type", name), HaveField("ObservedGeneration", int64(8)))
}

func TestWhatIsOutdatedIsNotSaved(t *testing.T) {
	g := NewWithT(t)
	obj := newMachine()
	m := newMachines(t, obj)
	g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	patcher := &Patcher{client: m.Client, obj: obj}
	g.Expect(patcher.begin()).To(Succeed())
	other := obj.DeepCopy()
	other.Labels = map[string]string{"a": "b"}
	g.Expect(m.Client.Update(t.Context(), other)).To(Succeed())
	obj.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:1"

	err := patcher.SaveIfCurrent(t.Context())

	g.Expect(err).To(MatchError(ContainSubstring("object was modified")))
}

// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAnEntityShowsItsClusterAndIsDeletedLast(t *testing.T) {
	w := newEntityEnv(t, vcdsim.Config{}, machinesOf(1)...)
	w.settle()

	reason, message := w.condition()
	w.Expect(reason).To(Equal(infrav1.ReadyReason), message)
	e := w.entity()
	w.Expect([]string{e.State, e.Name, e.ExternalID, e.Type}).To(Equal([]string{
		vcd.EntityResolved,
		"vc1",
		w.VCDCluster().Spec.InfraID,
		typePrefix + "1.3.0",
	}))
	w.Expect(string(e.Content)).To(And(ContainSubstring(`"uid":"uid-of-vc1"`), ContainSubstring(controllertest.VIP),
		ContainSubstring(`"name":"workers"`), ContainSubstring(`"ovdcNetworkName":"nodes"`),
		ContainSubstring("urn:vcloud:org:"), Not(ContainSubstring("kubeConfig"))))
	w.Expect(w.VCDCluster().Finalizers).To(ContainElement(infrav1.RDEFinalizer))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("RDECreated")))

	writes := w.entityWrites()
	version := w.VCDCluster().ResourceVersion
	w.settle()
	w.Expect(w.entityWrites()).To(Equal(writes))
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(version))

	w.DeleteMachine("waa")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.settle()
	w.Expect(string(w.entity().Content)).To(ContainSubstring(`"phase":"Deleting"`), "it exists until the other resources are deleted")
	w.released()
	w.settle()
	w.Expect(apierrors.IsNotFound(w.Client.Get(w.Ctx, client.ObjectKey{
		Namespace: controllertest.Namespace,
		Name:      "vc1",
	}, &infrav1.VCDCluster{}))).To(BeTrue())
	w.Expect(w.session().Entities.Find(w.Ctx, kind, "vc1", "uid-of-vc1")).To(BeEmpty())
	_, err := w.session().Entities.Get(w.Ctx, e.ID)
	w.Expect(err).To(MatchError(vcd.ErrForbidden))
}

// released makes the cluster controller delete all other resources of a cluster. A missing CAPVCD vApp is searched
// twice, one minute apart.
func (w *entityEnv) released() {
	passes := 0
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		passes++
		w.Later(time.Duration(passes) * time.Minute)
		g.Expect(w.VCDCluster().Finalizers).To(Equal([]string{infrav1.RDEFinalizer}), "%v", w.VCDCluster().Status.Conditions)
	}, controllertest.Patience, "5ms").Should(Succeed())
	requests := len(w.Sim.Requests())
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.Sim.Requests()).To(HaveLen(requests), "nothing is repeated")
}

func TestFewWritesAreMade(t *testing.T) {
	const machines = 50
	w := newEntityEnv(t, vcdsim.Config{}, machinesOf(machines)...)
	w.Sim.ResetCounters()
	// A machine becomes ready each second, and each change triggers a reconcile.
	passes := 0
	last := w.ahead - interval
	for i, name := range names(machines) {
		w.ready(name, w.start.Add(time.Duration(i)*time.Second))
		for range 3 {
			before := w.entityWrites()
			w.pass()
			if w.entityWrites() > before {
				w.Expect(w.ahead-last).To(BeNumerically(">=", interval), "at most one every %s", interval)
				passes++
				last = w.ahead
			}
		}
		w.ahead += time.Second
	}
	w.Expect(passes).To(BeNumerically(">=", machines/10), "it is updated in the meantime")
	t.Logf("%d reconciles with writes, %d writes, %d reads in %ds", passes, w.entityWrites(), w.entityCalls("GET"), machines)
	w.Expect(w.entityCalls("GET")).To(BeNumerically("<=", 3), "searched, and read only before the first write")

	w.settle()
	w.Expect(strings.Count(string(w.entity().Content), "VcdMachineInfraVMPoweredOn")).To(BeNumerically(">", 9))
	w.Sim.ResetCounters()
	for range 60 {
		w.pass()
		w.ahead += 10 * time.Second
	}
	w.restart()
	w.settle()
	w.Expect(w.entityWrites()).To(BeZero(), "no changes are pending, even after a restart of the manager")
	t.Logf("%d reads in ten minutes without changes and after a restart", w.entityCalls("GET"))
}

func names(n int) []string {
	var out []string
	for _, object := range machinesOf(n) {
		if m, ok := object.(*infrav1.VCDMachine); ok {
			out = append(out, m.Name)
		}
	}
	return out
}

func TestInvalidInputIsReportedAndNothingIsWritten(t *testing.T) {
	const urn = "urn:vcloud:entity:vmware:capvcdCluster:"
	missing := urn + "00000000-0000-4000-8000-000000000000"
	types := func(e *vcdsim.Editor, version string) {
		e.AddDocument("1.0.0/entityTypes", "type", "", "", map[string]any{
			"id":         typePrefix + version,
			"vendor":     "vmware",
			"nss":        "capvcdCluster",
			"version":    version,
			"name":       "later",
			"interfaces": []any{},
			"schema":     map[string]any{"type": "object"},
		})
	}
	for name, tt := range map[string]struct {
		rights  func(string) bool // that the user lacks
		arrange func(w *entityEnv, c *infrav1.VCDCluster)
		reason  string
		says    string
	}{
		"an entity of another cluster": {
			arrange: func(w *entityEnv, c *infrav1.VCDCluster) {
				c.Spec.RDE.ID = w.given("1.1.0", `,"status":{"capvcd":{"uid":"infra-2"}}`)
			},
			reason: infrav1.RDEOwnerMismatchReason,
			says:   "infra-2",
		},
		"an entity with a later layout": {
			arrange: func(w *entityEnv, c *infrav1.VCDCluster) {
				w.Sim.Edit(func(e *vcdsim.Editor) { types(e, "2.0.0") })
				c.Spec.RDE.ID = w.given("2.0.0", "")
			},
			reason: infrav1.RDEVersionNotSupportedReason,
			says:   "1.1.0",
		},
		"an entity with the first layout": {
			arrange: func(w *entityEnv, c *infrav1.VCDCluster) {
				w.Sim.Edit(func(e *vcdsim.Editor) { types(e, "1.0.0") })
				c.Spec.RDE.ID = w.given("1.0.0", "")
			},
			reason: infrav1.RDEVersionNotSupportedReason,
			says:   "1.1.0",
		},
		"a nonexistent entity": {
			arrange: func(_ *entityEnv, c *infrav1.VCDCluster) {
				c.Spec.RDE.ID = missing
			},
			reason: infrav1.RDEUnavailableReason,
			says:   "correct spec.rde.id",
		},
		"content that does not match the schema": {
			arrange: func(w *entityEnv, c *infrav1.VCDCluster) {
				w.Sim.Edit(func(e *vcdsim.Editor) {
					e.AddDocument("1.0.0/entityTypes", "type", "", "", map[string]any{
						"id":         typePrefix + "1.9.0",
						"vendor":     "vmware",
						"nss":        "capvcdCluster",
						"version":    "1.9.0",
						"name":       "strict",
						"interfaces": []any{},
						"schema": map[string]any{"properties": map[string]any{
							"status": map[string]any{"maxProperties": 0},
						}},
					})
				})
				c.Spec.RDE.ID = w.given("1.9.0", "")
			},
			reason: infrav1.RDEInvalidReason,
			says:   "#/status",
		},
		"no right to the type": {
			rights: func(right string) bool { return strings.HasPrefix(right, "vmware:capvcdCluster") },
			reason: infrav1.RDEUnavailableReason,
			says:   "Full Access",
		},
		"only the right to change entities": {
			rights: func(right string) bool { return right == "vmware:capvcdCluster: Full Access" },
			reason: infrav1.RDEUnavailableReason,
			says:   "Full Access",
		},
		"a cluster that CAPVCD kept without an entity": {
			arrange: func(_ *entityEnv, c *infrav1.VCDCluster) {
				c.Spec.InfraID = "NO_RDE_0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
			},
			reason: infrav1.RDEExcludedReason,
			says:   "NO_RDE_",
		},
		"two clusters that reference one entity": {
			arrange: func(w *entityEnv, c *infrav1.VCDCluster) {
				c.Spec.RDE.ID = w.given("1.1.0", "")
				c.CreationTimestamp = metav1.NewTime(w.start)
				w.other(c.Spec.RDE.ID)
			},
			reason: infrav1.RDEInUseReason,
			says:   "VCDCluster older",
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			for i := range model.Orgs[1].Roles {
				if tt.rights != nil {
					model.Orgs[1].Roles[i].Rights = without(model.Orgs[1].Roles[i].Rights, tt.rights)
				}
			}
			w := newEntityEnv(t, vcdsim.Config{Model: model})
			if tt.arrange != nil {
				w.change(func(c *infrav1.VCDCluster) { tt.arrange(w, c) })
			}
			before := w.Sim.State()
			w.Sim.ResetCounters()
			w.settle()

			reason, message := w.condition()
			w.Expect(reason).To(Equal(tt.reason), message)
			w.Expect(message).To(ContainSubstring(tt.says))
			w.Expect(w.changed()).To(BeZero())
			w.Expect(w.Sim.State()).To(Equal(before))
			w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))

			w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE = infrav1.RDESpec{Mode: infrav1.RDENone} })
			w.settle()
			reason, _ = w.condition()
			w.Expect(reason).To(BeEmpty())
			w.Expect(w.VCDCluster().Finalizers).NotTo(ContainElement(infrav1.RDEFinalizer))
		})
	}
}

// changed counts the entity requests that changed something.
func (w *entityEnv) changed() int {
	n := 0
	for _, r := range w.Sim.Requests() {
		if r.Changes() && r.Status < http.StatusBadRequest && strings.Contains(r.Operation, "entit") &&
			r.Time.After(w.start.Add(w.ahead)) {
			n++
		}
	}
	return n
}

// other returns an older VCDCluster with an entity.
func (w *entityEnv) other(id string) {
	c := w.VCDCluster().DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{
		Namespace:         c.Namespace,
		Name:              "older",
		UID:               "older",
		CreationTimestamp: metav1.NewTime(w.start.Add(-time.Hour)),
	}
	c.Spec.InfraID = "11111111-2222-4333-8444-555555555555"
	c.Spec.RDE = infrav1.RDESpec{Mode: infrav1.RDEProject, ID: id}
	w.Expect(w.Client.Create(w.Ctx, c)).To(Succeed())
}

func without(rights []string, lacks func(string) bool) []string {
	var out []string
	for _, right := range rights {
		if !lacks(right) {
			out = append(out, right)
		}
	}
	return out
}

func TestACAPVCDEntityIsAdoptedWithForeignFields(t *testing.T) {
	w := newEntityEnv(t, vcdsim.Config{}, machinesOf(1)...)
	id := w.given("1.1.0", `,"x":1,"status":{"csi":{"pv":[1]},"vcdKe":{"a":"b"},"capvcd":{"future":{"a":1},"createdByVersion":"1.3.0"}}`)
	w.change(func(c *infrav1.VCDCluster) { c.Spec.InfraID = id })
	w.settle()

	e := w.entity()
	w.Expect(e.ID).To(Equal(id))
	w.Expect(string(e.Content)).To(And(ContainSubstring(`"uid":"`+id+`"`), ContainSubstring(`"future":{"a":1}`),
		ContainSubstring(`"createdByVersion":"1.3.0"`), ContainSubstring(`"csi":{"pv":[1]}`), ContainSubstring(`"x":1`),
		ContainSubstring(`"name":"workers"`)))
	w.Expect(w.VCDCluster().Spec.RecordedState.RDEID).To(BeEmpty())
}

func TestAnEntityCreatedJustBeforeACrashIsFound(t *testing.T) {
	w := newEntityEnv(t, vcdsim.Config{})
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /cloudapi/1.0.0/entityTypes/*", DropAfter: true, Count: 1})
	for range 3 {
		w.pass()
		w.ahead += offPoll
		w.restart()
	}
	w.settle()

	reason, message := w.condition()
	w.Expect(reason).To(Equal(infrav1.ReadyReason), message)
	w.Expect(w.session().Entities.Find(w.Ctx, kind, "vc1", "uid-of-vc1")).To(HaveLen(1))
	w.Expect(w.entity().State).To(Equal(vcd.EntityResolved))
}

func TestTheClusterBecomesReadyDespiteEntityServiceFailures(t *testing.T) {
	for name, fault := range map[string]vcdsim.Fault{
		"it fails":                      {Status: http.StatusInternalServerError},
		"it is not available":           {Status: http.StatusServiceUnavailable},
		"it responds with forbidden":    {Status: http.StatusForbidden},
		"it returns an internal error":  {Status: http.StatusNotFound},
		"it throttles requests":         {Status: http.StatusTooManyRequests},
		"it closes connections":         {DropBefore: true},
		"it responds with invalid JSON": {Status: http.StatusOK},
		"it hangs":                      {Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &entityEnv{
				Env:   controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant}, machinesOf(1)...),
				start: time.Now(),
			}
			w.restart()
			w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.Mode = infrav1.RDEProject })
			fault.Operation = "* /cloudapi/1.0.0/entit*"
			w.Sim.Faults().Add(fault)
			w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.ReadyReason)

			done := make(chan struct{})
			go func() { // as its own queue does
				defer close(done)
				for range 3 {
					_, _ = w.reconciler.Reconcile(w.Ctx, w.VCDCluster())
				}
			}()
			begin := time.Now()
			w.Ready("waa")
			took := time.Since(begin)
			<-done

			w.settleFailing()
			w.Expect(took).To(BeNumerically("<", answerTime))
			reason, _ := w.condition()
			w.Expect(reason).NotTo(BeElementOf("", infrav1.ReadyReason))
			w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
		})
	}
}

// settleFailing reconciles once more and ignores the result.
func (w *entityEnv) settleFailing() {
	w.ahead += time.Hour
	c := w.VCDCluster()
	_, _ = w.reconciler.Reconcile(w.Ctx, c)
}

func TestEntityDeletion(t *testing.T) {
	deleted := func(t *testing.T, mods ...func(*entityEnv, *infrav1.VCDCluster)) *entityEnv {
		t.Helper()
		w := newEntityEnv(t, vcdsim.Config{})
		for _, mod := range mods {
			w.change(func(c *infrav1.VCDCluster) { mod(w, c) })
		}
		w.settle()
		w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
		w.released()
		return w
	}
	exists := func(w *entityEnv) bool {
		return w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"},
			&infrav1.VCDCluster{}) == nil
	}
	t.Run("it waits during an outage until a user keeps the entity", func(t *testing.T) {
		w := deleted(t)
		w.Sim.Faults().Add(vcdsim.Fault{Operation: "DELETE /cloudapi/1.0.0/entit*", Status: http.StatusServiceUnavailable})
		w.settle()
		w.Expect(exists(w)).To(BeTrue())
		w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.RDEDeletedCondition)).To(ContainSubstring("spec.rde.mode"))
		id := w.entity().ID

		w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.Mode = infrav1.RDENone })
		w.pass()

		w.Expect(exists(w)).To(BeFalse())
		w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("RDERetained"), ContainSubstring(id))))
	})
	t.Run("it does not wait for the pause after a rejected write", func(t *testing.T) {
		w := newEntityEnv(t, vcdsim.Config{})
		w.settle()
		w.Sim.Faults().Add(vcdsim.Fault{Operation: "PUT /cloudapi/1.0.0/entit*", Status: http.StatusBadRequest})
		w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.ParentUID = "another" })
		w.settle()
		reason, _ := w.condition()
		w.Expect(reason).To(Equal(infrav1.RDEInvalidReason))

		w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
		w.released()
		w.pass()

		w.Expect(exists(w)).To(BeFalse())
	})
	t.Run("a referenced entity is kept", func(t *testing.T) {
		var id string
		w := deleted(t, func(w *entityEnv, c *infrav1.VCDCluster) {
			id = w.given("1.1.0", "")
			c.Spec.RDE.ID = id
		})
		w.settle()
		w.Expect(exists(w)).To(BeFalse())
		_, err := w.session().Entities.Get(w.Ctx, id)
		w.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("an entity managed by Container Service Extension is kept", func(t *testing.T) {
		var id string
		w := deleted(t, func(w *entityEnv, c *infrav1.VCDCluster) {
			s := w.session()
			var err error
			id, err = s.Entities.Create(w.Ctx, vcd.EntitySpec{
				Type: typePrefix + "1.1.0",
				Name: "given",
				Content: []byte(
					strings.Replace(least, `"spec":{}`, `"spec":{"vcdKe":{"isVCDKECluster":true}}`, 1) + `}`),
			})
			w.Expect(err).NotTo(HaveOccurred())
			c.Spec.InfraID = id
		})
		w.settle()
		w.Expect(exists(w)).To(BeFalse())
		_, err := w.session().Entities.Get(w.Ctx, id)
		w.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("it waits while the user has no right to the type, until a user keeps the entity", func(t *testing.T) {
		w := deleted(t)
		w.Sim.Faults().Add(vcdsim.Fault{Operation: "* /cloudapi/1.0.0/entit*", Status: http.StatusForbidden})
		w.settle()
		w.Expect(exists(w)).To(BeTrue())
		w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.RDEDeletedCondition)).To(
			ContainSubstring("Full Access, or set spec.rde.mode to None to keep the entity"))

		w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.Mode = infrav1.RDENone })
		w.pass()

		w.Expect(exists(w)).To(BeFalse())
		w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("RDERetained")))
	})
	t.Run("an entity that becomes invisible is reported", func(t *testing.T) {
		w := deleted(t)
		id := w.entity().ID
		w.Expect(w.session().Entities.Delete(w.Ctx, id)).To(Succeed())
		w.settle()
		w.Expect(exists(w)).To(BeFalse())
		w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("RDERetained"), ContainSubstring(id))))
	})
	t.Run("all entities of the cluster are deleted", func(t *testing.T) {
		w := deleted(t)
		_, err := w.session().Entities.Create(w.Ctx, vcd.EntitySpec{
			Type:       typePrefix + "1.1.0",
			Name:       "vc1",
			ExternalID: "uid-of-vc1",
			Content:    []byte(least + "}"),
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.session().Entities.Find(w.Ctx, kind, "vc1", "uid-of-vc1")).To(HaveLen(2))
		w.settle()
		w.Expect(exists(w)).To(BeFalse())
		w.Expect(w.session().Entities.Find(w.Ctx, kind, "vc1", "uid-of-vc1")).To(BeEmpty())
	})
	t.Run("a deleted entity does not block the deletion", func(t *testing.T) {
		w := deleted(t)
		w.Expect(w.session().Entities.Delete(w.Ctx, w.entity().ID)).To(Succeed())
		w.settle()
		w.Expect(exists(w)).To(BeFalse())
	})
}

func TestTheKubeconfigIsWrittenOnlyIfConfigured(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: controllertest.Meta("c1-kubeconfig"),
		Data: map[string][]byte{
			"value": []byte("canary-kubeconfig"),
		},
	}
	w := newEntityEnv(t, vcdsim.Config{}, secret)
	w.settle()
	w.Expect(string(w.entity().Content)).NotTo(ContainSubstring("canary"))

	w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.IncludeKubeconfig = ptr.To(true) })
	w.settle()
	w.Expect(string(w.entity().Content)).To(ContainSubstring(`"kubeConfig":"canary-kubeconfig"`))

	w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.IncludeKubeconfig = ptr.To(false) })
	w.settle()
	w.Expect(string(w.entity().Content)).NotTo(ContainSubstring("canary"))
	w.Expect(fmt.Sprint(w.EventTexts())).NotTo(ContainSubstring("canary"))
}

package controllers

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// quick is a profile whose tasks last long enough to be interrupted.
var quick = vcdsim.Profile{Name: "test", Scale: 0.002}

// logins counts logins, by whether they were let in.
func logins(sim *vcdsim.Simulator) (accepted, refused int) {
	for _, r := range sim.Requests() {
		if r.Method != http.MethodPost || !strings.Contains(r.Path, "/sessions") && !strings.HasPrefix(r.Path, "/oauth/") {
			continue
		}
		if r.Status == http.StatusOK {
			accepted++
		} else {
			refused++
		}
	}
	return accepted, refused
}

// answered counts requests of an operation that were accepted.
func answered(sim *vcdsim.Simulator, operation string) int {
	n := 0
	for _, r := range sim.Requests() {
		if r.Operation == operation && r.Status < http.StatusMultipleChoices {
			n++
		}
	}
	return n
}

func TestClusterIsMadeWhileCellsAreRestartedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, aborts := range []bool{true, false} {
		name := "tasks end with their cell"
		if !aborts {
			name = "tasks outlive their cell"
		}
		t.Run(name, func(t *testing.T) {
			assume := vcdsim.DefaultAssumptions()
			assume.CellStopAbortsTasks = aborts
			w := newWorldWith(t, vcdsim.Config{Profile: quick, Cells: 2, Assumptions: &assume}, append(testMachine("m1"), testMachine("m2")...)...)
			ahead := time.Duration(0)
			w.machine.Now = func() time.Time { return time.Now().Add(ahead) }
			restarts, seen := 0, 0

			w.Eventually(func(g Gomega) {
				w.clock.Add(int64(time.Second))                // nobody waits long because of a call that was cut off
				if n := w.writes(); n > seen && restarts < 4 { // something was begun just now
					seen = n
					w.sim.Cells()[restarts%2].Restart(0)
					restarts++
				}
				_, err := w.reconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				for _, machine := range []string{"m1", "m2"} {
					_, err := w.reconcileMachine(machine)
					g.Expect(err).NotTo(HaveOccurred())
				}
				for _, machine := range []string{"m1", "m2"} {
					ready := conditions.Get(w.vcdMachine(machine), clusterv1.ReadyCondition)
					if ready != nil && ready.Reason == infrav1.TaskFailedReason {
						ahead += remedyPoll // it is tried again
					}
					g.Expect(ready).To(HaveValue(HaveField("Reason", infrav1.ReadyReason)))
				}
			}, patience, "5ms").Should(Succeed())

			w.Expect(restarts).To(BeNumerically(">=", 2), "each cell was restarted")
			w.Expect(w.sim.State().VApps).To(HaveLen(1))
			w.Expect(w.sim.State().VMs).To(ConsistOf(HaveField("Name", "m1"), HaveField("Name", "m2")))
			accepted, refused := logins(w.sim)
			w.Expect(accepted).To(BeNumerically("<=", 1+2*restarts))
			w.Expect(refused).To(BeZero())
		})
	}
}

func TestCredentialsAreRotatedWhileAMachineIsCreated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new map[string]string
		gap      bool // the old ones end first
	}{
		{"a password", map[string]string{"password": "password"}, map[string]string{"password": "fresh"}, true},
		{"an API token", map[string]string{"apiToken": "capvcd-api-token"}, map[string]string{"apiToken": "fresh"}, true},
		{"an API token that overlaps with the old one", map[string]string{"apiToken": "capvcd-api-token"}, map[string]string{"apiToken": "fresh"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := vcdsim.NewManualClock(time.Now()) // stands still until the credentials have changed
			w := newWorldWith(t, vcdsim.Config{Profile: quick, Clock: clock}, testMachine("m1")...)
			w.writeSecret(tt.old)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			for w.writes() == 0 {
				_, err := w.reconcileMachine("m1")
				w.Expect(err).NotTo(HaveOccurred())
			}

			if tt.gap {
				w.rotate("fresh")
				w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRefusedReason)
				w.eventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.CredentialsRefusedReason)
				_, refused := logins(w.sim)
				w.Expect(refused).To(Equal(1), "the account is not locked")
				w.writeSecret(tt.new)
			} else {
				w.sim.Edit(func(e *vcdsim.Editor) { e.SetAPITokens("acme", "capvcd", "capvcd-api-token", "fresh") })
				w.writeSecret(tt.new)
				_, err := w.reconcileMachine("m1")
				w.Expect(err).NotTo(HaveOccurred())
				w.rotate("fresh")
			}
			clock.SetRate(1)

			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.eventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Expect(w.sim.State().VMs).To(HaveLen(1))
			w.Expect(answered(w.sim, "POST /api/vdc/action/composeVApp")).To(Equal(1), "what was begun is not begun again")
		})
	}
}

// rotate replaces all credentials in VCD and ends its sessions.
func (w *world) rotate(fresh string) {
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.SetPassword("acme", "capvcd", fresh)
		e.SetAPITokens("acme", "capvcd", fresh)
		e.ExpireSessions()
	})
}

// writeSecret sets keys of the identity's Secret.
func (w *world) writeSecret(values map[string]string) {
	secret := w.secret("tenant-credentials")
	for key, value := range values {
		secret.Data[key] = []byte(value)
	}
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
}

// tenant adds a cluster with an identity and a machine of its own, all of the same name, in an organisation at a site.
func (w *world) tenant(sim *vcdsim.Simulator, org, name string) {
	identity, secret := testIdentity(sim.URL()), testSecret(sim)
	identity.ObjectMeta, secret.ObjectMeta = meta(name), meta(name)
	identity.Spec.SecretRef.Name = name
	cluster, infra := testCAPICluster(), testVCDCluster(sim)
	cluster.ObjectMeta, infra.ObjectMeta = meta(name), meta(name)
	cluster.Spec.InfrastructureRef.Name = name
	infra.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: cluster.UID}}
	infra.Spec.Org, infra.Spec.IdentityRef.Name = org, name
	objects := append(testMachine(name), identity, secret, cluster, infra)
	for _, o := range objects {
		o.SetLabels(ofCluster(name))
		w.Expect(w.client.Create(w.ctx, o)).To(Succeed())
	}
}

// pass reconciles the cluster and the machine of a tenant once.
func (w *world) pass(ctx context.Context, name string) error {
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: testNamespace, Name: name}}
	if _, err := reconcile.AsReconciler(w.client, w.cluster).Reconcile(ctx, request); err != nil {
		return err
	}
	_, err := reconcile.AsReconciler(w.client, w.machine).Reconcile(ctx, request)
	return err
}

func (w *world) eventuallyTenant(name, reason string) {
	w.Eventually(func(g Gomega) {
		g.Expect(w.pass(w.ctx, name)).To(Succeed())
		g.Expect(conditions.GetReason(w.vcdMachine(name), clusterv1.ReadyCondition)).To(Equal(reason))
	}, patience, "5ms").Should(Succeed())
}

func TestClustersOfOneSiteDoNotWaitForAnother(t *testing.T) {
	w := newWorld(t)
	model := vcdsim.K8sTenant()
	other := vcdsim.K8sTenant().Orgs[1]
	other.Name = "globex"
	other.Users[1].Password = "changed"
	model.Orgs = append(model.Orgs, other)
	second, err := vcdsim.New(vcdsim.Config{Model: model, Guest: pretendGuest{}, Seed: 2})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(second.Start()).To(Succeed())
	t.Cleanup(func() { _ = second.Close() })
	w.tenant(w.sim, "acme", "far")
	w.tenant(second, "acme", "near")
	w.tenant(second, "globex", "locked-out")

	w.sim.Faults().Add(vcdsim.Fault{Hang: true})
	ctx, cancel := context.WithCancel(w.ctx)
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for ctx.Err() == nil {
			_ = w.pass(ctx, "far") // it gets nowhere
		}
	}()
	w.Eventually(w.sim.Requests, patience, "5ms").ShouldNot(BeEmpty())
	w.eventuallyTenant("locked-out", infrav1.CredentialsRefusedReason)
	w.eventuallyTenant("near", infrav1.ReadyReason)
	w.Expect(w.sim.Requests()).To(HaveEach(HaveField("Status", 0)), "the other site has not answered yet")
	cancel()
	<-stuck

	w.sim.Faults().Clear()
	w.sim.Cells()[0].Stop()
	w.eventuallyTenant("near", infrav1.ReadyReason)
	second.Edit(func(e *vcdsim.Editor) { e.SetPassword("globex", "capvcd", "password") })
	secret := w.secret("locked-out")
	secret.Data["note"] = []byte("mended in VCD")
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
	w.eventuallyTenant("locked-out", infrav1.ReadyReason)

	accepted, refused := logins(second)
	w.Expect([]int{accepted, refused}).To(Equal([]int{2, 1}), "a session for each organisation")
	w.Expect(second.State().VMs).To(ConsistOf(HaveField("Name", "near"), HaveField("Name", "locked-out")))
	w.sim.Cells()[0].Start()
	w.clock.Add(int64(time.Minute))
	w.eventuallyTenant("far", infrav1.ReadyReason)
}

func TestSessionsEndWithTheLastIdentity(t *testing.T) {
	w := newWorld(t)
	w.identify("tenant")
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.deleteCluster()
	w.Expect(w.sim.State().Sessions).To(HaveLen(1))

	w.Expect(w.client.Delete(w.ctx, testIdentity(w.sim.URL()))).To(Succeed())
	w.identify("tenant")

	w.Eventually(w.sim.State, patience, "5ms").Should(HaveField("Sessions", BeEmpty()))
}

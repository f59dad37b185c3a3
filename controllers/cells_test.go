// SPDX-License-Identifier: Apache-2.0

package controllers_test

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// quick is a profile with tasks that are long enough to be interrupted.
var quick = vcdsim.Profile{Name: "test", Scale: 0.002}

// logins counts successful and rejected logins.
func logins(sim *vcdsim.Simulator) (accepted, refused int) {
	for _, r := range sim.Requests() {
		if r.Method != http.MethodPost || !strings.Contains(r.Path, "/sessions") &&
			!strings.HasPrefix(r.Path, "/oauth/") {
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

// answered counts the accepted requests of an operation.
func answered(sim *vcdsim.Simulator, operation string) int {
	n := 0
	for _, r := range sim.Requests() {
		if r.Operation == operation && r.Status < http.StatusMultipleChoices {
			n++
		}
	}
	return n
}

func TestClusterIsCreatedDuringARollingRestartOfCells(t *testing.T) {
	t.Parallel()
	for _, aborts := range []bool{true, false} {
		name := "tasks end with their cell"
		if !aborts {
			name = "tasks outlive their cell"
		}
		t.Run(name, func(t *testing.T) {
			assume := vcdsim.DefaultAssumptions()
			assume.CellStopAbortsTasks = aborts
			w := controllertest.NewWith(t, vcdsim.Config{Profile: quick, Cells: 2, Assumptions: &assume},
				append(controllertest.NewMachine("m1"), controllertest.NewMachine("m2")...)...)
			ahead := time.Duration(0)
			w.Machine.Now = func() time.Time { return time.Now().Add(ahead) }
			restarts := 0
			seen := 0

			w.Eventually(func(g Gomega) {
				w.Clock.Add(int64(time.Second))                // an interrupted call delays nothing for long
				if n := w.Writes(); n > seen && restarts < 4 { // an operation was just started
					seen = n
					w.Sim.Cells()[restarts%2].Restart(0)
					restarts++
				}
				_, err := w.ReconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				for _, machine := range []string{"m1", "m2"} {
					_, err := w.ReconcileMachine(machine)
					g.Expect(err).NotTo(HaveOccurred())
				}
				for _, machine := range []string{"m1", "m2"} {
					ready := conditions.Get(w.VCDMachine(machine), clusterv1.ReadyCondition)
					if ready != nil && ready.Reason == infrav1.TaskFailedReason {
						ahead += intervals.Remedy // it is retried
					}
					g.Expect(ready).To(HaveValue(HaveField("Reason", infrav1.ReadyReason)))
				}
			}, controllertest.Patience, "5ms").Should(Succeed())

			w.Expect(restarts).To(BeNumerically(">=", 2), "each cell was restarted")
			w.Expect(w.Sim.State().VApps).To(HaveLen(1))
			w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "m1"), HaveField("Name", "m2")))
			accepted, refused := logins(w.Sim)
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
		gap      bool // the old sessions end first
	}{
		{name: "a password", old: map[string]string{"password": "password"}, new: map[string]string{"password": "fresh"}, gap: true},
		{
			name: "an API token",
			old:  map[string]string{"apiToken": "capvcd-api-token"},
			new:  map[string]string{"apiToken": "fresh"},
			gap:  true,
		},
		{
			name: "an API token that overlaps with the old one",
			old:  map[string]string{"apiToken": "capvcd-api-token"},
			new:  map[string]string{"apiToken": "fresh"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := vcdsim.NewManualClock(time.Now()) // stopped until the credentials have changed
			w := controllertest.NewWith(t, vcdsim.Config{Profile: quick, Clock: clock},
				controllertest.NewMachine("m1")...)
			writeSecret(w, tt.old)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			for w.Writes() == 0 {
				_, err := w.ReconcileMachine("m1")
				w.Expect(err).NotTo(HaveOccurred())
			}

			if tt.gap {
				rotate(w, "fresh")
				w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRejectedReason)
				w.EventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.CredentialsRejectedReason)
				_, refused := logins(w.Sim)
				w.Expect(refused).To(Equal(1), "the account is not locked")
				writeSecret(w, tt.new)
			} else {
				w.Sim.Edit(func(e *vcdsim.Editor) { e.SetAPITokens("acme", "capvcd", "capvcd-api-token", "fresh") })
				writeSecret(w, tt.new)
				_, err := w.ReconcileMachine("m1")
				w.Expect(err).NotTo(HaveOccurred())
				rotate(w, "fresh")
			}
			clock.SetRate(1)

			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.EventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Expect(w.Sim.State().VMs).To(HaveLen(1))
			w.Expect(answered(w.Sim, "POST /api/vdc/action/composeVApp")).To(Equal(1),
				"started requests are not repeated")
		})
	}
}

// rotate replaces all credentials in VCD and ends its sessions.
func rotate(w *controllertest.Env, fresh string) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.SetPassword("acme", "capvcd", fresh)
		e.SetAPITokens("acme", "capvcd", fresh)
		e.ExpireSessions()
	})
}

// writeSecret sets keys in the identity's Secret.
func writeSecret(w *controllertest.Env, values map[string]string) {
	secret := w.Secret("tenant-credentials")
	for key, value := range values {
		secret.Data[key] = []byte(value)
	}
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
}

// tenant adds a cluster with its own identity and machine, all with the same name, in an organization of a site.
func tenant(w *controllertest.Env, sim *vcdsim.Simulator, org, name string) {
	identity := controllertest.NewIdentity(sim.URL())
	secret := controllertest.NewSecret(sim)
	identity.ObjectMeta = controllertest.Meta(name)
	secret.ObjectMeta = controllertest.Meta(name)
	identity.Spec.SecretRef.Name = name
	cluster := controllertest.NewCAPICluster()
	infra := controllertest.NewVCDCluster(sim)
	cluster.ObjectMeta = controllertest.Meta(name)
	infra.ObjectMeta = controllertest.Meta(name)
	cluster.Spec.InfrastructureRef.Name = name
	infra.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       name,
		UID:        cluster.UID,
	}}
	infra.Spec.Org = org
	infra.Spec.IdentityRef.Name = name
	objects := append(controllertest.NewMachine(name), identity, secret, cluster, infra)
	for _, o := range objects {
		o.SetLabels(capicluster.Labels(name))
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
}

// pass reconciles the cluster and the machine of a tenant once.
func pass(ctx context.Context, w *controllertest.Env, name string) error {
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: controllertest.Namespace, Name: name}}
	if _, err := reconcile.AsReconciler(w.Client, w.Cluster).Reconcile(ctx, request); err != nil {
		return err
	}
	_, err := reconcile.AsReconciler(w.Client, w.Machine).Reconcile(ctx, request)
	return err
}

func eventuallyTenant(w *controllertest.Env, name, reason string) {
	w.Eventually(func(g Gomega) {
		g.Expect(pass(w.Ctx, w, name)).To(Succeed())
		g.Expect(conditions.GetReason(w.VCDMachine(name), clusterv1.ReadyCondition)).To(Equal(reason))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestClustersDoNotWaitForAnotherSite(t *testing.T) {
	w := controllertest.New(t)
	model := vcdsim.K8sTenant()
	other := vcdsim.K8sTenant().Orgs[1]
	other.Name = "globex"
	other.Users[1].Password = "changed"
	model.Orgs = append(model.Orgs, other)
	second, err := vcdsim.New(vcdsim.Config{Model: model, Guest: controllertest.PretendGuest{}, Seed: 2})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(second.Start()).To(Succeed())
	t.Cleanup(func() { _ = second.Close() })
	tenant(w, w.Sim, "acme", "far")
	tenant(w, second, "acme", "near")
	tenant(w, second, "globex", "locked-out")

	w.Sim.Faults().Add(vcdsim.Fault{Hang: true})
	ctx, cancel := context.WithCancel(w.Ctx)
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for ctx.Err() == nil {
			_ = pass(ctx, w, "far") // it makes no progress
		}
	}()
	w.Eventually(w.Sim.Requests, controllertest.Patience, "5ms").ShouldNot(BeEmpty())
	w.Eventually(func(g Gomega) {
		g.Expect(pass(w.Ctx, w, "locked-out")).To(Succeed())
		c := &infrav1.VCDCluster{}
		key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "locked-out"}
		g.Expect(w.Client.Get(w.Ctx, key, c)).To(Succeed())
		g.Expect(conditions.GetReason(c, clusterv1.ReadyCondition)).To(Equal(infrav1.CredentialsRejectedReason))
	}, controllertest.Patience, "5ms").Should(Succeed())
	eventuallyTenant(w, "near", infrav1.ReadyReason)
	w.Expect(w.Sim.Requests()).To(HaveEach(HaveField("Status", 0)), "the other site has not responded yet")
	cancel()
	<-stuck

	w.Sim.Faults().Clear()
	w.Sim.Cells()[0].Stop()
	eventuallyTenant(w, "near", infrav1.ReadyReason)
	second.Edit(func(e *vcdsim.Editor) { e.SetPassword("globex", "capvcd", "password") })
	secret := w.Secret("locked-out")
	secret.Data["note"] = []byte("mended in VCD")
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	eventuallyTenant(w, "locked-out", infrav1.ReadyReason)

	accepted, refused := logins(second)
	w.Expect([]int{accepted, refused}).To(Equal([]int{2, 1}), "one session per organization")
	w.Expect(second.State().VMs).To(ConsistOf(HaveField("Name", "near"), HaveField("Name", "locked-out")))
	w.Sim.Cells()[0].Start()
	w.Clock.Add(int64(time.Minute))
	eventuallyTenant(w, "far", infrav1.ReadyReason)
}

func TestSessionsEndWithTheLastIdentity(t *testing.T) {
	w := controllertest.New(t)
	w.Identify("tenant")
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.DeleteCluster()
	w.Expect(w.Sim.State().Sessions).To(HaveLen(1))

	w.Expect(w.Client.Delete(w.Ctx, controllertest.NewIdentity(w.Sim.URL()))).To(Succeed())
	w.Identify("tenant")

	w.Eventually(w.Sim.State, controllertest.Patience, "5ms").Should(HaveField("Sessions", BeEmpty()))
}

// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// revoke revokes access, and returns a function that restores it.
type revoke func(*controllertest.Env) (restore func())

// faulty makes an operation fail with a fault.
func faulty(f vcdsim.Fault) revoke {
	return func(w *controllertest.Env) func() {
		w.Sim.Faults().Add(f)
		return w.Sim.Faults().Clear
	}
}

// secretWithout removes or changes a key of the identity's Secret.
func secretWithout(key string, value []byte) revoke {
	return func(w *controllertest.Env) func() {
		write := func(value []byte) {
			secret := w.Secret("tenant-credentials")
			secret.Data[key] = value
			w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
		}
		was := w.Secret("tenant-credentials").Data[key]
		write(value)
		return func() { write(was) }
	}
}

// without deletes an object.
func without(get func(*controllertest.Env) client.Object) revoke {
	return func(w *controllertest.Env) func() {
		obj := get(w)
		obj.SetFinalizers(nil)
		w.Expect(w.Client.Update(w.Ctx, obj)).To(Succeed())
		w.Expect(w.Client.Delete(w.Ctx, obj)).To(Succeed())
		again := obj.DeepCopyObject().(client.Object)
		again.SetResourceVersion("")
		return func() { w.Expect(w.Client.Create(w.Ctx, again)).To(Succeed()) }
	}
}

// edited changes the identity.
func edited(change func(*infrav1.VCDIdentity)) revoke {
	return func(w *controllertest.Env) func() {
		was := identityOf(w)
		now := was.DeepCopy()
		change(now)
		w.Expect(w.Client.Update(w.Ctx, now)).To(Succeed())
		return func() {
			was.ResourceVersion = identityOf(w).ResourceVersion
			w.Expect(w.Client.Update(w.Ctx, was)).To(Succeed())
		}
	}
}

func identityOf(w *controllertest.Env) *infrav1.VCDIdentity {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"},
		i)).To(Succeed())
	return i
}

// password changes the password in VCD, and ends all sessions.
func password(w *controllertest.Env, word string) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.SetPassword("acme", "capvcd", word)
		e.ExpireSessions()
	})
}

func TestNoAccessIsNotABrokenMachine(t *testing.T) {
	t.Parallel()
	const listVMs, readVM = "GET /api/query type=vm", "GET /api/vApp/vm"
	forbidden := func(operation string) revoke {
		return faulty(vcdsim.Fault{Operation: operation, Status: http.StatusForbidden})
	}
	tests := []struct {
		name   string
		revoke revoke
		reason string
	}{
		{name: "VCD does not respond", revoke: faulty(vcdsim.Fault{DropBefore: true}), reason: infrav1.SiteUnreachableReason},
		{name: "VCD responds with 500", revoke: faulty(vcdsim.Fault{Status: http.StatusInternalServerError})},
		{name: "VCD responds with 503", revoke: faulty(vcdsim.Fault{Status: http.StatusServiceUnavailable}), reason: infrav1.SiteUnreachableReason},
		{name: "VCD responds with 429", revoke: faulty(vcdsim.Fault{Status: http.StatusTooManyRequests}), reason: infrav1.ThrottledReason},
		{
			name: "the password expired",
			revoke: func(w *controllertest.Env) func() {
				password(w, "other")
				return func() { password(w, "password") }
			},
			reason: infrav1.CredentialsRejectedReason,
		},
		{name: "every request is rejected with 401", revoke: faulty(vcdsim.Fault{Status: http.StatusUnauthorized})},
		{name: "every request is rejected with 403", revoke: faulty(vcdsim.Fault{Status: http.StatusForbidden})},
		{name: "the right to list VMs is revoked", revoke: forbidden(listVMs), reason: infrav1.ForbiddenReason},
		{
			name:   "listing VMs is rejected for another reason",
			revoke: faulty(vcdsim.Fault{Operation: listVMs, Status: http.StatusBadRequest}),
		},
		{name: "the right to read VMs is revoked", revoke: forbidden(readVM)},
		{name: "the password is missing", revoke: secretWithout("password", nil), reason: infrav1.SecretIncompleteReason},
		{name: "the CA is a different one", revoke: secretWithout("ca.crt", []byte(otherCA))},
		{name: "the CA is missing", revoke: secretWithout("ca.crt", nil), reason: infrav1.CertificateNotTrustedReason},
		{
			name: "the Secret is deleted",
			revoke: without(func(w *controllertest.Env) client.Object {
				return w.Secret("tenant-credentials")
			}),
			reason: infrav1.SecretNotFoundReason,
		},
		{
			name: "the identity is deleted",
			revoke: without(func(w *controllertest.Env) client.Object {
				return identityOf(w)
			}),
			reason: infrav1.IdentityNotFoundReason,
		},
		{
			name: "the identity is for another site",
			revoke: edited(func(i *infrav1.VCDIdentity) {
				i.Spec.Site = "https://other.example.com"
			}),
			reason: infrav1.SiteNotAllowedReason,
		},
		{
			name: "the VCDCluster is missing",
			revoke: without(func(w *controllertest.Env) client.Object {
				return w.VCDCluster()
			}),
			reason: infrav1.WaitingForClusterReason,
		},
		{
			name: "VCD does not know the state of VMs",
			revoke: func(w *controllertest.Env) func() {
				w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").Status = vcdsim.Unresolved })
				return func() { w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").Status = vcdsim.PoweredOn }) }
			},
			reason: infrav1.VMInconsistentReason,
		},
	}
	for _, tt := range tests {
		for _, moved := range []bool{false, true} {
			name := tt.name
			if moved {
				name += ", after a move to another management cluster"
			}
			t.Run(name, func(t *testing.T) {
				w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
				w.Ready("cp-0")
				if moved {
					move(w, "cp-0")
				}
				restore := tt.revoke(w)
				w.Restart(t, events.NewFakeRecorder(1000))

				reasons := readyWithoutFalse(w)
				if tt.reason != "" {
					w.Expect(reasons).To(ContainElement(tt.reason))
				}

				restore()
				w.Restart(t, events.NewFakeRecorder(1000))
				w.Eventually(func() []string { return readyWithoutFalse(w) }, controllertest.Patience, "5ms").
					Should(ContainElement(infrav1.ReadyReason))
			})
		}
	}
}

// readyWithoutFalse reconciles for some hours, during which no condition of the machine may be False, and returns the
// reasons of Ready.
func readyWithoutFalse(w *controllertest.Env) []string {
	var reasons []string
	for hour := range 4 {
		for range 3 {
			at := time.Duration(hour) * time.Hour
			w.Later(at)
			w.Clock.Store(int64(at))
			_, _ = w.ReconcileMachine("cp-0")
			m := w.VCDMachine("cp-0")
			for _, c := range m.Status.Conditions {
				if c.Type != clusterv1.PausedCondition && c.Type != infrav1.BootstrapDataRemovedCondition {
					w.Expect(c.Status).NotTo(Equal(metav1.ConditionFalse), "%s: %s: %s", c.Type, c.Reason, c.Message)
				}
			}
			reasons = append(reasons, conditions.GetReason(m, clusterv1.ReadyCondition))
		}
	}
	return reasons
}

// otherCA is not a valid certificate.
var otherCA = strings.ReplaceAll("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "A", "B")

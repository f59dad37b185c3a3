// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// AccountLogin is the request with which a service account rotates its token, as the simulator counts it.
const AccountLogin = "POST /oauth/tenant/token"

// NewToken creates a service account and returns its first token.
func (w *Env) NewToken(t *testing.T, name string) string {
	t.Helper()
	return vcdsimtest.ServiceAccount(t, w.Sim, name, vcdsim.RoleClusterAuthor)
}

// UseAccount makes the identity use a service account with the given token.
func (w *Env) UseAccount(token string) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: "tenant"}, i)).To(Succeed())
	i.Spec.Type = infrav1.CredentialServiceAccount
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
	w.WriteToken(token)
}

// WriteToken writes a token into the Secret as a user does, without changing the Secret's annotations.
func (w *Env) WriteToken(token string) {
	secret := w.Secret("tenant-credentials")
	secret.Data = map[string][]byte{"apiToken": []byte(token), "ca.crt": w.Sim.CA()}
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
}

// Token returns the API token in the Secret of the identity.
func (w *Env) Token() string { return string(w.Secret("tenant-credentials").Data["apiToken"]) }

// AccountLogins counts the logins as a service account, including failed ones.
func (w *Env) AccountLogins() int { return w.Sim.Counters()[AccountLogin] }

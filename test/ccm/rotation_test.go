// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// TestRotatingTokens runs two clusters whose controllers log in as service accounts. Each login rotates the token. The
// test ends their sessions and restarts the controllers repeatedly. VCD must never reject a token.
func TestRotatingTokens(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	rounds := 15
	if *longForms {
		rounds = 100
	}
	v, err := newVCD(fleet)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(v.close()).To(Succeed()) })
	var users []*tokenUser
	for _, name := range []string{"token-a", "token-b"} {
		users = append(users, newTokenUser(t, v, name))
	}

	for round := range rounds {
		var before []string
		for _, u := range users {
			g.Eventually(func() (_ string, err error) {
				u.last, err = u.token()
				return u.last, err
			}, timeout, poll).ShouldNot(BeElementOf(append(before, u.last)), "round %d of %s", round,
				u.controller.name)
			before = append(before, u.last)
		}
		v.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
		if round%5 == 4 {
			g.Expect(users[round%2].controller.Restart(t.Context())).To(Succeed())
		}
	}

	for _, u := range users {
		g.Expect(u.controller.log()).NotTo(ContainSubstring("was rejected"))
		g.Expect(u.controller.log()).NotTo(ContainSubstring(u.last), "tokens are not logged")
	}
}

// A tokenUser is a controller that logs in as a service account, in a separate cluster.
type tokenUser struct {
	t          *testing.T
	cluster    *cluster
	controller *controller
	last       string
}

func newTokenUser(t *testing.T, v *vcd, name string) *tokenUser {
	t.Helper()
	g := NewWithT(t)
	u := &tokenUser{t: t, cluster: ownCluster(t, name)}
	u.last = vcdsimtest.ServiceAccount(t, v.Simulator, name, vcdsim.RoleCloudProvider)
	g.Expect(u.cluster.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: addons.Namespace, Name: addons.ServiceAccountName},
		Data:       map[string][]byte{"refreshToken": []byte(u.last)},
	})).To(Succeed())
	config, files, err := v.files(settings{"clusterid": name, "vcd.serviceAccountSecret": addons.ServiceAccountName})
	g.Expect(err).NotTo(HaveOccurred())
	for path := range files {
		if path != config {
			delete(files, path)
		}
	}
	u.controller, err = newController(t.Context(), u.cluster, name, files, config, nodeControllers,
		"--node-monitor-period=200ms")
	g.Expect(err).NotTo(HaveOccurred())
	// While a node is not ready, the controller sends requests continuously.
	w := &fixture{cluster: u.cluster}
	w.setReady(t, v.machines()[0].Name, corev1.ConditionUnknown)
	g.Expect(u.controller.Start(t.Context())).To(Succeed())
	t.Cleanup(func() { g.Expect(u.controller.Stop()).To(Succeed()) })
	return u
}

// token returns the token in the Secret.
func (u *tokenUser) token() (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: addons.Namespace, Name: addons.ServiceAccountName}
	err := u.cluster.client.Get(u.t.Context(), key, secret)
	return string(secret.Data["refreshToken"]), err
}

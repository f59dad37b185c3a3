// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	rounds = 100
	// password is the password of the system administrator. It must not reach workload clusters.
	password = "canary-of-the-provider"
)

// TestNobodyIsLockedOut ends all sessions a hundred times. The manager, whose service account several clusters share,
// and the cloud controller managers of two clusters then log in again at the same time. In between, they are restarted.
func TestNobodyIsLockedOut(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server, and -short is set")
	}
	log.SetLogger(klog.Background())
	h := newEnvironment(t)
	h.account(managerIdentity, vcdsim.RoleClusterAuthor, false)
	h.account("ccm-a", vcdsim.RoleCloudProvider, true)
	h.account("ccm-b", vcdsim.RoleCloudProvider, true)
	h.identity("manager-token", managerIdentity, infrav1.CredentialServiceAccount, true)
	h.secret("provider",
		map[string]string{infrav1.SecretUsername: "System/administrator", infrav1.SecretPassword: password})
	h.identity("provider", "provider", infrav1.CredentialUser, true)
	h.cluster("a", "192.168.100.200", "ccm-a")
	h.cluster("b", "192.168.100.201", "ccm-b")
	m := h.newManager()
	seen := map[string][]string{managerIdentity: {h.value(namespace, managerIdentity, infrav1.SecretAPIToken)}}
	var ccms []*ccm
	for _, cluster := range []string{"a", "b"} {
		m.ready(cluster)
		h.waitForReason(m, cluster, infrav1.CloudProviderApplyingReason)
		ccms = append(ccms, h.newCCM(cluster))
		seen[ccms[len(ccms)-1].name] = nil
	}

	for round := range rounds {
		h.sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
		h.round(round, m, ccms)
		for user, tokens := range seen {
			now := h.tokenOf(user)
			h.Expect(tokens).NotTo(ContainElement(now), "round %d: %s did not log in again", round, user)
			seen[user] = append(tokens, now)
		}
		switch round % 20 {
		case 7:
			m = h.newManager()
		case 11, 17:
			ccms[round%2].restart()
		}
	}

	h.expectNotShareable(m)
	h.expectMovableTokens(m)
	h.expectAllLoginsSucceeded()
	h.expectTokensOnlyInOwnSecrets(seen)
}

// round changes the specs of the clusters, which triggers reconciles, and runs all programs in parallel.
func (h *environment) round(round int, m *manager, ccms []*ccm) {
	h.t.Helper()
	var all sync.WaitGroup
	for _, cluster := range []string{"a", "b"} {
		change := fmt.Appendf(nil, `{"spec":{"loadBalancer":{"vipSubnet":"10.0.%d.0/24"}}}`, round)
		h.Expect(h.client.Patch(h.ctx, &infrav1.VCDCluster{ObjectMeta: meta(cluster)},
			client.RawPatch(types.MergePatchType, change))).To(Succeed())
		all.Go(func() { m.ready(cluster) })
	}
	for _, c := range ccms {
		for range 2 {
			all.Go(func() { h.Expect(c.sendRequest(h.ctx)).To(Succeed(), c.name) })
		}
	}
	all.Wait()
}

// tokenOf returns the stored token of the manager or of a cloud controller manager.
func (h *environment) tokenOf(user string) string {
	if user == managerIdentity {
		return h.value(namespace, managerIdentity, infrav1.SecretAPIToken)
	}
	return h.value(user, addons.ServiceAccountName, addons.RefreshTokenKey)
}

// waitForReason waits for a reason of CloudProviderReady.
func (h *environment) waitForReason(m *manager, cluster, reason string) {
	h.t.Helper()
	h.Eventually(func(g Gomega) {
		got, err := m.reconcile(m.provider, cluster, infrav1.CloudProviderReadyCondition)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(got.Reason).To(Equal(reason), got.Message)
	}, timeout, "5ms").Should(Succeed())
}

// expectNotShareable creates clusters whose cloud controller managers request credentials that must not leave the
// management cluster.
func (h *environment) expectNotShareable(m *manager) {
	for i, tt := range []struct{ cluster, identity, reason string }{
		{"c", managerIdentity, infrav1.IdentityNotShareableReason},
		{"d", "manager-token", infrav1.TokenInUseReason},
		{"e", "ccm-a", infrav1.TokenInUseReason},
		{"f", "provider", infrav1.IdentityNotShareableReason},
	} {
		h.cluster(tt.cluster, "192.168.100.21"+string(rune('0'+i)), tt.identity)
		m.ready(tt.cluster)
		h.waitForReason(m, tt.cluster, tt.reason)
	}
}

// expectMovableTokens checks that clusterctl move waits for the manager's token until all clusters are paused, so that
// no program logs in with it, and that it never waits for the tokens of cloud controller managers.
func (h *environment) expectMovableTokens(m *manager) {
	h.Expect(m.blocksMove(managerIdentity)).To(BeTrue())
	h.Expect(m.blocksMove("ccm-a")).To(BeFalse())
	clusters := &clusterv1.ClusterList{}
	h.Expect(h.client.List(h.ctx, clusters)).To(Succeed())
	for _, c := range clusters.Items {
		c.Spec.Paused = ptr.To(true)
		h.Expect(h.client.Update(h.ctx, &c)).To(Succeed())
	}
	h.Expect(m.blocksMove(managerIdentity)).To(BeFalse())
}

// expectAllLoginsSucceeded checks that every login used the newest token.
func (h *environment) expectAllLoginsSucceeded() {
	logins := 0
	for _, r := range h.sim.Requests() {
		if strings.HasSuffix(r.Path, "/token") {
			h.Expect(r.Status).To(Equal(200), r.Path)
			logins++
		}
	}
	h.Expect(logins).To(BeNumerically(">=", 3*rounds))
	h.Expect(logins).To(BeNumerically("<", 4*rounds), "parallel requests share a login")
}

// expectTokensOnlyInOwnSecrets searches all Secrets and ConfigMaps for all tokens that ever existed, and for the
// password. Each may only be in its own Secret.
func (h *environment) expectTokensOnlyInOwnSecrets(seen map[string][]string) {
	secrets := &corev1.SecretList{}
	maps := &corev1.ConfigMapList{}
	h.Expect(h.client.List(h.ctx, secrets)).To(Succeed())
	h.Expect(h.client.List(h.ctx, maps)).To(Succeed())
	texts := map[string]string{}
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			texts[s.Namespace+"/"+s.Name] += key + ": " + string(value) + "\n"
		}
	}
	for _, m := range maps.Items {
		for key, value := range m.Data {
			texts[m.Namespace+"/"+m.Name] += key + ": " + value + "\n"
		}
	}
	h.Expect(texts).To(HaveKey(namespace+"/a-cloud-provider"), "the search includes the manifests for workload clusters")
	h.Expect(textsContaining(texts, seen[managerIdentity])).To(ConsistOf(namespace + "/" + managerIdentity))
	h.Expect(textsContaining(texts, []string{password})).To(ConsistOf(namespace + "/provider"))
	for _, c := range []string{"a", "b"} {
		h.Expect(textsContaining(texts,
			seen["workload-of-"+c])).To(ConsistOf("workload-of-" + c + "/" + addons.ServiceAccountName))
	}
}

// textsContaining lists the names of the texts that contain one of the secrets, as plain text or in base64.
func textsContaining(texts map[string]string, hidden []string) []string {
	var found []string
	for name, text := range texts {
		if slices.ContainsFunc(hidden, func(s string) bool {
			return strings.Contains(text, s) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(s)))
		}) {
			found = append(found, name)
		}
	}
	return found
}

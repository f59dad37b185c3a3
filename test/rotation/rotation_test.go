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
	// password of the system administrator, which no workload cluster may get.
	password = "canary-of-the-provider"
)

// TestNobodyIsLockedOut ends all sessions a hundred times. The manager, whose service account several clusters share,
// and the cloud controller managers of two of them log in again at the same time. They are also killed and started
// again in between.
func TestNobodyIsLockedOut(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server, and -short is set")
	}
	log.SetLogger(klog.Background())
	h := newEnvironment(t)
	h.account(managers, vcdsim.RoleClusterAuthor, false)
	h.account("ccm-a", vcdsim.RoleCloudProvider, true)
	h.account("ccm-b", vcdsim.RoleCloudProvider, true)
	h.identity("in-disguise", managers, infrav1.CredentialServiceAccount, true)
	h.secret("provider",
		map[string]string{infrav1.SecretUsername: "System/administrator", infrav1.SecretPassword: password})
	h.identity("provider", "provider", infrav1.CredentialUser, true)
	h.cluster("a", "192.168.100.200", "ccm-a")
	h.cluster("b", "192.168.100.201", "ccm-b")
	m := h.newManager()
	seen := map[string][]string{managers: {h.value(namespace, managers, infrav1.SecretAPIToken)}}
	var ccms []*ccm
	for _, cluster := range []string{"a", "b"} {
		m.ready(cluster)
		h.reports(m, cluster, infrav1.CloudProviderApplyingReason)
		ccms = append(ccms, h.newCCM(cluster))
		seen[ccms[len(ccms)-1].name] = nil
	}

	for round := range rounds {
		h.sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
		h.round(round, m, ccms)
		for user, tokens := range seen {
			now := h.tokenOf(user)
			h.Expect(tokens).NotTo(ContainElement(now), "round %d: %s has logged in", round, user)
			seen[user] = append(tokens, now)
		}
		switch round % 20 {
		case 7:
			m = h.newManager()
		case 11, 17:
			ccms[round%2].restart()
		}
	}

	h.neverShared(m)
	h.tokensMoveWhenTheyMay(m)
	h.noLoginWasRefused()
	h.tokensAreWhereTheyBelong(seen)
}

// round runs all programs in parallel, each for several clusters. A change of its spec triggers a reconcile of a
// cluster.
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
			all.Go(func() { h.Expect(c.work(h.ctx)).To(Succeed(), c.name) })
		}
	}
	all.Wait()
}

// tokenOf returns the token of the manager or of a cloud controller manager.
func (h *environment) tokenOf(user string) string {
	if user == managers {
		return h.value(namespace, managers, infrav1.SecretAPIToken)
	}
	return h.value(user, addons.ServiceAccountName, addons.RefreshTokenKey)
}

// reports waits for a reason of CloudProviderReady.
func (h *environment) reports(m *manager, cluster, reason string) {
	h.t.Helper()
	h.Eventually(func(g Gomega) {
		got, err := m.pass(m.provider, cluster, infrav1.CloudProviderReadyCondition)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(got.Reason).To(Equal(reason), got.Message)
	}, patience, "5ms").Should(Succeed())
}

// neverShared requests credentials that must not leave the management cluster.
func (h *environment) neverShared(m *manager) {
	for i, tt := range []struct{ cluster, identity, reason string }{
		{"c", managers, infrav1.IdentityNotShareableReason},
		{"d", "in-disguise", infrav1.TokenInUseReason},
		{"e", "ccm-a", infrav1.TokenInUseReason},
		{"f", "provider", infrav1.IdentityNotShareableReason},
	} {
		h.cluster(tt.cluster, "192.168.100.21"+string(rune('0'+i)), tt.identity)
		m.ready(tt.cluster)
		h.reports(m, tt.cluster, tt.reason)
	}
}

// tokensMoveWhenTheyMay checks that the manager's token can be moved to another management cluster as soon as no
// program logs in with it, and that the tokens of cloud controller managers can always be moved.
func (h *environment) tokensMoveWhenTheyMay(m *manager) {
	h.Expect(m.keeps(managers)).To(BeTrue())
	h.Expect(m.keeps("ccm-a")).To(BeFalse())
	clusters := &clusterv1.ClusterList{}
	h.Expect(h.client.List(h.ctx, clusters)).To(Succeed())
	for _, c := range clusters.Items {
		c.Spec.Paused = ptr.To(true)
		h.Expect(h.client.Update(h.ctx, &c)).To(Succeed())
	}
	h.Expect(m.keeps(managers)).To(BeFalse())
}

// noLoginWasRefused checks that every login used the newest token.
func (h *environment) noLoginWasRefused() {
	logins := 0
	for _, r := range h.sim.Requests() {
		if strings.HasSuffix(r.Path, "/token") {
			h.Expect(r.Status).To(Equal(200), r.Path)
			logins++
		}
	}
	h.Expect(logins).To(BeNumerically(">=", 3*rounds))
	h.Expect(logins).To(BeNumerically("<", 4*rounds), "one login for all who need it")
}

// tokensAreWhereTheyBelong searches everything that stores data for all tokens that ever existed, and for the password.
func (h *environment) tokensAreWhereTheyBelong(seen map[string][]string) {
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
	h.Expect(texts).To(HaveKey(namespace+"/a-cloud-provider"), "what is given to workload clusters is among them")
	h.Expect(holding(texts, seen[managers])).To(ConsistOf(namespace + "/" + managers))
	h.Expect(holding(texts, []string{password})).To(ConsistOf(namespace + "/provider"))
	for _, c := range []string{"a", "b"} {
		h.Expect(holding(texts,
			seen["workload-of-"+c])).To(ConsistOf("workload-of-" + c + "/" + addons.ServiceAccountName))
	}
}

// holding lists the texts that contain one of the secrets, in plain form or encoded.
func holding(texts map[string]string, hidden []string) []string {
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

// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
)

// proxied sets a proxy in the VCDCluster.
func proxied(t *testing.T, objects ...client.Object) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, objects...)
	c := w.VCDCluster()
	c.Spec.Proxy = infrav1.ProxySpec{
		HTTPProxy:  "http://proxy:3128",
		HTTPSProxy: "http://proxy:3128",
		NoProxy:    []string{".corp.example.com"},
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	return w
}

func proxySecret(w *controllertest.Env) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: controllertest.Meta("c1-proxy-settings")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	return secret
}

func TestTheNodeProxyIsWrittenBeforeAnyMachine(t *testing.T) {
	w := proxied(t)

	for {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		c := w.VCDCluster()
		if ptr.Deref(c.Status.Initialization.Provisioned, false) {
			break
		}
		w.Expect(conditions.IsTrue(c, clusterv1.ReadyCondition)).To(BeFalse())
	}

	secret := proxySecret(w)
	w.Expect(metav1.IsControlledBy(secret, w.VCDCluster())).To(BeTrue())
	w.Expect(string(secret.Data[nodeproxy.KeyContainerd])).To(And(
		ContainSubstring(`"HTTPS_PROXY=http://proxy:3128"`),
		ContainSubstring("NO_PROXY=localhost,127.0.0.0/8,::1,.svc,.cluster.local,"),
		ContainSubstring(","+controllertest.VIP+",192.168.100.0/24,127.0.0.1,.corp.example.com"),
	), "endpoint, node network, site, and the user's additions")
	w.EventuallyCluster(infrav1.NodeProxyReadyCondition, infrav1.ReadyReason)
	before := secret.ResourceVersion
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(proxySecret(w).ResourceVersion).To(Equal(before), "a correct Secret is not touched")
}

func TestTheSiteIsReachedThroughTheProxyIfConfigured(t *testing.T) {
	w := proxied(t)
	c := w.VCDCluster()
	c.Spec.Proxy.Site = infrav1.SiteByProxy
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(infrav1.NodeProxyReadyCondition, infrav1.ReadyReason)

	w.Expect(string(proxySecret(w).Data[nodeproxy.KeyContainerd])).To(
		ContainSubstring(","+controllertest.VIP+",192.168.100.0/24,.corp.example.com"), "all addresses except the site")
}

func TestProxyCredentialsComeFromASecret(t *testing.T) {
	w := proxied(t)
	c := w.VCDCluster()
	c.Spec.Proxy.CredentialsSecretRef.Name = "proxy"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(infrav1.NodeProxyReadyCondition, infrav1.ProxyCredentialsMissingReason)

	credentials := &corev1.Secret{
		ObjectMeta: controllertest.Meta("proxy"),
		Data: map[string][]byte{
			infrav1.SecretUsername: []byte("user"),
			infrav1.SecretPassword: []byte("p@ss:word/%\n"),
		},
	}
	w.Expect(w.Client.Create(w.Ctx, credentials)).To(Succeed())
	w.EventuallyCluster(infrav1.NodeProxyReadyCondition, infrav1.ReadyReason)

	_, httpsProxy := nodeproxy.URLsOf(proxySecret(w).Data)
	w.Expect(httpsProxy).To(ContainSubstring("://user:p%40ss%3Aword%2F%25@"))
	w.Expect(string(proxySecret(w).Data[nodeproxy.KeyAPT])).To(ContainSubstring("p%40ss%3Aword%2F%25@"))
	credentials.Data[infrav1.SecretPassword] = []byte("another")
	w.Expect(w.Client.Update(w.Ctx, credentials)).To(Succeed())
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	_, httpsProxy = nodeproxy.URLsOf(proxySecret(w).Data)
	w.Expect(httpsProxy).To(ContainSubstring("://user:another@"))
}

func TestCredentialsOfARemovedProxyAreNotRequired(t *testing.T) {
	w := proxied(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	c := w.VCDCluster()
	c.Spec.Proxy = infrav1.ProxySpec{}
	c.Spec.Proxy.CredentialsSecretRef.Name = "deleted"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	httpProxy, httpsProxy := nodeproxy.URLsOf(proxySecret(w).Data)
	w.Expect(httpProxy + httpsProxy).To(BeEmpty())
}

func TestNoProxyObjectsExistWithoutAProxy(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(conditions.Get(w.VCDCluster(), infrav1.NodeProxyReadyCondition)).To(BeNil())
	w.Expect(apierrors.IsNotFound(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(
		&corev1.Secret{ObjectMeta: controllertest.Meta("c1-proxy-settings")}), &corev1.Secret{}))).To(BeTrue())
}

func TestRemovingTheProxyLeavesEmptySettingsFiles(t *testing.T) {
	w := proxied(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	c := w.VCDCluster()
	c.Spec.Proxy = infrav1.ProxySpec{}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	files := proxySecret(w).Data
	nothing := nodeproxy.Settings{Version: nodeproxy.Version("", "", nil)}.Files()
	delete(files, "no-proxy") // for pods only: no template references it
	delete(nothing, "no-proxy")
	w.Expect(files).To(Equal(nothing), "templates may still reference the Secret")
}

func TestAForeignProxySecretIsNotTouched(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: controllertest.Meta("c1-proxy-settings"), Data: map[string][]byte{"mine": []byte("!")}}
	w := proxied(t, foreign)

	w.EventuallyCluster(infrav1.NodeProxyReadyCondition, infrav1.NameConflictReason)

	w.Expect(proxySecret(w).Data).To(Equal(foreign.Data))
	w.Expect(ptr.Deref(w.VCDCluster().Status.Initialization.Provisioned, false)).To(BeFalse())
	w.Expect(w.Client.Delete(w.Ctx, foreign)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestZoneNetworksBypassTheProxy(t *testing.T) {
	w := controllertest.NewInZones(t)
	c := w.VCDCluster()
	c.Spec.Proxy = infrav1.ProxySpec{HTTPProxy: "http://proxy:3128"}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	z := w.DeploymentZone("b")
	z.Spec.PlacementConstraint.Networks = []string{"nodes", "storage"}
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	w.Eventually(func() int {
		_, err := w.ReconcileZone("b")
		w.Expect(err).NotTo(HaveOccurred())
		return len(w.DeploymentZone("b").Status.Networks)
	}, controllertest.Patience, "5ms").Should(Equal(2))

	w.Ready()

	w.Expect(string(proxySecret(w).Data[nodeproxy.KeyContainerd])).To(ContainSubstring(
		",10.20.0.0/24,192.168.100.0/24,"), "each once")
}

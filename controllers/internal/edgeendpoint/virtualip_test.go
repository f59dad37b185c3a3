// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestTheManagerDiesAtEveryWriteOfAVirtualIP lets the manager die before and after every write while a cluster is created
// and rolled that has virtual IPs of both families by a DaemonSet and BGP, and a proxy by which it reaches its site. It
// leaves the same objects for Cluster API as one that never died.
func TestTheManagerDiesAtEveryWriteOfAVirtualIP(t *testing.T) {
	t.Parallel()
	var undisturbed, killed map[string]any
	t.Run("lives", func(t *testing.T) {
		t.Run("undisturbed", func(t *testing.T) { undisturbed = virtualIPLife(t, false) })
		t.Run("killed", func(t *testing.T) { killed = virtualIPLife(t, true) })
	})

	g := NewWithT(t)
	g.Expect(undisturbed).NotTo(BeEmpty())
	g.Expect(killed).To(HaveLen(len(undisturbed)))
	for name, content := range undisturbed {
		g.Expect(killed).To(HaveKeyWithValue(name, content))
	}
}

// virtualIPLife creates the cluster, replaces its only control plane and deletes it. It returns what was written for
// Cluster API.
func virtualIPLife(t *testing.T, dies bool) map[string]any {
	t.Helper()
	l := newLife(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.CloudProvider()}, nil)
	l.bothFamilies()
	password := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllertest.Namespace, Name: "router"},
		Data:       map[string][]byte{infrav1.SecretPassword: []byte("s3cret")},
	}
	l.Expect(l.api.Create(l.Ctx, password)).To(Succeed())
	l.edit(func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint.Host = "198.51.100.250"
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
			Type: infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{
				Mode:             infrav1.KubeVIPDaemonSet,
				SecondaryAddress: "2001:db8::250",
				BGP: &infrav1.KubeVIPBGP{
					ASNumber:        65000,
					RouterInterface: "ens192",
					Peers: []infrav1.KubeVIPPeer{
						{
							Address:           "192.168.100.1",
							ASNumber:          65001,
							PasswordSecretRef: &infrav1.SecretKeyReference{Name: password.Name},
						},
						{Address: "fd00:100::1", ASNumber: 65001},
					},
				},
			},
		}
		c.Spec.Proxy = infrav1.ProxySpec{
			HTTPProxy:  "http://proxy.example.com:3128",
			HTTPSProxy: "http://proxy.example.com:3128",
			Site:       infrav1.SiteByProxy,
		}
	})
	l.killer.armed = dies

	l.until(func() bool { return l.reason(clusterv1.ReadyCondition) == infrav1.ReadyReason })
	l.joins("a")
	l.joins("b", "a")
	l.leaves("a", "b")
	written := l.written()
	l.leaves("b")
	l.Expect(l.Client.Delete(l.Ctx, l.VCDCluster())).To(Succeed())
	l.until(func() bool { return l.gone(&infrav1.VCDCluster{}, "vc1") })

	l.empty()
	if dies {
		l.t.Logf("died %d times", l.deaths)
		l.Expect(l.deaths).To(BeNumerically(">=", 60))
	}
	return written
}

// written returns what the cluster's Secrets and ClusterResourceSets hold, by their names.
func (l *life) written() map[string]any {
	l.t.Helper()
	secrets := &corev1.SecretList{}
	l.Expect(l.api.List(l.Ctx, secrets, client.HasLabels{clusterv1.ClusterNameLabel})).To(Succeed())
	sets := &addonsv1.ClusterResourceSetList{}
	l.Expect(l.api.List(l.Ctx, sets)).To(Succeed())
	held := map[string]any{}
	for _, secret := range secrets.Items {
		if !metav1.IsControlledBy(&secret, l.VCDCluster()) {
			continue // a user's
		}
		for key, value := range secret.Data {
			held["Secret "+secret.Name+" "+key] = string(value)
		}
	}
	for _, set := range sets.Items {
		held["ClusterResourceSet "+set.Name] = set.Spec
	}
	return held
}

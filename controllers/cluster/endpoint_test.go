// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestForeignKubeVIPSecretIsNotTouched(t *testing.T) {
	foreign := &corev1.Secret{
		ObjectMeta: controllertest.Meta("c1-kube-vip"),
		Data:       map[string][]byte{"mine": []byte("!")},
	}
	w := controllertest.New(t, foreign)

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(foreign), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(foreign.Data))
	w.Expect(secret.OwnerReferences).To(BeEmpty())
	w.Expect(w.Client.Delete(w.Ctx, secret)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestASpoofGuardProfileOfTheNetworkIsReportedOnce(t *testing.T) {
	for profile, reported := range map[string]bool{"strict": true, "default-spoofguard-profile": false, "": false} {
		t.Run("profile "+profile, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			if profile != "" {
				model.Orgs[1].VDCs[0].Networks[0].Fields = map[string]any{"segmentProfiles": map[string]any{
					"spoofGuardProfile": map[string]any{"id": "1", "name": profile},
				}}
			}
			w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model})
			warned := ContainElement(And(ContainSubstring("VirtualIPMayBeFiltered"), ContainSubstring(profile)))

			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			if !reported {
				w.Expect(w.EventTexts()).NotTo(warned)
				return
			}
			w.Expect(w.EventTexts()).To(warned)
			w.Sim.ResetCounters()
			_, err := w.ReconcileCluster()
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.EventTexts()).NotTo(warned)
			w.Expect(w.Sim.Counters()).NotTo(HaveKey(ContainSubstring("segmentProfiles")), "not in every reconcile")
		})
	}
}

func TestKubeVIPSecretIsAdoptedAgain(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	secret := &corev1.Secret{ObjectMeta: controllertest.Meta("c1-kube-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	written := secret.DeepCopy()
	secret.OwnerReferences = nil
	secret.Data = map[string][]byte{"broken": nil} // As after a restore from a backup.
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())

	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	w.Expect(secret.Data).To(Equal(written.Data))
	w.Expect(metav1.IsControlledBy(secret, w.VCDCluster())).To(BeTrue())
}

func TestForeignAddressClaimIsCheckedAgain(t *testing.T) {
	w := controllertest.New(t, &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")})
	c := w.VCDCluster()
	c.Spec.ControlPlaneEndpoint.Host = ""
	c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
		AddressSource: infrav1.VIPSourceIPAM,
		PoolRefs: []infrav1.IPPoolReference{{
			Name:     "vips",
			Kind:     "InClusterIPPool",
			APIGroup: "ipam.cluster.x-k8s.io",
		}},
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.NameConflictReason)

	result, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
}

func TestTheDaemonSetIsAppliedByClusterAPIAndUpdatedInPlace(t *testing.T) {
	w := controllertest.New(t)
	withEndpoint(w, controllertest.VIP, infrav1.KubeVIPEndpoint{Mode: infrav1.KubeVIPDaemonSet})

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	secret := w.Secret("c1-kube-vip-daemonset")
	w.Expect(secret.Type).To(Equal(addonsv1.ClusterResourceSetSecretType))
	w.Expect(string(secret.Data["manifests.yaml"])).To(And(ContainSubstring("kind: DaemonSet"),
		ContainSubstring(controllertest.VIP)))
	w.Expect(metav1.IsControlledBy(secret, w.VCDCluster())).To(BeTrue())
	set := &addonsv1.ClusterResourceSet{ObjectMeta: controllertest.Meta("c1-kube-vip-daemonset")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	w.Expect(set.Spec.Strategy).To(Equal(string(addonsv1.ClusterResourceSetStrategyReconcile)))
	w.Expect(set.Spec.Resources).To(Equal([]addonsv1.ResourceRef{{Kind: "Secret", Name: secret.Name}}))
	cluster := &clusterv1.Cluster{ObjectMeta: controllertest.Meta("c1")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	w.Expect(cluster.Labels).To(HaveKeyWithValue(infrav1.KubeVIPLabel, set.Spec.ClusterSelector.MatchLabels[infrav1.KubeVIPLabel]))
	w.Expect(string(w.Secret("c1-kube-vip").Data["kube-vip-prepare.sh"])).To(ContainSubstring("\nmode=DaemonSet\n"))

	kube := infrav1.KubeVIPEndpoint{
		Mode:  infrav1.KubeVIPDaemonSet,
		Image: "registry.example.com/kube-vip:v0.9.1",
	}
	withEndpoint(w, controllertest.VIP, kube)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(string(w.Secret("c1-kube-vip-daemonset").Data["manifests.yaml"])).To(ContainSubstring(kube.Image))
}

func TestAStaticPodNeedsNoClusterResourceSet(t *testing.T) {
	w := controllertest.New(t)

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	sets := &addonsv1.ClusterResourceSetList{}
	w.Expect(w.Client.List(w.Ctx, sets)).To(Succeed())
	w.Expect(sets.Items).To(BeEmpty())
}

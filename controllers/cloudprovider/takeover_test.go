// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

// cpiConfig returns the ConfigMap of CPI 1.6.1, which has the cluster ID in a Secret.
func cpiConfig(w *ccmEnv, change ...string) *corev1.ConfigMap {
	text := strings.NewReplacer(change...).Replace(`vcd:
  host: ` + w.Sim.URL() + `
  org: acme
  vdc: acme-vdc
loadbalancer:
  oneArm:
    startIP: "192.168.8.2"
    endIP: "192.168.8.100"
  ports:
    http: 80
    https: 443
  network: nodes
  vipSubnet: ""
  certAlias: wildcard
  enableVirtualServiceSharedIP: false
clusterid: ""
vAppName: ` + controllertest.ClusterName + `
`)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: addons.Namespace, Name: addons.ConfigMapName},
		Immutable:  ptr.To(true),
		Data:       map[string]string{addons.ConfigKey: text},
	}
}

// leave creates the objects of CPI in the workload cluster, with the cluster ID.
func (w *ccmEnv) leave(id string, objects ...client.Object) {
	objects = append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: addons.Namespace, Name: addons.ClusterIDName},
		Data:       map[string][]byte{addons.ClusterIDKey: []byte(id)},
	})
	for _, o := range objects {
		w.Expect(w.Workload.Create(w.Ctx, o)).To(Succeed())
	}
}

func (w *ccmEnv) configMap() error {
	return w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ConfigMapName},
		&corev1.ConfigMap{})
}

func TestTheConfigurationOfCPIIsAdopted(t *testing.T) {
	w := newCCMEnv(t)
	cpi := runs(&appsv1.Deployment{}, addons.Namespace, addons.DeploymentName,
		corev1.Container{Image: "cloud-provider-for-cloud-director:1.6.1"})
	w.leave("infra-1", cpiConfig(w, `vipSubnet: ""`, `vipSubnet: "10.0.0.0/24"`), cpi)

	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderConflictReason))
	w.Expect(w.configMap()).To(Succeed(), "nothing is touched while CPI runs")
	w.Expect(w.Workload.Delete(w.Ctx, cpi)).To(Succeed())
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))

	got := w.configured().LoadBalancer
	w.Expect(got.OneArm).To(HaveValue(HaveField("StartIP", HaveField("String()", "192.168.8.2"))))
	w.Expect(got.OneArm.EndIP.String()).To(Equal("192.168.8.100"))
	w.Expect(got.VIPSubnet.String()).To(Equal("10.0.0.0/24"))
	w.Expect(got.CertAlias).To(Equal("wildcard"))
	w.Expect(w.configMap()).NotTo(Succeed(), "Cluster API could not replace an immutable object")
	w.Expect(w.Events).To(Receive(ContainSubstring("oneArm 192.168.8.2-192.168.8.100")))
	w.apply()
	w.reconciler = w.newReconciler()
	w.pass()
	w.Expect(w.configured().LoadBalancer).To(Equal(got), "it is kept once the source is deleted")

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.VIPSubnet = "10.0.0.0/25" })
	w.pass()
	w.Expect(w.configured().LoadBalancer.VIPSubnet.String()).To(Equal("10.0.0.0/25"), "the spec takes precedence")
}

// VMware's CSI driver mounts the Secrets of CPI.
func TestSecretsSharedWithTheStorageDriverAreKept(t *testing.T) {
	w := newCCMEnv(t)
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: addons.Namespace, Name: addons.CredentialsName},
		Data:       map[string][]byte{"refreshToken": []byte("of-a-user-with-rights-on-disks")},
	}
	w.leave("infra-1", cpiConfig(w), credentials)
	shared := func() []corev1.Secret {
		list := &corev1.SecretList{}
		w.Expect(w.Workload.List(w.Ctx, list, client.InNamespace(addons.Namespace))).To(Succeed())
		return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool {
			return s.Name != addons.CredentialsName && s.Name != addons.ClusterIDName
		})
	}
	before := shared()
	w.Expect(before).To(HaveLen(2))

	w.installed()
	w.Expect(shared()).To(Equal(before))

	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.Mode = infrav1.CloudProviderNone
	})
	w.pass()
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.DeploymentName},
		&appsv1.Deployment{})).NotTo(Succeed())
	w.Expect(shared()).To(Equal(before), "nor are they removed with it")
}

func TestInheritedSettingsFollowTheConfigurationUntilItIsReplaced(t *testing.T) {
	w := newCCMEnv(t)
	cpi := runs(&appsv1.Deployment{}, addons.Namespace, addons.DeploymentName,
		corev1.Container{Image: "cloud-provider-for-cloud-director:1.6.1"})
	w.leave("infra-1", cpiConfig(w, `vipSubnet: ""`, `vipSubnet: "10.0.0.0/24"`), cpi)
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderConflictReason))
	w.Expect(w.vcdClusterNow().Spec.RecordedState.InheritedLoadBalancer.VIPSubnet).To(Equal("10.0.0.0/24"))

	corrected := cpiConfig(w, "certAlias: wildcard", `certAlias: ""`, "  oneArm:\n", "", `    startIP: "192.168.8.2"`, "",
		`    endIP: "192.168.8.100"`, "")
	w.Expect(w.Workload.Delete(w.Ctx, corrected.DeepCopy())).To(Succeed())
	w.Expect(w.Workload.Create(w.Ctx, corrected)).To(Succeed())
	got := w.pass()
	w.Expect(got.Reason).To(Equal(infrav1.CloudProviderConflictReason), got.Message)
	w.Expect(w.vcdClusterNow().Spec.RecordedState.InheritedLoadBalancer.VIPSubnet).To(BeEmpty())

	w.Expect(w.Workload.Delete(w.Ctx, cpi)).To(Succeed())
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.Expect(w.configured().LoadBalancer.VIPSubnet.IsValid()).To(BeFalse())
}

func TestADifferingConfigurationIsRejectedBeforeAnyChange(t *testing.T) {
	tests := []struct {
		name   string
		id     string
		change []string
		spec   func(*infrav1.VCDCluster)
		want   []string
	}{
		{
			name: "another ID",
			id:   "prod",
			want: []string{"clusterid is prod now and would become infra-1", "spec.infraID is immutable"},
		},
		{
			name: "no ID",
			id:   "",
			want: []string{"clusterid is unset now and would become infra-1"},
		},
		{
			name:   "another external subnet",
			id:     "infra-1",
			change: []string{`vipSubnet: ""`, `vipSubnet: "10.1.0.0/24"`},
			spec:   func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.VIPSubnet = "10.0.0.0/24" },
			want: []string{
				"loadbalancer.vipSubnet is 10.1.0.0/24 now and would become 10.0.0.0/24",
				"set spec.loadBalancer.vipSubnet",
			},
		},
		{
			name: "an external subnet that CPI does not support",
			id:   "infra-1",
			spec: func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.VIPSubnet = "10.0.0.0/24" },
			want: []string{"loadbalancer.vipSubnet is unset now and would become 10.0.0.0/24"},
		},
		{
			name: "another certificate",
			id:   "infra-1",
			spec: func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.CertificateAlias = "mine" },
			want: []string{"loadbalancer.certAlias is wildcard now and would become mine"},
		},
		{
			name:   "another network",
			id:     "infra-1",
			change: []string{"network: nodes", "network: dmz"},
			want:   []string{"loadbalancer.network is dmz now and would become nodes", "it determines the edge gateway"},
		},
		{
			name:   "another organization and VDC",
			id:     "infra-1",
			change: []string{"org: acme", "org: other", "acme-vdc", "old"},
			want:   []string{"vcd.org is other now", "vcd.vdc is old now"},
		},
		{
			name: "load balancers are disabled",
			id:   "infra-1",
			spec: func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerDisabled },
			want: []string{"loadbalancer.enabled is true now and would become false"},
		},
		{
			name:   "an unreadable configuration",
			id:     "infra-1",
			change: []string{"oneArm:", "twoArm:"},
			want:   []string{"cannot be parsed", "loadbalancer.twoArm"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.leave(tt.id, cpiConfig(w, tt.change...))
			if tt.spec != nil {
				w.changeCluster(tt.spec)
			}

			got := w.pass()

			w.Expect(got.Reason).To(Equal(infrav1.CloudProviderConfigConflictReason), got.Message)
			for _, part := range tt.want {
				w.Expect(got.Message).To(ContainSubstring(part))
			}
			w.expectNoSecrets()
			w.Expect(w.configMap()).To(Succeed())
			w.Expect(w.vcdClusterNow().Spec.RecordedState.InheritedLoadBalancer).To(BeZero())
		})
	}
}

func TestSecretsInADifferingConfigurationAreNotShown(t *testing.T) {
	w := newCCMEnv(t)
	w.leave("prod", cpiConfig(w, "  org: acme\n", "  org: other\n  secret: [hidden-word]\n  refreshtoken: hidden-token\n"))

	got := w.pass()

	w.Expect(got.Reason).To(Equal(infrav1.CloudProviderConfigConflictReason))
	w.Expect(got.Message).NotTo(ContainSubstring("hidden"))
}

func TestAnOwnedConfigurationIsReplacedAccordingToTheSpec(t *testing.T) {
	w := newCCMEnv(t)
	w.installed()
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal })
	w.pass()
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.Mode = infrav1.CloudProviderManaged
		c.Spec.LoadBalancer.VIPSubnet = "10.0.0.0/24"
	})

	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
}

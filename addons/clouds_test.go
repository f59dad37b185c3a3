// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/cloudstackconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vsphereconfig"
)

func fileOf(g *WithT, name string) []byte {
	files, err := StandAlone(testImage)
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		if f.Name == name {
			return f.Content
		}
	}
	g.Expect(name).To(BeEmpty(), "there is no such file")
	return nil
}

// TestTheManifestForCloudStack checks that users can apply the manifest over that of the original program, whose
// selector is immutable.
func TestTheManifestForCloudStack(t *testing.T) {
	g := NewWithT(t)
	raw := fileOf(g, CloudStackManifestName)

	d := deploymentOf(g, raw)

	g.Expect(d.Name).To(Equal("cloud-controller-manager"))
	g.Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"k8s-app": "cloud-controller-manager"}))
	g.Expect(d.Spec.Template.Spec.Containers).To(HaveExactElements(And(
		HaveField("Name", "cloud-controller-manager"), HaveField("Image", testImage),
		HaveField("Args", ContainElements("--cloud-provider=external-cloudstack", "--cloud-config=/config/cloud-config",
			"--leader-elect-resource-name=cloud-controller-manager")),
	)))
	g.Expect(d.Spec.Template.Spec.Volumes).To(HaveExactElements(HaveField("Secret.SecretName", "cloudstack-secret")))
	g.Expect(strings.ToLower(string(raw))).NotTo(Or(ContainSubstring("vcd"), ContainSubstring("vcloud-")))
	for _, o := range strictly(g, raw) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			g.Expect(rule.Resources).NotTo(ContainElement("secrets"))
			g.Expect(rule.Verbs).NotTo(ContainElement("*"))
		}
	}
}

func TestTheConfigurationForCloudStackMustBeFilledIn(t *testing.T) {
	g := NewWithT(t)
	_, config, found := strings.Cut(string(fileOf(g, CloudStackConfigFile)), "cloud-config: |\n")
	g.Expect(found).To(BeTrue())

	_, _, _, err := cloudstackconfig.Parse([]byte(config), ccmconfig.Environment{})
	g.Expect(strings.Count(err.Error(), "the placeholder of the manifest")).To(Equal(3))

	filled := strings.NewReplacer("API_URL", "https://cloud.example.com/client/api", "API_KEY", "a", "SECRET_KEY", "b").Replace(config)
	_, _, _, err = cloudstackconfig.Parse([]byte(filled), ccmconfig.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestTheManifestForVSphere checks that users can apply the manifest over that of the original program, whose selector
// is immutable.
func TestTheManifestForVSphere(t *testing.T) {
	g := NewWithT(t)
	raw := fileOf(g, VSphereManifestName)
	var daemons []*appsv1.DaemonSet
	for _, o := range strictly(g, raw) {
		if d, ok := o.(*appsv1.DaemonSet); ok {
			daemons = append(daemons, d)
		}
	}

	g.Expect(daemons).To(HaveLen(1))
	d := daemons[0]
	g.Expect(d.Name).To(Equal("vsphere-cloud-controller-manager"))
	g.Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"name": "vsphere-cloud-controller-manager"}))
	g.Expect(d.Spec.Template.Spec.NodeSelector).To(BeEmpty())
	exists := func(key string) corev1.NodeSelectorTerm { // any value: RKE2 sets "true"
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	g.Expect(d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms).To(ConsistOf(
		exists("node-role.kubernetes.io/control-plane"), exists("node-role.kubernetes.io/master")))
	g.Expect(d.Spec.Template.Spec.Containers).To(HaveExactElements(And(
		HaveField("Name", "vsphere-cloud-controller-manager"), HaveField("Image", testImage),
		HaveField("Args", ContainElements("--cloud-provider=vsphere", "--cloud-config=/etc/cloud/vsphere.conf")),
	)))
	g.Expect(d.Spec.Template.Spec.Volumes).To(HaveExactElements(HaveField("ConfigMap.Name", "vsphere-cloud-config")))
	g.Expect(string(raw)).To(ContainSubstring("resourceNames: [vsphere-cloud-secret]"))
	g.Expect(strings.ToLower(string(raw))).NotTo(Or(ContainSubstring("vcd"), ContainSubstring("vcloud-")))
}

func TestTheConfigurationForVSphereIsValid(t *testing.T) {
	g := NewWithT(t)
	_, rest, found := strings.Cut(string(fileOf(g, VSphereConfigFile)), "vsphere.conf: |\n")
	g.Expect(found).To(BeTrue())
	config, _, _ := strings.Cut(rest, "---")

	c, _, err := vsphereconfig.Parse([]byte(config), ccmconfig.Environment{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.VCenters["VCENTER"]).To(HaveField("SecretName", "vsphere-cloud-secret"))
}

// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
)

const testImage = "registry.example.com/team/cloud-provider-for-cloud-director:v2.0.0"

func testScheme(g *WithT) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

// strictly decodes a YAML stream into Kubernetes types. Unknown and duplicate fields are errors.
func strictly(g *WithT, raw []byte) []runtime.Object {
	decoder := serializer.NewCodecFactory(testScheme(g), serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for _, document := range bytes.Split(raw, []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		g.Expect(err).NotTo(HaveOccurred(), string(document))
		out = append(out, object)
	}
	return out
}

func deploymentOf(g *WithT, raw []byte) *appsv1.Deployment {
	for _, object := range strictly(g, raw) {
		if d, ok := object.(*appsv1.Deployment); ok {
			return d
		}
	}
	g.Expect(string(raw)).To(BeEmpty(), "a manifest without Deployment")
	return nil
}

// variants returns all manifests with a Deployment, by name.
func variants(g *WithT) map[string][]byte {
	managed, err := CCM{Image: testImage, Replicas: 2, ConfigHash: "abc"}.YAML()
	g.Expect(err).NotTo(HaveOccurred())
	airgap, err := AirgapTemplate("v2.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string][]byte{"managed": managed, "airgap": airgap}
	files, err := StandAlone(testImage)
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		if strings.HasPrefix(f.Name, "cloud-director-ccm") {
			all[f.Name] = f.Content
		}
	}
	return all
}

func TestEveryManifestHasOnlyKubernetesFields(t *testing.T) {
	g := NewWithT(t)
	for name, raw := range variants(g) {
		g.Expect(strictly(g, raw)).To(HaveLen(7), name)
	}
	files, err := StandAlone(testImage)
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		g.Expect(strictly(g, f.Content)).NotTo(BeEmpty(), f.Name)
	}
}

func TestVariantsHaveOnlyNecessaryDifferences(t *testing.T) {
	g := NewWithT(t)
	plain := strictly(g, must(CCM{Image: testImage, Replicas: 1}.YAML()))

	for name, raw := range variants(g) {
		objects := strictly(g, raw)
		for _, object := range objects {
			d, ok := object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Or(Equal(testImage),
				Equal("__REGISTRY__/cloud-provider-for-cloud-director:v2.0.0")), name)
			d.Spec.Template.Spec.Containers[0].Image = testImage
			env := d.Spec.Template.Spec.Containers[0].Env
			d.Spec.Template.Spec.Containers[0].Env = slices.DeleteFunc(env, isProxyVariable)
			d.Spec.Template.Annotations = nil
			d.Spec.Replicas = ptr.To[int32](1)
		}
		g.Expect(objects).To(Equal(plain), name)
	}
}

func isProxyVariable(v corev1.EnvVar) bool { return strings.HasSuffix(v.Name, "_PROXY") }

func TestTheProxySecretCanBeCreatedWithoutTheManager(t *testing.T) {
	for name, raw := range variants(NewWithT(t)) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var used []string
			for _, v := range deploymentOf(g, raw).Spec.Template.Spec.Containers[0].Env {
				if isProxyVariable(v) {
					used = append(used, v.Name)
					g.Expect(v.ValueFrom.SecretKeyRef).To(Equal(&corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: ProxyName},
						Key:                  v.Name,
						Optional:             ptr.To(true),
					}))
				}
			}

			if name == "managed" {
				g.Expect(used).To(BeEmpty(), "the manager writes the Secret, or there is no proxy")
				return
			}
			g.Expect(used).To(Equal([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}))
		})
	}
}

func TestAnAirgapTemplateKeepsTheRegistryPlaceholder(t *testing.T) {
	g := NewWithT(t)
	raw := string(must(AirgapTemplate("v2.0.0")))

	g.Expect(strings.Count(raw, "__REGISTRY__")).To(Equal(1))
	g.Expect(raw).To(ContainSubstring(
		`image: "__REGISTRY__/cloud-provider-for-cloud-director:v2.0.0"`))
	g.Expect(raw).NotTo(ContainSubstring("__VERSION__"))
}

func TestNamesMatchTheOriginalCPI(t *testing.T) {
	g := NewWithT(t)
	d := deploymentOf(g, variants(g)["managed"])

	g.Expect(d.Namespace + "/" + d.Name).To(Equal("kube-system/vmware-cloud-director-ccm"))
	g.Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "vmware-cloud-director-ccm"}),
		"selectors are immutable")
	g.Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal("cloud-controller-manager"))
	g.Expect(d.Spec.Template.Spec.Containers[0].Name).To(Equal("vmware-cloud-director-ccm"))
	g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("Name", "CLUSTER_ID")))
	mounts := map[string]string{}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			g.Expect(v.ConfigMap.Name + " at " +
				mounts[v.Name]).To(Equal("vcloud-ccm-configmap at /etc/kubernetes/vcloud"))
		} else {
			g.Expect(v.Secret.SecretName + " at " +
				mounts[v.Name]).To(Equal("vcloud-basic-auth at /etc/kubernetes/vcloud/basic-auth"))
		}
	}
}

// TestThePodIsRestricted checks the pod against the Pod Security level "restricted", except for the host network, which
// a cloud controller manager needs before nodes have addresses.
func TestThePodIsRestricted(t *testing.T) {
	for name, raw := range variants(NewWithT(t)) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := deploymentOf(g, raw).Spec.Template
			pod := template.Spec

			g.Expect(template.Labels).To(HaveKeyWithValue(PodProxyInjectLabel, "false"), "it has proxy settings of its own")
			g.Expect(pod.HostNetwork).To(BeTrue())
			g.Expect(pod.DNSPolicy).To(Equal(corev1.DNSDefault))
			g.Expect([]bool{pod.HostPID, pod.HostIPC}).To(Equal([]bool{false, false}))
			g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
			g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
			for _, v := range pod.Volumes {
				g.Expect(v.HostPath).To(BeNil())
			}
			for _, c := range pod.Containers {
				g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
				g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
				g.Expect(c.SecurityContext.Privileged).To(BeNil())
				g.Expect(*c.SecurityContext.Capabilities).To(
					Equal(corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
				g.Expect(c.LivenessProbe.HTTPGet.Host + c.ReadinessProbe.HTTPGet.Host).To(BeEmpty())
				g.Expect(c.Resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
			}
		})
	}
}

func TestThePodCanBeScheduled(t *testing.T) {
	g := NewWithT(t)
	pod := deploymentOf(g, variants(g)["managed"]).Spec.Template.Spec

	for _, taint := range []corev1.Taint{
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
	} {
		g.Expect(pod.Tolerations).To(ContainElement(WithTransform(func(c corev1.Toleration) bool {
			return c.Key == taint.Key && c.Operator == corev1.TolerationOpExists &&
				(c.Effect == "" || c.Effect == taint.Effect)
		}, BeTrue())), "%s:%s", taint.Key, taint.Effect)
	}
	g.Expect(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(BeNil(),
		"hosted control planes have no nodes")
	g.Expect(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(BeNil())
}

func TestSecretsAreReadOnlyWhereTheRoleIsBound(t *testing.T) {
	g := NewWithT(t)

	for _, object := range strictly(g, variants(g)["managed"]) {
		if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok {
			g.Expect(binding.RoleRef.Name).To(Equal("system:cloud-controller-manager"))
		}
		if role, ok := object.(*rbacv1.Role); ok {
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					g.Expect(rule.ResourceNames).To(HaveLen(1), "a new Secret could hold any account's token")
					g.Expect(rule.Verbs).NotTo(ContainElements("create", "list", "watch"))
				}
			}
		}
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			g.Expect(rule.Verbs).NotTo(ContainElement("*"))
			g.Expect(rule.Resources).NotTo(ContainElements("*"))
			if role.Name == "system:cloud-controller-manager" {
				g.Expect(rule.Resources).NotTo(ContainElement("secrets"))
			}
		}
		if role.Name != "system:cloud-controller-manager" {
			g.Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{
				APIGroups: []string{""},
				Resources: []string{"secrets"},
				Verbs:     []string{"get"},
			}}))
		}
	}
}

func TestEveryImageHasAVersion(t *testing.T) {
	tests := []struct {
		name, image string
		refused     bool
	}{
		{"a tag", "registry.example.com:5000/a/b:v1", false},
		{"a digest", "registry.example.com/a/b@sha256:0123", false},
		{"nothing", "registry.example.com:5000/a/b", true},
		{"latest is not a fixed version", "a/b:latest", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := CCM{Image: tt.image, Replicas: 1}.YAML()

			NewWithT(t).Expect(err != nil).To(Equal(tt.refused), "%v", err)
		})
	}
}

func TestRenderedValuesAreQuoted(t *testing.T) {
	g := NewWithT(t)
	const evil = "a:v1\"\n      hostPID: true\n      x: \""

	d := deploymentOf(g, must(CCM{Image: evil, Replicas: 1}.YAML()))

	g.Expect(d.Spec.Template.Spec.HostPID).To(BeFalse())
	g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(evil))
}

func TestHolds(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) map[string]any {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:v1", Args: []string{"-a"}}}
		change(d)
		return must(toUnstructured(d)).Object
	}
	desired := deployment(func(*appsv1.Deployment) {})
	tests := []struct {
		name   string
		change func(*appsv1.Deployment)
		holds  bool
	}{
		{name: "as it is desired", change: func(*appsv1.Deployment) {}, holds: true},
		{
			name:   "defaults of the API server",
			change: func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](600) },
			holds:  true,
		},
		{
			name: "an injected sidecar",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "z"}},
					d.Spec.Template.Spec.Containers...)
			},
			holds: true,
		},
		{name: "another image", change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "i:v2" }},
		{
			name:   "one more argument",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"-a", "-b"} },
		},
		{name: "scaled to zero", change: func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }},
		{name: "without the container", change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Holds(deployment(tt.change), desired)).To(Equal(tt.holds))
		})
	}
}

func TestRenderingIsDeterministic(t *testing.T) {
	g := NewWithT(t)
	render := func() []byte {
		objects := must(CCM{Image: testImage, Replicas: 1}.Objects())
		Annotate(objects, map[string]string{"b": "1", "a": "2"})
		return must(Marshal(append(objects,
			must(Credentials(map[string][]byte{"username": []byte("u"), "password": []byte("p")})))))
	}

	g.Expect(render()).To(Equal(render()))
	g.Expect(must(Parse(render()))).To(HaveLen(8))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/cluster-api/util/contract"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/options"
)

const (
	namespace     = "capvcd-system"
	providerLabel = "cluster.x-k8s.io/provider"
	contractLabel = "cluster.x-k8s.io/v1beta2"
	// formerContractLabel is the label of contract v1beta1, which CAPVCD implements.
	formerContractLabel = "cluster.x-k8s.io/v1beta1"
	moveLabel           = "clusterctl.cluster.x-k8s.io/move"
	moveChildrenToo     = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

// variable matches a variable of clusterctl with its default.
var variable = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]+)\}`)

// render builds infrastructure-components.yaml.
func render(t *testing.T) (objects []*unstructured.Unstructured, text string) {
	t.Helper()
	return renderFolder(t, "default")
}

// renderFolder builds a folder of config.
func renderFolder(t *testing.T, folder string) (objects []*unstructured.Unstructured, text string) {
	t.Helper()
	g := NewWithT(t)
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools.mod", "kustomize", "build", folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(stderr.String(), "Error: ") {
			t.Fatalf("kustomize build config/%s: %s", folder, stderr.String())
		}
		t.Skipf("kustomize is not available: %v %s", err, stderr.String())
	}

	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, string(out)
		}
		g.Expect(err).ToNot(HaveOccurred())
		objects = append(objects, object)
	}
}

func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// only returns the object of a kind. The test fails unless exactly one exists.
func only[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	g := NewWithT(t)
	found := ofKind(objects, kind)
	g.Expect(found).To(HaveLen(1), kind)
	typed := new(T)
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found[0].Object, typed,
		true)).To(Succeed())
	return typed
}

func named(objects []*unstructured.Unstructured, name string) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetName() == name {
			return object
		}
	}
	return nil
}

func TestComponents(t *testing.T) {
	objects, text := render(t)

	t.Run("every object has the provider's label and is in its namespace", func(t *testing.T) {
		g := NewWithT(t)
		namespaces := ofKind(objects, "Namespace")
		g.Expect(namespaces).To(HaveLen(1))
		g.Expect(namespaces[0].GetName()).To(Equal(namespace))
		for _, object := range objects {
			g.Expect(object.GetLabels()).To(HaveKeyWithValue(providerLabel, "infrastructure-vcd"), object.GetName())
			g.Expect(object.GetNamespace()).To(Or(BeEmpty(), Equal(namespace)), object.GetName())
		}
	})

	t.Run("every variable has a default", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(strings.Count(text, "${")).To(Equal(len(variable.FindAllString(text, -1))))
	})

	t.Run("the manager has the name that clusterctl expects, and no permissions on its node", func(t *testing.T) {
		g := NewWithT(t)
		deployment := only[appsv1.Deployment](t, objects, "Deployment")
		pod := deployment.Spec.Template.Spec
		g.Expect(pod.Containers).To(HaveLen(1))
		manager := pod.Containers[0]
		g.Expect(manager.Name).To(Equal("manager"))
		g.Expect(manager.Image).To(MatchRegexp(`^[a-z.]+/[a-z/-]+:[\w.-]+$`))
		g.Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
		g.Expect(string(pod.SecurityContext.SeccompProfile.Type)).To(Equal("RuntimeDefault"))
		g.Expect(*manager.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		g.Expect(*manager.SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
		g.Expect(*manager.SecurityContext.RunAsUser).To(BeEquivalentTo(65532))
		g.Expect(manager.SecurityContext.Capabilities.Drop).To(ConsistOf(BeEquivalentTo("ALL")))
		g.Expect(manager.LivenessProbe).ToNot(BeNil())
		g.Expect(manager.ReadinessProbe).ToNot(BeNil())
		g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue(providerLabel, "infrastructure-vcd"))
	})

	t.Run("the manager's flags exist, and variables have defaults", func(t *testing.T) {
		g := NewWithT(t)
		flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
		options.New(flags, namespace)
		for _, arg := range only[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec.Containers[0].Args {
			g.Expect(flags.Parse([]string{variable.ReplaceAllString(arg, "$1")})).To(Succeed())
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if flag := flags.Lookup(name); variable.MatchString(arg) && name != "diagnostics-address" {
				g.Expect(flag.Value.String()).To(Equal(flag.DefValue), arg)
			}
		}
	})

	t.Run("users of a namespace may view and edit namespaced objects", func(t *testing.T) {
		g := NewWithT(t)
		var namespaced []string
		for _, crd := range ofKind(objects, "CustomResourceDefinition") {
			if scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope"); scope == "Namespaced" {
				namespaced = append(namespaced, strings.TrimSuffix(crd.GetName(), "."+infrav1.GroupVersion.Group))
			}
		}
		for name, aggregates := range map[string][]string{"view": {"view"}, "edit": {"edit", "admin"}} {
			role := only[rbacv1.ClusterRole](t, []*unstructured.Unstructured{
				named(ofKind(objects, "ClusterRole"), "capvcd-"+name),
			}, "ClusterRole")
			g.Expect(role.Rules[0].Resources).To(ConsistOf(namespaced))
			for _, to := range aggregates {
				g.Expect(role.Labels).To(HaveKeyWithValue("rbac.authorization.k8s.io/aggregate-to-"+to, "true"))
			}
		}
	})

	t.Run("the webhooks reach their service with the certificate of cert-manager", func(t *testing.T) {
		g := NewWithT(t)
		config := only[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects,
			"ValidatingWebhookConfiguration")
		service := ofKind(objects, "Service")[0].GetName()
		certificate := named(ofKind(objects, "Certificate"), "capvcd-serving-cert")
		g.Expect(certificate).ToNot(BeNil())
		g.Expect(config.Annotations).To(HaveKeyWithValue("cert-manager.io/inject-ca-from",
			namespace+"/"+certificate.GetName()))
		names, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
		g.Expect(err).ToNot(HaveOccurred())
		g.Expect(names).To(ContainElement(service + "." + namespace + ".svc"))
		for _, hook := range config.Webhooks {
			g.Expect(hook.ClientConfig.Service.Name).To(Equal(service))
			g.Expect(hook.ClientConfig.Service.Namespace).To(Equal(namespace))
		}
		secret, _, err := unstructured.NestedString(certificate.Object, "spec", "secretName")
		g.Expect(err).ToNot(HaveOccurred())
		deployment := only[appsv1.Deployment](t, objects, "Deployment")
		g.Expect(deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName).To(Equal(secret))
	})

	t.Run("the certificate is renewed in time, by a permanent CA", func(t *testing.T) {
		g := NewWithT(t)
		issuers := map[string]string{
			"capvcd-serving-cert": "capvcd-webhook-ca-issuer",
			"capvcd-webhook-ca":   "capvcd-selfsigned-issuer",
		}
		for _, certificate := range ofKind(objects, "Certificate") {
			name, _, err := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
			g.Expect(err).ToNot(HaveOccurred())
			g.Expect(name).To(Equal(issuers[certificate.GetName()]), certificate.GetName())
			g.Expect(named(ofKind(objects, "Issuer"), name)).ToNot(BeNil())
			g.Expect(2 * span(t, certificate, "renewBefore")).To(BeNumerically("<", span(t, certificate, "duration")))
		}
		issuer := named(ofKind(objects, "Issuer"), "capvcd-webhook-ca-issuer")
		secret, _, err := unstructured.NestedString(issuer.Object, "spec", "ca", "secretName")
		g.Expect(err).ToNot(HaveOccurred())
		g.Expect(secret).To(Equal("capvcd-webhook-ca"))
	})

	t.Run("only the serving ports of the manager are reachable", func(t *testing.T) {
		g := NewWithT(t)
		policy := only[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
		pod := only[appsv1.Deployment](t, objects, "Deployment").Spec.Template
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		g.Expect(err).ToNot(HaveOccurred())
		g.Expect(selector.Matches(labels.Set(pod.Labels))).To(BeTrue())
		g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress))
		var open, served []string
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open = append(open, port.Port.String())
			}
		}
		for _, port := range pod.Spec.Containers[0].Ports {
			served = append(served, port.Name)
		}
		g.Expect(open).To(ConsistOf(served))
	})

	t.Run("several managers run on different nodes, and one remains when nodes are drained", func(t *testing.T) {
		g := NewWithT(t)
		deployment := only[appsv1.Deployment](t, objects, "Deployment")
		budget := only[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")
		g.Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		selectors := []*metav1.LabelSelector{budget.Spec.Selector}
		for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
			selectors = append(selectors, spread.LabelSelector)
		}
		g.Expect(selectors).To(HaveLen(3))
		for _, s := range selectors {
			selector, err := metav1.LabelSelectorAsSelector(s)
			g.Expect(err).ToNot(HaveOccurred())
			g.Expect(selector.Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
		}
	})

	t.Run("the manager's role has no wildcard and is bound to the manager", func(t *testing.T) {
		g := NewWithT(t)
		role := only[rbacv1.ClusterRole](t, []*unstructured.Unstructured{
			named(ofKind(objects, "ClusterRole"), "capvcd-manager-role"),
		}, "ClusterRole")
		for _, rule := range role.Rules {
			g.Expect(append(append(rule.Verbs, rule.Resources...), rule.APIGroups...)).ToNot(ContainElement("*"))
			g.Expect(rule.Verbs).ToNot(ContainElement(BeElementOf("escalate", "bind", "impersonate")))
		}
		binding := only[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding")
		account := ofKind(objects, "ServiceAccount")[0]
		g.Expect(binding.RoleRef.Name).To(Equal(role.Name))
		g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{
			Kind:      "ServiceAccount",
			Name:      account.GetName(),
			Namespace: namespace,
		}))
	})

	t.Run("the CRDs have the names and labels of the contract", func(t *testing.T) {
		g := NewWithT(t)
		labels := map[string]string{}
		for _, object := range ofKind(objects, "CustomResourceDefinition") {
			kind, _, err := unstructured.NestedString(object.Object, "spec", "names", "kind")
			g.Expect(err).ToNot(HaveOccurred())
			g.Expect(object.GetName()).To(Equal(contract.CalculateCRDName(infrav1.GroupVersion.Group, kind)))
			g.Expect(object.GetLabels()).To(HaveKeyWithValue(contractLabel, infrav1.GroupVersion.Version))
			labels[kind] = moveLabels(object)
		}
		g.Expect(labels).To(Equal(map[string]string{
			"VCDCluster":             "",
			"VCDClusterTemplate":     "",
			"VCDMachine":             "",
			"VCDMachineTemplate":     "",
			"VCDClusterIdentity":     "",
			"VCDIdentity":            moveChildrenToo,
			"VCDFailureDomain":       moveLabel,
			"VCDDeploymentZone":      moveLabel,
			"VCDRemediation":         "",
			"VCDRemediationTemplate": moveLabel,
		}), "objects that clusterctl move includes by itself")
	})

	t.Run("the manager converts the kinds of CAPVCD, and they keep their contract and its version", func(t *testing.T) {
		g := NewWithT(t)
		service := named(ofKind(objects, "Service"), "capvcd-webhook-service")
		for _, object := range ofKind(objects, "CustomResourceDefinition") {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition)).To(Succeed())
			if len(definition.Spec.Versions) == 1 {
				g.Expect(definition.Labels).ToNot(HaveKey(formerContractLabel), definition.Name)
				g.Expect(definition.Spec.Conversion).To(BeNil(), definition.Name)
				continue
			}
			g.Expect(definition.Labels).To(HaveKeyWithValue(formerContractLabel, "v1beta2"), definition.Name)
			g.Expect(definition.Spec.Versions).To(ContainElement(And(HaveField("Name", "v1beta2"),
				HaveField("Served", true), HaveField("Deprecated", true))), definition.Name)
			g.Expect(definition.Annotations).To(HaveKeyWithValue("cert-manager.io/inject-ca-from",
				"capvcd-system/capvcd-serving-cert"), definition.Name)
			g.Expect(definition.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
			target := definition.Spec.Conversion.Webhook.ClientConfig.Service
			g.Expect(target.Name).To(Equal(service.GetName()))
			g.Expect(target.Namespace).To(Equal(service.GetNamespace()))
			g.Expect(target.Path).To(HaveValue(Equal("/convert")))
		}
	})
}

// span returns a duration in the spec of a certificate.
func span(t *testing.T, certificate *unstructured.Unstructured, field string) time.Duration {
	t.Helper()
	g := NewWithT(t)
	text, _, err := unstructured.NestedString(certificate.Object, "spec", field)
	g.Expect(err).ToNot(HaveOccurred())
	d, err := time.ParseDuration(text)
	g.Expect(err).ToNot(HaveOccurred())
	return d
}

func TestMonitoringFindsTheManager(t *testing.T) {
	g := NewWithT(t)
	objects, _ := renderFolder(t, "monitoring")
	components, _ := render(t)
	pod := only[appsv1.Deployment](t, components, "Deployment").Spec.Template

	service := only[corev1.Service](t, objects, "Service")

	g.Expect(service.Namespace).To(Equal(namespace))
	g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))).To(BeTrue())
	g.Expect(pod.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name",
		service.Spec.Ports[0].TargetPort.StrVal)))
	monitor := ofKind(objects, "ServiceMonitor")[0]
	selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(labels.SelectorFromSet(selected).Matches(labels.Set(service.Labels))).To(BeTrue())
	g.Expect(named(ofKind(objects, "ConfigMap"), "capvcd-dashboard").GetLabels()).To(HaveKey("grafana_dashboard"))
}

func moveLabels(object *unstructured.Unstructured) string {
	var found []string
	for _, label := range []string{moveLabel, moveChildrenToo} {
		if _, ok := object.GetLabels()[label]; ok {
			found = append(found, label)
		}
	}
	return strings.Join(found, " ")
}

// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"
)

const tinyProvider = `
apiVersion: v1
kind: Namespace
metadata: {name: tiny-system, labels: {cluster.x-k8s.io/provider: infrastructure-tiny}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tinies.example.com}
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: tiny, namespace: tiny-system, path: /convert}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plains.example.com}
spec:
  versions:
  - {name: v1alpha1, served: true, storage: false}
  - {name: v1, served: true, storage: true}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: tiny}
webhooks:
- name: tiny.example.com
  clientConfig: {service: {name: tiny, namespace: tiny-system, path: /validate}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: tiny-system}
---
apiVersion: v1
kind: Service
metadata: {name: tiny, namespace: tiny-system}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: tiny, namespace: tiny-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tiny, namespace: tiny-system}
spec:
  template:
    spec:
      serviceAccountName: manager
      containers:
      - name: sidecar
      - name: manager
        args: ["--leader-elect", "--feature-gates=Topology=${TOPOLOGY:=false}"]
        env:
        - {name: PLAIN, value: "yes"}
        - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
`

func TestComponents(t *testing.T) {
	g := NewWithT(t)
	c, err := parseComponents([]byte(tinyProvider), map[string]string{"TOPOLOGY": "true"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.provider).To(Equal("infrastructure-tiny"))
	g.Expect(c.namespace.GetName()).To(Equal("tiny-system"))
	g.Expect(c.serviceAccount()).To(Equal("manager"))
	g.Expect(c.container().Args).To(Equal([]string{"--leader-elect", "--feature-gates=Topology=true"}))
	g.Expect(c.environment()).To(Equal([]string{"POD_NAMESPACE=tiny-system", "PLAIN=yes"}))
	g.Expect(names(c.rest)).To(Equal([]string{"manager"}), "no Service, and no objects of cert-manager")
	for _, object := range c.crds {
		g.Expect(object.GetLabels()).To(And(HaveKeyWithValue(providerLabel, "infrastructure-tiny"),
			HaveKey(clusterctlv1.ClusterctlLabel)))
	}

	crds, webhooks, err := c.rewired(4711, []byte("CA"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(crds)).To(Equal([]string{"tinies.example.com", "plains.example.com"}))
	conversion, _, err := unstructured.NestedMap(crds[0].Object, "spec", "conversion", "webhook", "clientConfig")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conversion).To(Equal(map[string]any{"url": "https://127.0.0.1:4711/convert", "caBundle": "Q0E="}))
	hooks, _, err := unstructured.NestedSlice(webhooks[0].Object, "webhooks")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hooks).To(HaveLen(1))
	g.Expect(hooks[0]).To(HaveKeyWithValue("clientConfig",
		map[string]any{"url": "https://127.0.0.1:4711/validate", "caBundle": "Q0E="}))

	g.Expect(c.keepStorageVersions()).To(Succeed())
	versions, _, err := unstructured.NestedSlice(c.crds[1].Object, "spec", "versions")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(ConsistOf(HaveKeyWithValue("name", "v1")))

	again, _, err := c.rewired(4712, []byte("CA"))
	g.Expect(err).NotTo(HaveOccurred())
	conversion, _, err = unstructured.NestedMap(again[0].Object, "spec", "conversion", "webhook", "clientConfig")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conversion).To(HaveKeyWithValue("url", "https://127.0.0.1:4712/convert"), "the original is unchanged")
}

func TestComponentsThatCannotBeInstalled(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"no Namespace and Deployment": {
			yaml: "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
			want: "need one Namespace",
		},
		"a variable without a value": {
			yaml: "apiVersion: v1\nkind: Service\nmetadata: {name: \"${UNSET_VARIABLE}\"}\n",
			want: "UNSET_VARIABLE",
		},
		"invalid YAML": {yaml: "a: b: c", want: "reading components"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseComponents([]byte(test.yaml), nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestInventoryNames(t *testing.T) {
	for provider, want := range map[string]struct {
		name string
		kind clusterctlv1.ProviderType
	}{
		"cluster-api":           {"cluster-api", clusterctlv1.CoreProviderType},
		"bootstrap-kubeadm":     {"kubeadm", clusterctlv1.BootstrapProviderType},
		"control-plane-kubeadm": {"kubeadm", clusterctlv1.ControlPlaneProviderType},
		"infrastructure-vcd":    {"vcd", clusterctlv1.InfrastructureProviderType},
		"ipam-in-cluster":       {"in-cluster", clusterctlv1.IPAMProviderType},
	} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)
			name, kind := providerNameAndType(provider)
			g.Expect(name).To(Equal(want.name))
			g.Expect(kind).To(Equal(want.kind))
		})
	}
}

func TestLocalRepository(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path, err := LocalRepository(dir, Repository{
		Version:   "v2.0.0",
		Files:     map[string][]byte{"metadata.yaml": []byte("x")},
		Variables: map[string]string{"VCD_SITE": "https://vcd.example.com"},
		Others: []Release{{
			Provider: "control-plane-kubeadm",
			Version:  "v1.14.2",
			Files:    map[string][]byte{"metadata.yaml": []byte("y")},
		}},
		CertManager: []byte("z"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var config map[string]any
	g.Expect(yaml.Unmarshal(content, &config)).To(Succeed())
	g.Expect(config).To(HaveKeyWithValue("VCD_SITE", "https://vcd.example.com"))
	g.Expect(config["providers"]).To(ConsistOf(map[string]any{
		"name": "vcd",
		"type": "InfrastructureProvider",
		"url":  "file://" + filepath.Join(dir, "infrastructure-vcd", "v2.0.0", "infrastructure-components.yaml"),
	}, map[string]any{
		"name": "kubeadm",
		"type": "ControlPlaneProvider",
		"url":  "file://" + filepath.Join(dir, "control-plane-kubeadm", "v1.14.2", "control-plane-components.yaml"),
	}))
	g.Expect(config["cert-manager"]).To(HaveKeyWithValue("url", HavePrefix("file://"+dir)))
	g.Expect(filepath.Join(dir, "control-plane-kubeadm", "v1.14.2", "metadata.yaml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(dir, "infrastructure-vcd", "v2.0.0", "metadata.yaml")).To(BeAnExistingFile())
}

func TestProgramsDoNotInheritTheCallersProxyAndKubeconfig(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "KUBECONFIG", "POD_NAMESPACE"} {
		t.Setenv(name, "from the caller")
	}
	t.Setenv("KEPT", "yes")
	g.Expect(cleanEnvironment()).To(ContainElement("KEPT=yes"))
	g.Expect(cleanEnvironment()).NotTo(ContainElement(ContainSubstring("from the caller")))
}

func names(objects []unstructured.Unstructured) []string {
	var all []string
	for i := range objects {
		all = append(all, objects[i].GetName())
	}
	return all
}

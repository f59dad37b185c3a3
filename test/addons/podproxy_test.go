// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const (
	proxyURL = "http://proxy.example.com:3128"
	direct   = ".svc,10.0.0.0/24"
)

// allVariables is the injected environment of a container that sets none of the variables.
var allVariables = []string{
	"HTTP_PROXY=" + proxyURL,
	"HTTPS_PROXY=" + proxyURL,
	"NO_PROXY=" + direct,
	"http_proxy=" + proxyURL,
	"https_proxy=" + proxyURL,
	"no_proxy=" + direct,
}

// allVariablesExcept returns allVariables without the named variables in both cases.
func allVariablesExcept(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(allVariables), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(names, strings.ToUpper(name))
	})
}

// A proxyCluster is an API server with the policies that inject an HTTP proxy into pods.
type proxyCluster struct {
	*WithT

	ctx    context.Context //nolint:containedctx // that of the test
	client client.Client
}

func startProxyCluster(t *testing.T, version string, args ...string) proxyCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server; not in short mode")
	}
	g := NewWithT(t)
	s, err := stack.Start(t.Context(), stack.Options{
		Dir:           t.TempDir(),
		Out:           t.Output(),
		Parts:         []stack.Part{},
		APIServerArgs: args,
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.Stop()).To(Succeed()) })
	p := proxyCluster{g, t.Context(), s.Client()}
	if version != "" {
		p.install(version)
	}
	return p
}

// install applies the policies and waits until they take effect.
func (p proxyCluster) install(version string) {
	objects, err := addons.PodProxy{
		Version: version,
		HTTP:    proxyURL,
		HTTPS:   proxyURL,
		Direct:  strings.Split(direct, ","),
	}.Objects()
	p.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		p.Expect(p.client.Create(p.ctx, o.DeepCopy())).To(Succeed(), o.GetName())
	}
	p.namespace("probe", nil, nil)
	p.Eventually(func() []string { return env(p.create("probe", nil).Spec.Containers[0].Env) }, testtime.Patience,
		"200ms").Should(Equal(allVariables))
	invalid := map[string]string{"no_proxy": "a"}
	p.Eventually(func() error { return p.parameters("probe", invalid, client.DryRunAll) }, testtime.Patience,
		"200ms").Should(MatchError(ContainSubstring("may contain only the keys")))
}

// namespace creates a namespace and, unless they are nil, its parameters.
func (p proxyCluster) namespace(name string, labels, parameters map[string]string) {
	p.Expect(p.client.Create(p.ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	})).To(Succeed())
	p.Expect(p.client.Create(p.ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"},
	})).To(Succeed())
	if parameters != nil {
		p.Expect(p.parameters(name, parameters)).To(Succeed())
	}
}

func (p proxyCluster) parameters(namespace string, data map[string]string, options ...client.CreateOption) error {
	return p.client.Create(p.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: addons.PodProxyName},
		Data:       data,
	}, options...)
}

// create creates a pod and returns it as the API server stored it.
func (p proxyCluster) create(namespace string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
	if change != nil {
		change(pod)
	}
	p.Expect(p.client.Create(p.ctx, pod)).To(Succeed())
	return pod
}

func env(all []corev1.EnvVar) []string {
	var out []string
	for _, e := range all {
		value := e.Value
		if e.ValueFrom != nil {
			value = "(reference)"
		}
		out = append(out, e.Name+"="+value)
	}
	return out
}

func TestPodsGetTheProxy(t *testing.T) {
	p := startProxyCluster(t, "v1")
	for name, run := range map[string]func(proxyCluster){
		"containers and init containers get all variables":     injectsEachContainer,
		"variables of a container are kept, in either case":    keepsValues,
		"static pods and pods with the label are ignored":      ignoresExcludedPods,
		"a namespace adds to no_proxy and replaces the others": mergesNamespaces,
		"a namespace replaces no_proxy":                        replacesExceptions,
		"annotations of a pod take precedence":                 podAnnotationsOverride,
		"new ephemeral containers get all variables":           ephemeralContainers,
		"invalid parameters are rejected":                      rejectsInvalidParameters,
		"updates of a pod are allowed and inject nothing":      ignoresUpdates,
	} {
		t.Run(name, func(t *testing.T) { run(proxyCluster{NewWithT(t), t.Context(), p.client}) })
	}
	t.Run("without parameters or policies, pods are not changed", func(t *testing.T) {
		withoutPolicies(proxyCluster{NewWithT(t), t.Context(), p.client})
	})
}

func injectsEachContainer(p proxyCluster) {
	p.namespace("each", nil, nil)
	pod := p.create("each", func(pod *corev1.Pod) {
		pod.Spec.HostNetwork = true
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name:  "second",
			Image: "busybox",
			Env:   []corev1.EnvVar{{Name: "A", Value: "b"}},
		})
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "init", Image: "busybox"},
			{Name: "sidecar", Image: "busybox", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}
	})

	p.Expect(env(pod.Spec.Containers[0].Env)).To(Equal(allVariables))
	p.Expect(env(pod.Spec.Containers[1].Env)).To(Equal(append([]string{"A=b"}, allVariables...)))
	p.Expect(env(pod.Spec.InitContainers[0].Env)).To(Equal(allVariables))
	p.Expect(env(pod.Spec.InitContainers[1].Env)).To(Equal(allVariables))
	p.Expect(pod.Spec.InitContainers[1].RestartPolicy).To(HaveValue(Equal(corev1.ContainerRestartPolicyAlways)))
	p.Expect(pod.Annotations).To(BeEmpty())
}

func keepsValues(p proxyCluster) {
	p.namespace("keeps", nil, nil)
	pod := p.create("keeps", func(pod *corev1.Pod) {
		pod.Spec.Containers = []corev1.Container{
			{Name: "lower", Image: "busybox", Env: []corev1.EnvVar{{Name: "http_proxy", Value: "http://mine"}}},
			{Name: "empty", Image: "busybox", Env: []corev1.EnvVar{{Name: "HTTPS_PROXY"}}},
			{
				Name:  "reference",
				Image: "busybox",
				Env: []corev1.EnvVar{{
					Name: "NO_PROXY",
					ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
						FieldPath: "metadata.name",
					}},
				}},
			},
			{Name: "twice", Image: "busybox", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}},
			{
				Name:  "all",
				Image: "busybox",
				Env: []corev1.EnvVar{
					{Name: "HTTP_PROXY", Value: "x"},
					{Name: "HTTPS_PROXY", Value: "x"},
					{Name: "NO_PROXY", Value: "x"},
				},
			},
		}
	})

	containers := pod.Spec.Containers
	p.Expect(env(containers[0].Env)).To(Equal(append([]string{"http_proxy=http://mine"}, allVariablesExcept("HTTP_PROXY")...)))
	p.Expect(env(containers[1].Env)).To(Equal(append([]string{"HTTPS_PROXY="}, allVariablesExcept("HTTPS_PROXY")...)))
	p.Expect(env(containers[2].Env)).To(Equal(append([]string{"NO_PROXY=(reference)"}, allVariablesExcept("NO_PROXY")...)))
	p.Expect(env(containers[3].Env)).To(Equal(append([]string{"A=1", "A=2"}, allVariables...)))
	p.Expect(env(containers[4].Env)).To(HaveLen(3))
}

func ignoresExcludedPods(p proxyCluster) {
	off := map[string]string{addons.PodProxyInjectLabel: "false"}
	p.namespace("alone", nil, nil)
	p.namespace("off", off, nil)
	static := p.create("alone", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		pod.Spec.NodeName = "node"
		pod.Spec.ServiceAccountName = ""
	})
	labelled := p.create("alone", func(pod *corev1.Pod) { pod.Labels = off })
	inNamespace := p.create("off", nil)

	for _, pod := range []*corev1.Pod{static, labelled, inNamespace} {
		p.Expect(pod.Spec.Containers[0].Env).To(BeEmpty())
	}
}

func mergesNamespaces(p proxyCluster) {
	p.namespace("merges", nil, map[string]string{"noProxy": "mysql,.shop", "httpsProxy": "http://shop.example.com:8080"})
	p.namespace("direct", nil, map[string]string{"httpProxy": "", "httpsProxy": ""})
	p.Eventually(func() map[string]string { return p.create("merges", nil).Annotations }, testtime.Patience).
		ShouldNot(BeEmpty(), "the API server observes the parameters with a delay")
	p.Eventually(func() map[string]string { return p.create("direct", nil).Annotations }, testtime.Patience).
		ShouldNot(BeEmpty())

	for range 10 {
		pod := p.create("merges", func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{
				Name:  "init",
				Image: "busybox",
				Env:   []corev1.EnvVar{{Name: "NO_PROXY", Value: "mine"}},
			}}
		})
		p.Expect(env(pod.Spec.Containers[0].Env)).To(ConsistOf(append(
			allVariablesExcept("HTTPS_PROXY", "NO_PROXY"),
			"HTTPS_PROXY=http://shop.example.com:8080", "https_proxy=http://shop.example.com:8080",
			"NO_PROXY="+direct+",mysql,.shop", "no_proxy="+direct+",mysql,.shop")))
		p.Expect(env(pod.Spec.InitContainers[0].Env)).To(ContainElement("NO_PROXY=mine"))
		p.Expect(env(pod.Spec.InitContainers[0].Env)).NotTo(ContainElement(HavePrefix("no_proxy=")))

		p.Expect(env(p.create("direct", nil).Spec.Containers[0].Env)).To(ConsistOf(append(
			allVariablesExcept("HTTP_PROXY", "HTTPS_PROXY"), "HTTP_PROXY=", "http_proxy=", "HTTPS_PROXY=", "https_proxy=")))
		p.shuffle()
	}
}

// replacesExceptions tests namespaces and pods that replace the proxy exceptions of the cluster.
func replacesExceptions(p proxyCluster) {
	p.namespace("replaces", nil, map[string]string{"noProxy": "mysql,.shop", "noProxyMode": "Replace"})
	p.namespace("replaces-all", nil, map[string]string{"noProxy": "", "noProxyMode": "Replace"})
	p.namespace("adds", nil, map[string]string{"noProxy": "mysql", "noProxyMode": "Add"})
	for _, namespace := range []string{"replaces", "replaces-all", "adds"} {
		p.Eventually(func() map[string]string { return p.create(namespace, nil).Annotations }, testtime.Patience).
			ShouldNot(BeEmpty(), "the API server observes the parameters with a delay")
	}
	exceptions := func(namespace string, annotations map[string]string) []string {
		pod := p.create(namespace, func(pod *corev1.Pod) { pod.Annotations = annotations })
		all := env(pod.Spec.Containers[0].Env)
		p.Expect(all).To(ContainElements(allVariablesExcept("NO_PROXY")), "the URLs should be those of the cluster")
		return slices.DeleteFunc(all, func(e string) bool { return slices.Contains(allVariablesExcept("NO_PROXY"), e) })
	}
	with := func(list string) []string { return []string{"NO_PROXY=" + list, "no_proxy=" + list} }

	for range 10 {
		p.Expect(exceptions("replaces", nil)).To(ConsistOf(with("mysql,.shop")))
		p.Expect(exceptions("replaces-all", nil)).To(ConsistOf(with("")))
		p.Expect(exceptions("adds", nil)).To(ConsistOf(with(direct + ",mysql")))
		p.Expect(exceptions("replaces", map[string]string{
			"proxy.infrastructure.cluster.x-k8s.io/no-proxy": "ldap",
		})).To(ConsistOf(with(direct+",ldap")), "exceptions of a pod should extend those of the cluster")
		p.Expect(exceptions("probe", map[string]string{
			"proxy.infrastructure.cluster.x-k8s.io/no-proxy":      "ldap",
			"proxy.infrastructure.cluster.x-k8s.io/no-proxy-mode": "Replace",
		})).To(ConsistOf(with("ldap")))
		p.shuffle()
	}
}

// shuffle makes the API server reorder the policies. The API server iterates over a map of policies, so each change may
// change the order.
func (p proxyCluster) shuffle() {
	objects, err := addons.PodProxy{Version: "v1"}.Objects()
	p.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		if o.GetKind() == addons.MutatingPolicyKind {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"shuffled":%q}}}`, p.create("probe", nil).Name)
			p.Expect(p.client.Patch(p.ctx, &o, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		}
	}
	p.Eventually(func() []string { return env(p.create("probe", nil).Spec.Containers[0].Env) }, testtime.Patience).
		Should(Equal(allVariables))
}

func podAnnotationsOverride(p proxyCluster) {
	p.namespace("pods", nil, nil)
	pod := p.create("pods", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{
			"proxy.infrastructure.cluster.x-k8s.io/no-proxy": "ldap",
			"proxy.infrastructure.cluster.x-k8s.io/http":     "http://other:1",
		}
	})

	p.Expect(env(pod.Spec.Containers[0].Env)).To(ConsistOf(append(allVariablesExcept("HTTP_PROXY", "NO_PROXY"),
		"HTTP_PROXY=http://other:1", "http_proxy=http://other:1", "NO_PROXY="+direct+",ldap", "no_proxy="+direct+",ldap")))
}

func ephemeralContainers(p proxyCluster) {
	p.namespace("debug", nil, nil)
	off := map[string]string{addons.PodProxyInjectLabel: "false"}
	old := p.create("debug", func(pod *corev1.Pod) { pod.Labels = off })
	debug := func(name string) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "busybox"},
		}
	}
	old.Spec.EphemeralContainers = []corev1.EphemeralContainer{debug("first")}
	p.Expect(p.client.SubResource("ephemeralcontainers").Update(p.ctx, old)).To(Succeed())
	old.Labels = nil
	p.Expect(p.client.Update(p.ctx, old)).To(Succeed())

	old.Spec.EphemeralContainers = append(old.Spec.EphemeralContainers, debug("second"))
	p.Expect(p.client.SubResource("ephemeralcontainers").Update(p.ctx, old)).To(Succeed())

	p.Expect(old.Spec.EphemeralContainers[0].Env).To(BeEmpty(), "existing ephemeral containers cannot be changed")
	p.Expect(env(old.Spec.EphemeralContainers[1].Env)).To(Equal(allVariables))
	p.Expect(old.Spec.Containers[0].Env).To(BeEmpty())
}

func rejectsInvalidParameters(p proxyCluster) {
	p.namespace("wrong", nil, nil)
	for message, data := range map[string]map[string]string{
		"with scheme and host":      {"httpProxy": "proxy.example.com:3128"},
		"data.httpsProxy must be":   {"httpsProxy": "ftp://proxy"},
		"separated by commas":       {"noProxy": "a, b"},
		"may contain only the keys": {"no_proxy": "a"},
		"Add or Replace":            {"noProxy": "a", "noProxyMode": "replace"},
		"requires data.noProxy":     {"noProxyMode": "Replace"},
	} {
		p.Expect(p.parameters("wrong", data)).To(MatchError(ContainSubstring(message)))
	}
	p.Expect(p.parameters("wrong", map[string]string{"httpProxy": "", "noProxy": "a,.b,10.0.0.0/8", "noProxyMode": "Replace"})).
		To(Succeed())
}

func ignoresUpdates(p proxyCluster) {
	p.namespace("running", nil, nil)
	pod := p.create("running", func(pod *corev1.Pod) {
		pod.Labels = map[string]string{addons.PodProxyInjectLabel: "false"}
	})
	pod.Labels = map[string]string{"a": "b"}

	p.Expect(p.client.Update(p.ctx, pod)).To(Succeed())

	p.Expect(pod.Spec.Containers[0].Env).To(BeEmpty())
}

func withoutPolicies(p proxyCluster) {
	parameters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: addons.Namespace,
		Name:      addons.ClusterPodProxyName,
	}}
	nothing := func() []corev1.EnvVar { return p.create("probe", nil).Spec.Containers[0].Env }
	p.Expect(p.client.Delete(p.ctx, parameters)).To(Succeed())
	p.Eventually(nothing, testtime.Patience).Should(BeEmpty())

	objects, err := addons.PodProxy{Version: "v1"}.Objects()
	p.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		p.Expect(client.IgnoreNotFound(p.client.Delete(p.ctx, &o))).To(Succeed())
	}
	p.Expect(nothing()).To(BeEmpty())
}

func TestPodsGetTheProxyWithBetaPolicies(t *testing.T) {
	p := startProxyCluster(t, "v1beta1", "--runtime-config=admissionregistration.k8s.io/v1beta1=true")
	mergesNamespacesOnce(p)
}

func mergesNamespacesOnce(p proxyCluster) {
	p.namespace("beta", nil, map[string]string{"noProxy": "mysql"})
	p.Eventually(func() []string { return env(p.create("beta", nil).Spec.Containers[0].Env) }, testtime.Patience).
		Should(ConsistOf(append(allVariablesExcept("NO_PROXY"), "NO_PROXY="+direct+",mysql", "no_proxy="+direct+",mysql")))
	p.namespace("beta-replaces", nil, map[string]string{"noProxy": "mysql", "noProxyMode": "Replace"})
	p.Eventually(func() []string { return env(p.create("beta-replaces", nil).Spec.Containers[0].Env) }, testtime.Patience).
		Should(ConsistOf(append(allVariablesExcept("NO_PROXY"), "NO_PROXY=mysql", "no_proxy=mysql")))
}

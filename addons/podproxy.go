// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Names of the parameters of pods' HTTP proxies, and what pods and namespaces can have of it.
const (
	// ClusterPodProxyName is the ConfigMap in kube-system with the proxy of all pods: the manager writes it.
	ClusterPodProxyName = "cluster-pod-proxy"
	// PodProxyName is the ConfigMap with which a namespace changes that for its pods: its users write it.
	PodProxyName = "pod-proxy"
	// PodProxyInjectLabel on a pod or namespace, with the value "false", keeps the proxy away.
	PodProxyInjectLabel = "proxy.infrastructure.cluster.x-k8s.io/inject"
	// podProxyGroup begins the names of annotations of pods, and ends those of policies.
	podProxyGroup = "proxy.infrastructure.cluster.x-k8s.io"
	// noProxyAnnotation has exceptions of a pod.
	noProxyAnnotation = podProxyGroup + "/no-proxy"
)

// AdmissionGroup is the API group of admission policies, and MutatingPolicyKind one of its kinds.
const (
	AdmissionGroup     = "admissionregistration.k8s.io"
	MutatingPolicyKind = "MutatingAdmissionPolicy"
)

//go:embed manifests/pod-proxy.yaml
var podProxySource string

// PodProxy is the HTTP proxy of pods.
type PodProxy struct {
	// Version of the API with mutating admission policies: v1, or v1beta1.
	Version string
	// HTTP and HTTPS are the URLs of the proxies; empty: none.
	HTTP, HTTPS string
	// Direct are hosts, domains and networks that are reached without.
	Direct []string
}

// A podProxyFamily is a variable of the environment, in upper and lower case.
type podProxyFamily struct{ Upper, Lower, Key, Annotation, Merged string }

// Objects renders the policies, their bindings and the parameters of the cluster.
func (p PodProxy) Objects() ([]unstructured.Unstructured, error) {
	functions := template.FuncMap{"quote": quote}
	t, err := template.New("pod-proxy").Funcs(functions).Option("missingkey=error").Parse(podProxySource)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{
		"Version":             p.Version,
		"HTTP":                p.HTTP,
		"HTTPS":               p.HTTPS,
		"NoProxy":             strings.Join(p.Direct, ","),
		"ClusterParameters":   ClusterPodProxyName,
		"NamespaceParameters": PodProxyName,
		"Inject":              PodProxyInjectLabel,
		"Prefix":              podProxyGroup + ".",
		"ModeKey":             "noProxyMode",
		"ModeAnnotation":      podProxyGroup + "/no-proxy-mode",
		"NoProxyAnnotation":   noProxyAnnotation,
		"Families": []podProxyFamily{
			{"HTTP_PROXY", "http_proxy", "httpProxy", podProxyGroup + "/http", ""},
			{"HTTPS_PROXY", "https_proxy", "httpsProxy", podProxyGroup + "/https", ""},
			{"NO_PROXY", "no_proxy", "noProxy", noProxyAnnotation, "true"},
		},
		"Lists": []string{"containers", "initContainers", "ephemeralContainers"},
	}); err != nil {
		return nil, fmt.Errorf("rendering the manifest: %w", err)
	}
	return Parse(out.Bytes())
}

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

// Names of the parameters for the HTTP proxy of pods, and of labels on pods and namespaces.
const (
	// ClusterPodProxyName is the ConfigMap in kube-system with the proxy for all pods. The manager writes it.
	ClusterPodProxyName = "cluster-pod-proxy"
	// PodProxyName is the ConfigMap that overrides the proxy for the pods of a namespace. Users write it.
	PodProxyName = "pod-proxy"
	// PodProxyInjectLabel, with the value "false" on a pod or namespace, disables the proxy.
	PodProxyInjectLabel = "proxy.infrastructure.cluster.x-k8s.io/inject"
	// podProxyGroup is the prefix of the names of pod annotations, and the suffix of the names of policies.
	podProxyGroup = "proxy.infrastructure.cluster.x-k8s.io"
	// noProxyAnnotation is the pod annotation with proxy exceptions.
	noProxyAnnotation = podProxyGroup + "/no-proxy"
)

// AdmissionGroup is the API group of admission policies, and MutatingPolicyKind is one of its kinds.
const (
	AdmissionGroup     = "admissionregistration.k8s.io"
	MutatingPolicyKind = "MutatingAdmissionPolicy"
)

//go:embed manifests/pod-proxy.yaml
var podProxySource string

// PodProxy configures the HTTP proxy of pods.
type PodProxy struct {
	// Version is the API version of mutating admission policies: v1 or v1beta1.
	Version string
	// HTTP and HTTPS are the URLs of the proxies; empty means none.
	HTTP, HTTPS string
	// Direct are the hosts, domains and networks that are reached without a proxy.
	Direct []string
}

// A podProxyFamily is an environment variable in upper and lower case.
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

// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// PeersSecret is the Secret in the workload cluster that contains the BGP peers and their passwords in the key
// [PeersKey].
const (
	PeersSecret = "kube-vip-bgp" //nolint:gosec // A name.
	PeersKey    = "peers"
)

// daemonSetMetrics is the address at which a pod of the DaemonSet serves its metrics. It differs from the address of
// the static pod on the first node, which exists until that pod is removed.
const daemonSetMetrics = "127.0.0.1:2113"

// proxyInjectLabel excludes the pods from the proxy policy of the cluster. The pods connect to the API server of their
// own node, by a name that only they can resolve. A proxy cannot reach it, and the virtual IP would be lost.
const proxyInjectLabel = "proxy.infrastructure.cluster.x-k8s.io/inject"

// peersHashAnnotation is an annotation of the pods that changes with the BGP peers and their passwords, so that a
// change of the Secret replaces running pods.
const peersHashAnnotation = "infrastructure.cluster.x-k8s.io/bgp-peers"

// hashOf returns a short hash of a text that contains passwords. It is too short to recover a password, because one in
// 65,536 texts has the same hash.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:2])
}

// Objects returns the objects of mode DaemonSet in the workload cluster. Equal configs result in equal objects.
func Objects(c Config) ([]unstructured.Unstructured, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	set := &appsv1.DaemonSet{}
	if err := readGenerated(c.manifest("daemonset"), set); err != nil {
		return nil, err
	}
	pod := &set.Spec.Template.Spec
	c.apply(pod, peersFromSecret(c.BGP.env()))
	metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, proxyInjectLabel, "false")
	if c.BGP != nil {
		metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, peersHashAnnotation, hashOf(c.BGP.peers()))
	}
	for _, value := range []corev1.EnvVar{
		// The API server of the pod's own node, by a name in its certificate: the Service "kubernetes" needs
		// kube-proxy, which needs the virtual IP.
		{Name: "KUBERNETES_SERVICE_HOST", Value: "kubernetes"},
		{Name: "KUBERNETES_SERVICE_PORT", Value: strconv.Itoa(int(c.Port))},
		{Name: "prometheus_server", Value: daemonSetMetrics},
	} {
		setEnv(&pod.Containers[0], value)
	}
	rights, err := rights()
	if err != nil {
		return nil, err
	}
	rest, err := toUnstructured([]any{peersSecret(set.Namespace, c.BGP), set})
	return append(rights, rest...), err
}

// peersFromSecret returns the environment variables of BGP with a reference to the Secret in place of the peers.
func peersFromSecret(bgp []corev1.EnvVar) []corev1.EnvVar {
	at := slices.IndexFunc(bgp, func(e corev1.EnvVar) bool { return e.Name == peersEnv })
	if at < 0 {
		return bgp
	}
	bgp[at] = corev1.EnvVar{
		Name: peersEnv,
		ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: PeersSecret},
			Key:                  PeersKey,
		}},
	}
	return bgp
}

// peersSecret returns the Secret with the peers and their passwords. Without BGP the Secret is empty but not omitted.
// Cluster API removes fields that are no longer in an applied object, but never deletes the object. The passwords of an
// earlier configuration would therefore stay in the workload cluster.
func peersSecret(namespace string, bgp *BGP) *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PeersSecret},
		Type:       corev1.SecretTypeOpaque,
	}
	if bgp != nil {
		secret.Data = map[string][]byte{PeersKey: []byte(bgp.peers())}
	}
	return secret
}

// rights returns the service account of the DaemonSet's pods with its role. The generator's role allows more, but a
// control plane endpoint only needs the lease.
func rights() ([]unstructured.Unstructured, error) {
	raw, err := generated.ReadFile("generated/rights.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the rights of kube-vip: %w", err)
	}
	account := &corev1.ServiceAccount{}
	role := &rbacv1.Role{}
	binding := &rbacv1.RoleBinding{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw))
	for _, into := range []any{account, role, binding} {
		if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("decoding the rights of kube-vip: %w", err)
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return !slices.Contains(rule.APIGroups, "coordination.k8s.io")
	})
	return toUnstructured([]any{account, role, binding})
}

// toUnstructured converts typed objects to unstructured ones, without status and creation timestamps.
func toUnstructured(typed []any) ([]unstructured.Unstructured, error) {
	all := make([]unstructured.Unstructured, 0, len(typed))
	for _, object := range typed {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("converting %T: %w", object, err)
		}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
		all = append(all, unstructured.Unstructured{Object: content})
	}
	return all, nil
}

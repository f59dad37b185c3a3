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

// PeersSecret is the Secret in the workload cluster with the BGP peers and their passwords, in key [PeersKey].
const (
	PeersSecret = "kube-vip-bgp" //nolint:gosec // A name.
	PeersKey    = "peers"
)

// daemonSetMetrics is where a pod of the DaemonSet serves its metrics: beside the static pod of the first node, until
// that one goes.
const daemonSetMetrics = "127.0.0.1:2113"

// proxyInjectLabel keeps the proxy policy of the cluster away from the pods. They ask the API server of their own node,
// by a name that only they know: a proxy does not reach it, and the virtual IP is lost.
const proxyInjectLabel = "proxy.infrastructure.cluster.x-k8s.io/inject"

// peersHashAnnotation on the pods changes with the BGP peers and their passwords, so that a change of the Secret reaches
// running pods.
const peersHashAnnotation = "infrastructure.cluster.x-k8s.io/bgp-peers"

// hashOf returns a short hash of a text with passwords. It is too short to find out a password with it: two texts in
// 65,536 have the same.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:2])
}

// Objects returns what mode DaemonSet has in the workload cluster. Equal configs give equal objects.
func Objects(c Config) ([]unstructured.Unstructured, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	set := &appsv1.DaemonSet{}
	if err := c.read("daemonset", set); err != nil {
		return nil, err
	}
	pod := &set.Spec.Template.Spec
	c.apply(pod, peersFromSecret(c.BGP.env()))
	metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, proxyInjectLabel, "false")
	if c.BGP != nil {
		metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, peersHashAnnotation, hashOf(c.BGP.peers()))
	}
	for _, value := range []corev1.EnvVar{
		// The API server of the pod's own node, by a name in its certificate: the Service needs kube-proxy, which
		// needs the virtual IP.
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

// peersFromSecret returns the variables of BGP with a reference to the Secret in place of the peers.
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

// peersSecret returns the Secret with the peers and their passwords. Without BGP it is empty, and not absent: Cluster
// API removes what is gone from an object that it applies, but it never deletes an object. The passwords of a former
// configuration would stay in the workload cluster.
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

// rights returns the account of the DaemonSet's pods. Of what the generator's role allows, an endpoint of a control
// plane needs the lease alone.
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

// toUnstructured converts typed objects.
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

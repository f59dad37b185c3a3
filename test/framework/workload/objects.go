// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates an object with a UID, which the in-memory server does not generate. It keeps an existing object.
func (c *cluster) create(ctx context.Context, obj client.Object) error {
	obj.SetUID(types.UID(uuid.NewString()))
	if err := c.client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// createClusterObjects creates the objects of kubeadm init except for the node: namespaces, its configuration, its RBAC
// rule for joining nodes, kube-proxy and CoreDNS. The kubeadm control plane provider reads or updates each of them.
func (c *cluster) createClusterObjects(ctx context.Context, p *plan) error {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
	}
	template := func(name, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}},
		}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespacePublic}},
		&corev1.ConfigMap{
			ObjectMeta: meta("kubeadm-config"),
			Data:       map[string]string{"ClusterConfiguration": p.clusterConfig},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
			Rules: []rbacv1.PolicyRule{{
				Verbs:     []string{"get"},
				APIGroups: []string{""},
				Resources: []string{"nodes"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeadm:get-nodes"},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.GroupKind,
				Name: "system:bootstrappers:kubeadm:default-node-token",
			}},
		},
		&appsv1.DaemonSet{
			ObjectMeta: meta("kube-proxy"),
			Spec: appsv1.DaemonSetSpec{
				Template: template("kube-proxy", "registry.k8s.io/kube-proxy:"+p.version),
			},
		},
		&corev1.ConfigMap{
			ObjectMeta: meta("coredns"),
			Data:       map[string]string{"Corefile": ".:53 {\n    errors\n    health\n}\n"},
		},
		&appsv1.Deployment{
			ObjectMeta: meta("coredns"),
			Spec: appsv1.DeploymentSpec{
				Template: template("coredns", "registry.k8s.io/coredns/coredns:v1.12.1"),
			},
		},
	}
	for _, obj := range objects {
		if err := c.create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// createNode registers a node as the kubelet does.
func (c *cluster) createNode(ctx context.Context, n nodeSpec, version string) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: maps.Clone(n.labels)},
		Spec:       corev1.NodeSpec{ProviderID: n.providerID, Taints: n.taints},
		Status: corev1.NodeStatus{
			Addresses: n.addresses,
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          version,
				OperatingSystem:         "linux",
				Architecture:            "amd64",
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "containerd://2.0.0",
				KernelVersion:           "6.8.0",
			},
			Conditions: []corev1.NodeCondition{
				nodeCondition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
				nodeCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
				nodeCondition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
				nodeCondition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
			},
		},
	}
	return c.create(ctx, node)
}

func nodeCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
	now := metav1.Now()
	return corev1.NodeCondition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		LastHeartbeatTime:  now,
		LastTransitionTime: now,
	}
}

// createStaticPods creates the mirror pods of a control plane node's static pods.
func (c *cluster) createStaticPods(ctx context.Context, p *plan, version string) error {
	annotations, err := c.etcdAnnotations(ctx)
	if err != nil {
		return err
	}
	pods := []*corev1.Pod{
		staticPod("etcd", p.node.name, "registry.k8s.io/etcd:3.6.6-0"),
		staticPod("kube-apiserver", p.node.name, "registry.k8s.io/kube-apiserver:"+version),
		staticPod("kube-controller-manager", p.node.name, "registry.k8s.io/kube-controller-manager:"+version),
		staticPod("kube-scheduler", p.node.name, "registry.k8s.io/kube-scheduler:"+version),
	}
	maps.Copy(pods[0].Annotations, annotations)
	if p.kubeVIP != nil {
		pod := staticPod("kube-vip", p.node.name, "")
		pod.Spec = *p.kubeVIP.Spec.DeepCopy()
		pod.Spec.NodeName = p.node.name
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		if err := c.create(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

func staticPod(component, node, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   metav1.NamespaceSystem,
			Name:        component + "-" + node,
			Labels:      map[string]string{"component": component, "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: component},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: component, Image: image}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{
				Type:               corev1.PodReady,
				Status:             corev1.ConditionTrue,
				LastTransitionTime: metav1.Now(),
			}},
		},
	}
}

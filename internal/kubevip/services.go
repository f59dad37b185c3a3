// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

const (
	// ServicesName is the name of the DaemonSet that announces addresses of Services, of its service account and of its
	// roles.
	ServicesName = "kube-vip-services"
	// servicesLease is the lease of the announcing pod.
	servicesLease = "plndr-svcs-lock"
)

// A ServicesConfig holds the settings of the announcement of Services that differ between clusters.
type ServicesConfig struct {
	// Class is the spec.loadBalancerClass of the Services; empty means Services without a class.
	Class string

	// Interface is the interface to which the addresses are added; empty means the interface of the default route.
	Interface string

	// Image is the full image reference of kube-vip; empty means DefaultImage.
	Image string

	// ControlPlane lets control-plane nodes announce addresses as well.
	ControlPlane bool
}

// complete sets defaults and rejects values that would only fail on the node.
func (c *ServicesConfig) complete() error {
	c.Image = cmp.Or(c.Image, DefaultImage)
	if c.Interface != "" && !interfaceName.MatchString(c.Interface) {
		return fmt.Errorf("%q is not an interface name", c.Interface)
	}
	if !imageName.MatchString(c.Image) {
		return fmt.Errorf("%q is not the name of an image", c.Image)
	}
	return nil
}

// Services returns the objects in the workload cluster that announce addresses of Services. Equal configs result in
// equal objects.
func Services(c ServicesConfig) ([]unstructured.Unstructured, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	set := &appsv1.DaemonSet{}
	if err := readGenerated("services-arp", set); err != nil {
		return nil, err
	}
	set.Name = ServicesName
	labels := map[string]string{"app.kubernetes.io/name": ServicesName}
	set.Labels = labels
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = map[string]string{
		"app.kubernetes.io/name": ServicesName,
		proxyInjectLabel:         "false",
	}
	c.apply(&set.Spec.Template.Spec)
	return toUnstructured(append(servicesRights(set.Namespace), set))
}

// apply sets the values of the cluster in the generated pod.
func (c *ServicesConfig) apply(pod *corev1.PodSpec) {
	pod.ServiceAccountName = ServicesName
	pod.PriorityClassName = "system-node-critical"
	pod.Tolerations = []corev1.Toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	if !c.ControlPlane {
		pod.Affinity = &corev1.Affinity{NodeAffinity: onWorkers()}
	}
	container := &pod.Containers[0]
	container.Image = c.Image
	container.SecurityContext.AllowPrivilegeEscalation = ptr.To(false)
	container.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("48Mi"),
	}
	if c.Interface != "" {
		setEnv(container, corev1.EnvVar{Name: "vip_interface", Value: c.Interface})
	}
	if c.Class != "" {
		setEnv(container, corev1.EnvVar{Name: "lb_class_name", Value: c.Class})
		setEnv(container, corev1.EnvVar{Name: "lb_class_only", Value: "true"})
	}
}

// onWorkers selects the nodes that may receive traffic of Services. kubeadm excludes control-plane nodes by the label
// of Kubernetes, and other distributions only by their role.
func onWorkers() *corev1.NodeAffinity {
	without := func(label string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpDoesNotExist}
	}
	return &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					without("node-role.kubernetes.io/control-plane"),
					without(corev1.LabelNodeExcludeBalancers),
				},
			}},
		},
	}
}

// servicesRights returns the service account of the pods with its roles. The pods watch Services, write announced
// addresses to their status and the node name to an annotation, and hold one lease.
func servicesRights(namespace string) []any {
	account := &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ServicesName},
	}
	everywhere := metav1.ObjectMeta{Name: "system:" + ServicesName}
	here := metav1.ObjectMeta{Namespace: namespace, Name: ServicesName}
	subjects := []rbacv1.Subject{{
		Kind:      rbacv1.ServiceAccountKind,
		Namespace: namespace,
		Name:      ServicesName,
	}}
	return []any{
		account,
		&rbacv1.ClusterRole{
			TypeMeta:   rightsType("ClusterRole"),
			ObjectMeta: everywhere,
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch", "update"}},
				{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"update"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   rightsType("ClusterRoleBinding"),
			ObjectMeta: everywhere,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere.Name},
			Subjects:   subjects,
		},
		&rbacv1.Role{
			TypeMeta:   rightsType("Role"),
			ObjectMeta: here,
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
				{
					APIGroups:     []string{"coordination.k8s.io"},
					Resources:     []string{"leases"},
					ResourceNames: []string{servicesLease},
					Verbs:         []string{"get", "update"},
				},
			},
		},
		&rbacv1.RoleBinding{
			TypeMeta:   rightsType("RoleBinding"),
			ObjectMeta: here,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: here.Name},
			Subjects:   subjects,
		},
	}
}

func rightsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

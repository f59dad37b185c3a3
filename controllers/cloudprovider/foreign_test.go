// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// runs returns an object that runs a container in a workload cluster.
func runs(kind client.Object, namespace, name string, c corev1.Container) client.Object {
	c.Name = "c"
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "sidecar:1"}, c}}
	kind.SetNamespace(namespace)
	kind.SetName(name)
	switch o := kind.(type) {
	case *appsv1.Deployment:
		o.Spec.Template.Spec = pod
	case *appsv1.DaemonSet:
		o.Spec.Template.Spec = pod
	case *appsv1.StatefulSet:
		o.Spec.Template.Spec = pod
	case *corev1.Pod:
		o.Spec = pod
	}
	return kind
}

func TestNoSecondCloudProviderIsInstalled(t *testing.T) {
	cpi := corev1.Container{
		Image: "projects.registry.vmware.com/vmware-cloud-director/cloud-provider-for-cloud-director:1.6.1",
	}
	mirror := map[string]string{corev1.MirrorPodAnnotationKey: "1"}
	owner := []metav1.OwnerReference{{Kind: "Node", Name: "n", Controller: ptr.To(true)}}
	tests := []struct {
		name   string
		object client.Object
		names  string // the object to remove
	}{
		{
			name:   "CPI 1.6.1",
			object: runs(&appsv1.Deployment{}, "kube-system", "vmware-cloud-director-ccm", cpi),
			names:  "Deployment kube-system/vmware-cloud-director-ccm",
		},
		{
			name: "the provider of another cloud",
			object: runs(&appsv1.DaemonSet{}, "cloud", "ccm",
				corev1.Container{Image: "registry.k8s.io/provider-os/openstack-cloud-controller-manager:v1.36.0"}),
			names: "DaemonSet cloud/ccm",
		},
		{name: "a StatefulSet", object: runs(&appsv1.StatefulSet{}, "cloud", "ccm", cpi), names: "StatefulSet cloud/ccm"},
		{
			name: "a static pod",
			object: runs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: mirror, OwnerReferences: owner}}, "kube-system",
				"ccm-node-1", cpi),
			names: "static Pod kube-system/ccm-node-1",
		},
		{name: "a manually started pod", object: runs(&corev1.Pod{}, "kube-system", "ccm", cpi), names: "Pod kube-system/ccm"},
		{
			name: "identified by its flag",
			object: runs(&appsv1.Deployment{}, "cloud", "mine",
				corev1.Container{Image: "mine:1", Args: []string{"--cloud-provider", "vsphere"}}),
			names: "Deployment cloud/mine",
		},
		{
			name: "a kube-controller-manager with a cloud provider",
			object: runs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: mirror}},
				"kube-system", "kcm", corev1.Container{
					Image:   "registry.k8s.io/kube-controller-manager:v1.20.0",
					Command: []string{"kube-controller-manager", "--cloud-provider=vsphere"},
				}),
			names: "static Pod kube-system/kcm",
		},
		{
			name: "an unknown cloud provider",
			object: runs(&appsv1.Deployment{}, "cloud", "mine", corev1.Container{
				Image:   "mine@sha256:1",
				Command: []string{"/bin/mine", "--cloud-provider=mine", "--allow-untagged-cloud"},
			}),
			names: "Deployment cloud/mine",
		},
		{
			name: "identified by its program",
			object: runs(&appsv1.Deployment{}, "cloud", "mine",
				corev1.Container{Image: "mine:1", Command: []string{"/bin/acme-cloud-controller-manager"}}),
			names: "Deployment cloud/mine",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.Expect(w.Workload.Create(w.Ctx, tt.object)).To(Succeed())

			w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.CloudProviderConflictReason),
				HaveField("Message", ContainSubstring(tt.names))))

			w.Expect(w.set("-cloud-provider")).To(BeNil())
			w.Expect(w.Workload.Delete(w.Ctx, tt.object)).To(Succeed())
			w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason), "once it is removed, ours is installed")
		})
	}
}

func TestOtherProgramsAreNotTakenForCloudProviders(t *testing.T) {
	replicaSet := []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: ptr.To(true)}}
	tests := []struct {
		name   string
		object client.Object
	}{
		{
			"cluster-autoscaler has a flag of the same name",
			runs(&appsv1.Deployment{}, "kube-system", "cluster-autoscaler", corev1.Container{
				Image:   "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
				Command: []string{"./cluster-autoscaler", "--cloud-provider=clusterapi", "--cluster-name=demo"},
			}),
		},
		{
			"a controller manager with an external cloud provider",
			runs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "1"},
			}}, "kube-system", "kcm", corev1.Container{
				Image: "registry.k8s.io/kube-controller-manager:v1.36.3",
				Args:  []string{"--cloud-provider=external", "--controllers=*"},
			}),
		},
		{
			"cluster-autoscaler of a cloud that may also serve Nodes on VCD",
			runs(&appsv1.Deployment{}, "kube-system",
				"cluster-autoscaler", corev1.Container{
					Image:   "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
					Command: []string{"./cluster-autoscaler", "--cloud-provider=cloudstack", "--nodes=1:5:id"},
				}),
		},
		{
			"cluster-autoscaler under another name",
			runs(&appsv1.Deployment{}, "kube-system", "scaler", corev1.Container{
				Image: "mirror/scaler:v1",
				Args:  []string{"--cloud-provider", "cloudstack", "--scale-down-unneeded-time=5m"},
			}),
		},
		{
			"a kubelet",
			runs(&appsv1.DaemonSet{}, "kube-system", "kubelet", corev1.Container{
				Image:   "mirror/hyperkube:v1",
				Command: []string{"/hyperkube", "kubelet", "--cloud-provider=vsphere", "--node-status-update-frequency=10s"},
			}),
		},
		{
			"a kube-apiserver",
			runs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "1"},
			}}, "kube-system", "api", corev1.Container{
				Image:   "registry.k8s.io/kube-apiserver:v1.20.0",
				Command: []string{"kube-apiserver", "--cloud-provider=vsphere"},
			}),
		},
		{"anything else", runs(&appsv1.Deployment{}, "shop", "web", corev1.Container{Image: "nginx"})},
		{
			"pods of a Deployment, which is counted itself",
			runs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: replicaSet}}, "kube-system", "p",
				corev1.Container{Image: "cloud-provider-for-cloud-director:2"}),
		},
		{
			"a finished pod",
			runs(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, "kube-system", "p",
				corev1.Container{Image: "cloud-provider-for-cloud-director:2"}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.Expect(w.Workload.Create(w.Ctx, tt.object)).To(Succeed())

			w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
		})
	}
}

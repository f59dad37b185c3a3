// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// countingClient counts lists, and fails them while it is down.
type countingClient struct {
	client.Client
	lists int
	down  error
}

func (r *countingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.lists++
	if r.down != nil {
		return r.down
	}
	return r.Client.List(ctx, list, opts...)
}

func TestWorkloadClustersAreCheckedInfrequently(t *testing.T) {
	g := NewWithT(t)
	workload := &countingClient{Client: fake.NewFakeClient()}
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Client, error) { return workload, nil })
	cluster := &clusterv1.Cluster{}
	now := time.Now()

	_, known := drivers.In(t.Context(), cluster, now)
	g.Expect(known).To(BeTrue(), "nothing runs before the control plane")
	g.Expect(workload.lists).To(BeZero())

	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for range 5 {
		_, known = drivers.In(t.Context(), cluster, now.Add(driversAge-time.Second))
	}
	g.Expect(known).To(BeTrue())
	g.Expect(workload.lists).To(Equal(3), "one check is three lists")

	workload.down = context.DeadlineExceeded
	_, known = drivers.In(t.Context(), cluster, now.Add(3*driversAge))
	g.Expect(known).To(BeTrue(), "the last response is cached for a while")
	_, known = drivers.In(t.Context(), cluster, now.Add(driversAge+driversMemory))
	g.Expect(known).To(BeFalse())
	g.Expect(workload.lists).To(Equal(5))
}

func TestAnUnservedKindDoesNotCountAsRunning(t *testing.T) {
	g := NewWithT(t)
	workload := &countingClient{Client: fake.NewFakeClient(), down: &meta.NoKindMatchError{}}
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Client, error) { return workload, nil })
	cluster := &clusterv1.Cluster{}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)

	found, known := drivers.In(t.Context(), cluster, time.Now())

	g.Expect(known).To(BeTrue())
	g.Expect(found).To(BeEmpty())
}

func TestTheBundledCloudControllerManagerIsNeverALegacyDriver(t *testing.T) {
	g := NewWithT(t)
	ours := &appsv1.Deployment{}
	theirs := &appsv1.Deployment{}
	ours.Name = "ours"
	theirs.Name = "theirs"
	ours.Annotations = map[string]string{infrav1.CloudProviderOfAnnotation: "urn:vcloud:entity:a"}
	ours.Spec.Template.Spec.Containers = []corev1.Container{
		{Image: "mirror/cloud-provider-for-cloud-director@sha256:0123"},
	}
	theirs.Spec.Template.Spec.Containers = []corev1.Container{{Image: "mirror/cloud-provider-for-cloud-director:1.6.1"}}
	workload := fake.NewFakeClient(ours, theirs)
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Client, error) { return workload, nil })
	cluster := &clusterv1.Cluster{}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)

	found, known := drivers.In(t.Context(), cluster, time.Now())

	g.Expect(known).To(BeTrue())
	g.Expect(found).To(Equal([]string{"cloud-provider-for-cloud-director:1.6.1"}))
}

func TestAnUnresponsiveWorkloadClusterIsCheckedAgainSoon(t *testing.T) {
	g := NewWithT(t)
	workload := &countingClient{Client: fake.NewFakeClient(), down: context.DeadlineExceeded}
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Client, error) { return workload, nil })
	cluster := &clusterv1.Cluster{}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	now := time.Now()
	_, known := drivers.In(t.Context(), cluster, now)
	g.Expect(known).To(BeFalse())

	workload.down = nil
	_, known = drivers.In(t.Context(), cluster, now.Add(UnknownRetry))

	g.Expect(known).To(BeTrue(), "a machine waits for the response")
}

func TestImagesLimitedToOneVApp(t *testing.T) {
	const csi, ccm = "projects.registry.vmware.com/vmware-cloud-director/cloud-director-named-disk-csi-driver",
		"mirror:5000/x/cloud-provider-for-cloud-director"
	tests := []struct {
		name, image string
		want        bool
	}{
		{"VMware's last CSI driver", csi + ":1.6.0", true},
		{"an older version", csi + ":1.3.2", true},
		{"a build of that version", csi + ":1.6.1-beta.3", true},
		{"a later version", csi + ":1.7.0", false},
		{"a digest has no version", csi + "@sha256:0123", true},
		{"a branch has no version", csi + ":main", true},
		{"VMware's last cloud provider", ccm + ":1.6.1", true},
		{"a later version", ccm + ":v1.6.2", false},
		{"a later major version", ccm + ":v2", false},
		{"something else", "registry.k8s.io/sig-storage/csi-attacher:v4.0.0", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := boundToVApp(tt.image)
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

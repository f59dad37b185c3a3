// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/adoption"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
)

const (
	id      = "NO_RDE_11111111-2222-3333-4444-555555555555"
	otherID = "NO_RDE_99999999-2222-3333-4444-555555555555"
	vm1     = "urn:vcloud:vm:00000000-0000-0000-0000-000000000001"
	vm2     = "urn:vcloud:vm:00000000-0000-0000-0000-000000000002"
)

func object(kind, name, urn string) leaks.Object {
	return leaks.Object{Cluster: id, Kind: kind, Name: name, ID: urn, By: lb.WriterCAPVCD, Power: "POWERED_ON"}
}

// complete returns the VCD objects of a cluster with one machine.
func complete() []leaks.Object {
	return []leaks.Object{
		object(leaks.KindVApp, "prod", "vapp"),
		object(leaks.KindVM, "cp-0", vm1),
		object("virtual-service", "prod-"+id+"-tcp", "vs"),
		object("lb-pool", "prod-"+id+"-tcp", "pool"),
	}
}

func TestCompare(t *testing.T) {
	recorded := adoption.Machine{Name: "cp-0", VMName: "cp-0", VM: vm1}
	pending := adoption.Machine{Name: "cp-0", VMName: "cp-0"}
	off := object(leaks.KindVM, "cp-0", vm1)
	off.Power = "POWERED_OFF"
	foreign := object(leaks.KindVM, "cp-0", vm1)
	foreign.Cluster = otherID
	tests := []struct {
		name    string
		machine adoption.Machine
		objects []leaks.Object
		others  []adoption.Cluster
		want    map[string]adoption.State // by kind and name
	}{
		{
			name:    "a complete cluster is adopted",
			machine: recorded,
			objects: complete(),
			want:    map[string]adoption.State{},
		},
		{
			name:    "a VM that never ran is recreated",
			machine: pending,
			objects: append(complete()[:1:1], off, complete()[2], complete()[3]),
			want:    map[string]adoption.State{"vm cp-0": adoption.Recreate},
		},
		{
			name:    "a running, unrecorded VM is adopted by its name",
			machine: pending,
			objects: complete(),
			want:    map[string]adoption.State{},
		},
		{
			name:    "missing objects are created",
			machine: pending,
			want: map[string]adoption.State{
				"vapp prod":            adoption.Create,
				"vm cp-0":              adoption.Create,
				"virtual-service prod": adoption.Create,
				"lb-pool prod":         adoption.Create,
			},
		},
		{
			name:    "a recorded VM of another cluster is unverified",
			machine: recorded,
			objects: append(complete()[:1:1], foreign, complete()[2], complete()[3]),
			want:    map[string]adoption.State{"vm cp-0": adoption.Doubt},
		},
		{
			name:    "a recorded VM with another name is unverified",
			machine: adoption.Machine{Name: "cp-1", VMName: "cp-1", VM: vm1},
			objects: complete(),
			want:    map[string]adoption.State{"vm cp-0": adoption.Doubt},
		},
		{
			name:    "a recorded VM whose name cannot be derived is unverified",
			machine: adoption.Machine{Name: "cp-0", VM: vm1},
			objects: complete(),
			want:    map[string]adoption.State{"vm cp-0": adoption.Doubt},
		},
		{
			name:    "a renamed vApp is unverified",
			machine: recorded,
			objects: append(complete()[1:], object(leaks.KindVApp, "renamed", "vapp")),
			want:    map[string]adoption.State{"vapp renamed": adoption.Doubt},
		},
		{
			name:    "a VM without a machine is unverified",
			machine: recorded,
			objects: append(complete(), object(leaks.KindVM, "stray", vm2)),
			want:    map[string]adoption.State{"vm stray": adoption.Doubt},
		},
		{
			name:    "a copy makes the cluster unverified",
			machine: recorded,
			objects: complete(),
			others:  []adoption.Cluster{{Namespace: "copies", Name: "prod", ID: id}},
			want:    map[string]adoption.State{"VCDCluster prod": adoption.Doubt},
		},
		{
			name:    "a copy with the same name in another management cluster makes the cluster unverified",
			machine: recorded,
			objects: complete(),
			others:  []adoption.Cluster{{Management: "restored", Namespace: "team", Name: "prod", ID: id}},
			want:    map[string]adoption.State{"VCDCluster prod": adoption.Doubt},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := adoption.Cluster{Namespace: "team", Name: "prod", ID: id, Machines: []adoption.Machine{tt.machine}}

			got := map[string]adoption.State{}
			for _, row := range adoption.Compare(c, append(tt.others, c), tt.objects) {
				if row.State != adoption.Adopt {
					got[row.Kind+" "+row.Name] = row.State
				}
			}

			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

func TestRead(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1beta2.AddToScheme(scheme)).To(Succeed())
	theirs := &v1beta2.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod"}}
	theirs.Spec.Site = "https://vcd.example.com"
	theirs.Spec.Org = "acme"
	theirs.Spec.RDEID = id
	theirs.Spec.LoadBalancerConfigSpec.UseOneArm = true
	theirs.Status.Ready = true
	ours := &v1beta2.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "new"}}
	ours.Status.InfraID = "11111111-2222-3333-4444-555555555555"
	machine := &v1beta2.VCDMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace:       "team",
		Name:            "prod-infra-0",
		Labels:          map[string]string{"cluster.x-k8s.io/cluster-name": "prod"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Machine", Name: "prod-0"}},
	}}
	machine.Spec.ProviderID = ptr.To("vmware-cloud-director://" + vm1)
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(theirs, ours, machine).Build()

	clusters, err := adoption.Read(t.Context(), reader, "mgmt-1")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clusters).To(Equal([]adoption.Cluster{{
		Management: "mgmt-1",
		Namespace:  "team",
		Name:       "prod",
		Site:       "https://vcd.example.com",
		Org:        "acme",
		ID:         id,
		OneArm:     true,
		WasReady:   true,
		Machines:   []adoption.Machine{{Name: "prod-infra-0", VMName: "prod-0", VM: vm1}},
	}}))
}

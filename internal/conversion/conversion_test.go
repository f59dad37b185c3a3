// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta1"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const (
	entity     = "urn:vcloud:entity:vmware:capvcdCluster:11111111-1111-1111-1111-111111111111"
	noEntity   = "NO_RDE_22222222-2222-2222-2222-222222222222"
	vdcURN     = "urn:vcloud:vdc:33333333-3333-3333-3333-333333333333"
	providerID = "vmware-cloud-director://urn:vcloud:vm:44444444-4444-4444-4444-444444444444"
)

var transition = metav1.NewTime(time.Date(2024, 10, 8, 12, 0, 0, 0, time.UTC).Local())

// named returns the metadata of a stored object.
func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "uid-of-" + "x"}
}

// capvcdCluster returns a VCDCluster as stored by CAPVCD 1.3.2.
func capvcdCluster() *v1beta2.VCDCluster {
	c := &v1beta2.VCDCluster{ObjectMeta: named("demo")}
	c.Spec = v1beta2.VCDClusterSpec{
		ControlPlaneEndpoint: v1beta2.APIEndpoint{Host: "10.0.0.10", Port: 6443},
		Site:                 "https://vcd.example.com",
		Org:                  "acme",
		Ovdc:                 "acme-vdc",
		OvdcNetwork:          "nodes",
		UserCredentialsContext: v1beta2.UserCredentialsContext{
			SecretRef: &v1beta2.SecretReference{Name: "vcd", Namespace: "team-a"},
		},
		RDEID:                  entity,
		ParentUID:              "parent",
		ProxyConfigSpec:        v1beta2.ProxyConfig{HTTPProxy: "http://proxy", NoProxy: "10.0.0.0/8, .svc,.svc"},
		LoadBalancerConfigSpec: v1beta2.LoadBalancerConfig{UseOneArm: true, VipSubnet: "10.1.0.0/16"},
	}
	c.Status = v1beta2.VCDClusterStatus{
		Ready:               true,
		RDEVersionInUse:     "1.1.0",
		VAppMetadataUpdated: true,
		InfraID:             entity,
		Site:                "https://vcd.example.com",
		Conditions: []v1beta2.Condition{{
			Type:               "LoadBalancerAvailable",
			Status:             "False",
			Severity:           "Info",
			Reason:             "Creating",
			LastTransitionTime: transition,
		}},
		VCDResourceMap: v1beta2.VCDResourceMap{
			Ovdcs: []v1beta2.VCDResource{{Type: "ovdc", ID: vdcURN, Name: "acme-vdc"}},
		},
	}
	return c
}

func TestACAPVCDClusterIsPreserved(t *testing.T) {
	tr := newTraveller(t, VCDCluster())
	old := capvcdCluster()
	tr.name(old)

	hub, _ := tr.convert(old, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

	tr.Expect(hub.Spec).To(Equal(infrav1.VCDClusterSpec{
		InfraID:              entity,
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.10", Port: 6443},
		Site:                 "https://vcd.example.com",
		Org:                  "acme",
		OVDC:                 "acme-vdc",
		OVDCNetwork:          "nodes",
		IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "vcd"},
		ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
			Type: infrav1.EndpointEdgeGateway,
			EdgeGateway: &infrav1.EdgeGatewayEndpoint{
				ArmMode:       infrav1.ArmModeOneArm,
				HealthMonitor: infrav1.EndpointMonitorTCP,
			},
		},
		VApp:               infrav1.VAppSpec{Layout: infrav1.VAppPerCluster, Name: "demo"},
		CloudProvider:      infrav1.CloudProviderSpec{Mode: infrav1.CloudProviderExternal},
		OrphanedDiskPolicy: infrav1.OrphanedDiskRetain,
		Proxy: infrav1.ProxySpec{
			HTTPProxy: "http://proxy",
			NoProxy:   []string{"10.0.0.0/8", ".svc"},
			Site:      infrav1.SiteDirect,
			Pods:      infrav1.PodProxyNone,
		},
		RDE: infrav1.RDESpec{Mode: infrav1.RDEProject, ParentUID: "parent"},
		CAPVCDCredentials: &infrav1.CAPVCDCredentials{
			SecretRef: &infrav1.CAPVCDSecretReference{Name: "vcd", Namespace: "team-a"},
		},
	}))
	tr.Expect(hub.Status).To(Equal(infrav1.VCDClusterStatus{
		Initialization: infrav1.InitializationStatus{Provisioned: ptr.To(true)},
		OVDC:           &infrav1.ResourceReference{Name: "acme-vdc", ID: vdcURN},
		Conditions: []metav1.Condition{{
			Type:               infrav1.EndpointReadyCondition,
			Status:             metav1.ConditionFalse,
			Reason:             "Creating",
			LastTransitionTime: transition,
		}},
	}))
}

func TestACAPVCDMachineIsPreserved(t *testing.T) {
	tr := newTraveller(t, VCDMachine())
	old := &v1beta2.VCDMachine{ObjectMeta: named("demo-1")}
	old.Spec = v1beta2.VCDMachineSpec{
		ProviderID:        ptr.To(providerID),
		Catalog:           "kubernetes",
		Template:          "ubuntu",
		DiskSize:          resource.MustParse("40Gi"),
		Bootstrapped:      true,
		ExtraOvdcNetworks: []string{"storage"},
	}
	old.Status.Ready = true
	old.Status.ProviderID = ptr.To(providerID)
	old.Status.Addresses = []v1beta2.MachineAddress{{Type: "InternalIP", Address: "10.0.0.11"}}
	tr.name(old)

	hub, _ := tr.convert(old, &infrav1.VCDMachine{}).(*infrav1.VCDMachine)

	tr.Expect(hub.Spec).To(Equal(infrav1.VCDMachineSpec{
		ProviderID: providerID,
		Catalog:    "kubernetes",
		Template:   "ubuntu",
		DiskSize:   ptr.To(resource.MustParse("40Gi")),
		Networks: []infrav1.NetworkSpec{
			{AddressSource: infrav1.AddressStaticPool, Adapter: infrav1.AdapterVMXNET3},
			{Name: "storage", AddressSource: infrav1.AddressStaticPool, Adapter: infrav1.AdapterVMXNET3},
		},
		PowerOffPolicy:         infrav1.PowerOffReport,
		PowerOffMode:           infrav1.PowerOffTrySoft,
		ShutdownTimeoutSeconds: ptr.To[int32](60),
		AntiAffinity:           infrav1.AntiAffinityNone,
	}))
	tr.Expect(hub.Status).To(Equal(infrav1.VCDMachineStatus{
		Initialization: infrav1.InitializationStatus{Provisioned: ptr.To(true)},
		Addresses:      []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.11"}},
	}))
}

func TestClusterIDIsFound(t *testing.T) {
	tests := []struct {
		name                 string
		rdeID, infraID       string
		wantInfraID, wantRDE string
		wantMode             infrav1.RDEMode
	}{
		{
			name:        "of a cluster with an entity",
			rdeID:       entity,
			infraID:     entity,
			wantInfraID: entity,
			wantMode:    infrav1.RDEProject,
		},
		{name: "of a moved cluster", rdeID: noEntity, wantInfraID: noEntity},
		{name: "of a cluster without an entity", infraID: noEntity, wantInfraID: noEntity},
		{name: "of a new cluster", wantInfraID: ""},
		{
			name:        "in addition to another entity",
			rdeID:       entity,
			infraID:     noEntity,
			wantInfraID: noEntity,
			wantRDE:     entity,
			wantMode:    infrav1.RDEProject,
		},
		{name: "is omitted if empty", infraID: "something", wantInfraID: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			old := &v1beta3.VCDCluster{}
			old.Spec.RDEID = tt.rdeID
			old.Status.InfraID = tt.infraID
			hub := &infrav1.VCDCluster{}

			clusterToHub(old, hub)

			g.Expect(hub.Spec.InfraID).To(Equal(tt.wantInfraID))
			g.Expect(hub.Spec.RDE.ID).To(Equal(tt.wantRDE))
			g.Expect(hub.Spec.RDE.Mode).To(Equal(cmp.Or(tt.wantMode, infrav1.RDENone)))
		})
	}
}

// ourCluster returns a VCDCluster with fields that CAPVCD does not have.
func ourCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{ObjectMeta: named("ours")}
	c.Spec = infrav1.VCDClusterSpec{
		InfraID:              "55555555-5555-5555-5555-555555555555",
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.10", Port: 6443},
		Site:                 "https://vcd.example.com",
		Org:                  "acme",
		OVDC:                 "acme-vdc",
		OVDCNetwork:          "nodes",
		IdentityRef:          infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
		ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
			Type:    infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{Interface: "eth1"},
		},
		CloudProvider: infrav1.CloudProviderSpec{Mode: infrav1.CloudProviderManaged},
		Proxy:         infrav1.ProxySpec{HTTPProxy: "http://proxy", NoProxy: []string{"a"}, Pods: infrav1.PodProxyInject},
		LoadBalancer: infrav1.LoadBalancerSpec{
			ArmMode: infrav1.ArmModeOneArm,
			OneArm: infrav1.OneArmSpec{
				InternalRange: infrav1.AddressRange{StartIP: "192.168.1.1", EndIP: "192.168.1.9"},
			},
			IPSpace: "public",
		},
	}
	return c
}

func TestEditsInACAPVCDVersionTakePrecedence(t *testing.T) {
	tests := []struct {
		name string
		edit func(old *v1beta2.VCDCluster)
		want func(hub *infrav1.VCDCluster)
	}{
		{
			name: "nothing changes",
			edit: func(*v1beta2.VCDCluster) {},
			want: func(*infrav1.VCDCluster) {},
		},
		{
			name: "a name changes, and fields unknown to CAPVCD are kept",
			edit: func(old *v1beta2.VCDCluster) { old.Spec.Ovdc = "other" },
			want: func(hub *infrav1.VCDCluster) { hub.Spec.OVDC = "other" },
		},
		{
			name: "one of several fields in a struct changes",
			edit: func(old *v1beta2.VCDCluster) { old.Spec.ProxyConfigSpec.NoProxy = "a,b" },
			want: func(hub *infrav1.VCDCluster) { hub.Spec.Proxy.NoProxy = []string{"a", "b"} },
		},
		{
			name: "a struct is removed with all its fields",
			edit: func(old *v1beta2.VCDCluster) { old.Spec.LoadBalancerConfigSpec.UseOneArm = false },
			want: func(hub *infrav1.VCDCluster) {
				hub.Spec.LoadBalancer.ArmMode = ""
				hub.Spec.LoadBalancer.OneArm = infrav1.OneArmSpec{}
			},
		},
		{
			name: "an empty field is set",
			edit: func(old *v1beta2.VCDCluster) { old.Spec.LoadBalancerConfigSpec.VipSubnet = "10.1.0.0/16" },
			want: func(hub *infrav1.VCDCluster) { hub.Spec.LoadBalancer.VIPSubnet = "10.1.0.0/16" },
		},
		{
			name: "labels change",
			edit: func(old *v1beta2.VCDCluster) { old.Labels = map[string]string{"a": "b"} },
			want: func(hub *infrav1.VCDCluster) { hub.Labels = map[string]string{"a": "b"} },
		},
		{
			name: "the cluster ID is kept, regardless of the written value",
			edit: func(old *v1beta2.VCDCluster) { old.Status.InfraID = entity },
			want: func(*infrav1.VCDCluster) {},
		},
		{
			name: "credentials are added",
			edit: func(old *v1beta2.VCDCluster) { old.Spec.UserCredentialsContext.RefreshToken = "token" },
			want: func(hub *infrav1.VCDCluster) {
				hub.Spec.IdentityRef = infrav1.IdentityReference{
					Kind: infrav1.NamespacedIdentity,
					Name: "ours-capvcd-credentials",
				}
				hub.Spec.CAPVCDCredentials = &infrav1.CAPVCDCredentials{RefreshToken: "token"}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraveller(t, VCDCluster())
			before := ourCluster()
			tr.name(before)
			old, _ := tr.convert(before, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
			tt.edit(old)

			hub, _ := tr.convert(old, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

			want := before.DeepCopy()
			tt.want(want)
			tr.Expect(hub.Spec).To(Equal(want.Spec))
			tr.Expect(hub.Labels).To(Equal(want.Labels))
			again, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
			tr.Expect(again.Spec).To(Equal(old.Spec), "the reader gets the written value")
		})
	}
}

func TestEditingANICKeepsTheOthers(t *testing.T) {
	dhcp := func(name string) infrav1.NetworkSpec {
		return infrav1.NetworkSpec{
			Name:          name,
			AddressSource: infrav1.AddressDHCP,
			Adapter:       infrav1.AdapterE1000E,
			MTU:           9000,
		}
	}
	tests := []struct {
		name     string
		networks []infrav1.NetworkSpec
		edit     func(old *v1beta2.VCDMachine)
		want     []infrav1.NetworkSpec
	}{
		{
			name:     "a network is added to the first one",
			networks: []infrav1.NetworkSpec{dhcp("")},
			edit:     func(old *v1beta2.VCDMachine) { old.Spec.ExtraOvdcNetworks = []string{"b"} },
			want:     []infrav1.NetworkSpec{dhcp(""), nic("b")},
		},
		{
			name:     "a network is added to several",
			networks: []infrav1.NetworkSpec{dhcp("nodes"), dhcp("a")},
			edit:     func(old *v1beta2.VCDMachine) { old.Spec.ExtraOvdcNetworks = []string{"b", "a"} },
			want:     []infrav1.NetworkSpec{dhcp("nodes"), nic("b"), dhcp("a")},
		},
		{
			name:     "a network is removed",
			networks: []infrav1.NetworkSpec{dhcp("nodes"), dhcp("a"), dhcp("b")},
			edit:     func(old *v1beta2.VCDMachine) { old.Spec.ExtraOvdcNetworks = []string{"b"} },
			want:     []infrav1.NetworkSpec{dhcp("nodes"), dhcp("b")},
		},
		{
			name:     "another field changes",
			networks: []infrav1.NetworkSpec{dhcp("nodes"), dhcp("a")},
			edit:     func(old *v1beta2.VCDMachine) { old.Spec.VMNamingTemplate = "x" },
			want:     []infrav1.NetworkSpec{dhcp("nodes"), dhcp("a")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraveller(t, VCDMachine())
			before := &infrav1.VCDMachine{ObjectMeta: named("m")}
			before.Spec.Networks = tt.networks
			tr.name(before)
			old, _ := tr.convert(before, &v1beta2.VCDMachine{}).(*v1beta2.VCDMachine)
			tt.edit(old)

			hub, _ := tr.convert(old, &infrav1.VCDMachine{}).(*infrav1.VCDMachine)

			tr.Expect(hub.Spec.Networks).To(Equal(tt.want))
			tr.Expect(hub.Spec.VMNamingTemplate).To(Equal(old.Spec.VMNamingTemplate))
		})
	}
}

func TestAnOlderVersionPreservesFieldsItLacks(t *testing.T) {
	tr := newTraveller(t, VCDMachine())
	stored := &v1beta2.VCDMachine{ObjectMeta: named("m")}
	stored.Spec.ExtraOvdcNetworks = []string{"a"}
	stored.Spec.VMNamingTemplate = "x"
	stored.Spec.EnableNvidiaGPU = true
	tr.name(stored)
	hub := tr.convert(stored, &infrav1.VCDMachine{})
	older, _ := tr.convert(hub, &v1beta1.VCDMachine{}).(*v1beta1.VCDMachine)
	tr.Expect(older.Spec.EnableNvidiaGPU).To(BeTrue())

	older.Spec.Catalog = "other"
	older.Spec.EnableNvidiaGPU = false
	after, _ := tr.convert(tr.convert(older, &infrav1.VCDMachine{}), &v1beta2.VCDMachine{}).(*v1beta2.VCDMachine)

	want := stored.DeepCopy()
	want.Spec.Catalog = "other"
	want.Spec.EnableNvidiaGPU = false
	tr.Expect(after.Spec).To(Equal(want.Spec))
}

func TestMachineRecordsSurviveEditsInCAPVCDVersions(t *testing.T) {
	for _, old := range []object{&v1beta1.VCDMachine{}, &v1beta2.VCDMachine{}, &v1beta3.VCDMachine{}} {
		tr := newTraveller(t, VCDMachine())
		before := &infrav1.VCDMachine{ObjectMeta: named("m")}
		before.Spec.Template = "ubuntu"
		before.Spec.RecordedState = infrav1.VCDMachineRecordedState{
			InstanceID:          "uid",
			VMName:              "m",
			CreationRequestedAt: ptr.To(metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)),
			VM:                  &infrav1.RecordedVM{CPUs: 2, NICs: []infrav1.RecordedNIC{{MACAddress: "00:50:56:00:00:01"}}},
		}
		tr.name(before)

		shown := tr.convert(before, old)
		shown.SetLabels(map[string]string{"a": "b"})
		switch m := shown.(type) {
		case *v1beta1.VCDMachine:
			m.Spec.Template = "debian"
		case *v1beta2.VCDMachine:
			m.Spec.Template = "debian"
		case *v1beta3.VCDMachine:
			m.Spec.Template = "debian"
		}
		after, _ := tr.convert(shown, &infrav1.VCDMachine{}).(*infrav1.VCDMachine)

		tr.Expect(after.Spec.Template).To(Equal("debian"))
		tr.Expect(equality.Semantic.DeepEqual(after.Spec.RecordedState, before.Spec.RecordedState)).To(BeTrue(), "%T", old)
	}
}

func TestClusterRecordsSurviveEditsInCAPVCDVersions(t *testing.T) {
	tr := newTraveller(t, VCDCluster())
	stored := capvcdCluster()
	tr.name(stored)
	hub, _ := tr.convert(stored, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)
	recorded := infrav1.VCDClusterRecordedState{
		OVDCID:        vdcURN,
		VAppCount:     2,
		Zones:         map[string]infrav1.VCDClusterZoneRecord{"a": {OVDCID: vdcURN, VAppCount: 1}},
		LastGoneAt:    &transition,
		DetachedDisks: map[string]string{"33333333-3333-3333-3333-333333333333": "data"},
	}
	hub.Spec.RecordedState = recorded

	edited, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
	edited.Spec.ProxyConfigSpec.HTTPProxy = "http://other"
	after, _ := tr.convert(edited, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

	tr.Expect(after.Spec.Proxy.HTTPProxy).To(Equal("http://other"))
	tr.Expect(after.Spec.RecordedState).To(Equal(recorded))
}

func TestEditsInTheStorageVersionAppearInCAPVCDVersions(t *testing.T) {
	tr := newTraveller(t, VCDCluster())
	stored := capvcdCluster()
	tr.name(stored)
	hub, _ := tr.convert(stored, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

	hub.Spec.OVDCNetwork = "other"
	hub.Spec.Proxy.NoProxy = append(hub.Spec.Proxy.NoProxy, "b")
	hub.Status.Conditions[0].Status = metav1.ConditionTrue
	after, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)

	want := stored.DeepCopy()
	want.Spec.OvdcNetwork = "other"
	want.Spec.ProxyConfigSpec.NoProxy = "10.0.0.0/8,.svc,b"
	want.Status.Conditions[0].Status = "True"
	want.Status.Conditions[0].Severity = ""
	tr.Expect(after.Spec).To(Equal(want.Spec))
	tr.Expect(after.Status).To(Equal(want.Status))
}

func TestConversionDataOfOtherObjectsIsIgnored(t *testing.T) {
	tr := newTraveller(t, VCDCluster())
	before := ourCluster()
	tr.name(before)
	old, _ := tr.convert(before, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
	tests := []struct {
		name   string
		change func(old *v1beta2.VCDCluster)
	}{
		{name: "it was copied from another object", change: func(old *v1beta2.VCDCluster) { old.UID = "other" }},
		{name: "it is not JSON", change: func(old *v1beta2.VCDCluster) { old.Annotations[dataAnnotation] = "{" }},
		{
			name: "it has CAPVCD's own format",
			change: func(old *v1beta2.VCDCluster) {
				old.Annotations[dataAnnotation] = `{"spec":{"site":"https://other.example.com"},"status":{"ready":true}}`
			},
		},
		{
			name: "it has other types",
			change: func(old *v1beta2.VCDCluster) {
				old.Annotations[dataAnnotation] = `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta4",` +
					`"uid":"uid-of-x","spec":{"site":1}}`
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			copied := old.DeepCopy()
			tt.change(copied)

			hub, _ := tr.convert(copied, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

			g.Expect(hub.Spec.ControlPlaneLoadBalancer.Type).To(Equal(infrav1.EndpointEdgeGateway))
			g.Expect(hub.Spec.Site).To(Equal("https://vcd.example.com"))
			g.Expect(hub.Spec.InfraID).To(BeEmpty())
		})
	}
}

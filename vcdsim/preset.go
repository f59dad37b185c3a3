// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A preset is a named model, for the command line.
type preset struct {
	Name        string
	Description string // one sentence about its content
	Model       func() store.Model
}

// presets returns all presets, sorted by name.
func presets() []preset {
	return []preset{
		{
			"cloud-provider",
			"The tenant of k8s-tenant with all features for a cloud controller manager: dual stack, two service engine groups, certificates, preserved client addresses, and a second gateway with addresses of an IP Space.",
			CloudProvider,
		},
		{
			"full-clones",
			"The tenant of k8s-tenant with a second VDC, acme-vdc-full, without fast provisioning and with its own gateway and network.",
			FullClones,
		},
		{
			"ip-spaces",
			"The tenant of k8s-tenant, with floating IPs of an IP Space instead of a block of addresses on its gateway.",
			IPSpaces,
		},
		{
			"k8s-tenant",
			"An organization ready for Kubernetes clusters: networks with pools, policies, a node image, an edge gateway with a block of addresses and load balancing, and users with only the required rights. Its VDC uses fast provisioning.",
			K8sTenant,
		},
		{"large", "10,000 VMs in 100 vApps.", Large},
		{"minimal", "One organization with one VDC, an administrator and an empty catalog.", Minimal},
		{"two-gateways", "The tenant of k8s-tenant with a second edge gateway, and a network behind it.", TwoGateways},
		{
			"vdc-group",
			"The tenant of k8s-tenant with a second VDC and a data center group of both, which contains the gateway and the networks.",
			VDCGroupTenant,
		},
		{
			"zones",
			"The tenant of k8s-tenant with three VDCs, catalogs for the other VDCs, and a data center group of all VDCs, which contains the gateway and the networks.",
			ThreeZones,
		},
	}
}

// PresetNames returns the names of the presets, sorted.
func PresetNames() []string {
	var out []string
	for _, p := range presets() {
		out = append(out, p.Name)
	}
	return out
}

// PresetByName returns the model of a preset.
func PresetByName(name string) (store.Model, bool) {
	for _, p := range presets() {
		if p.Name == name {
			return p.Model(), true
		}
	}
	return store.Model{}, false
}

// Minimal returns a model of one organization with one VDC, an administrator and an empty catalog.
func Minimal() store.Model {
	return store.Model{
		Orgs: []store.Org{
			system(),
			{
				Name:     "acme",
				FullName: "Acme",
				Users: []store.User{{
					Name:     "admin",
					Password: "password",
					FullName: "Administrator",
					Role:     "Organization Administrator",
				}},
				VDCs: []store.VDC{{
					Name:            "acme-vdc",
					StorageProfiles: []store.StorageProfile{{Name: "standard", Default: true}},
					Policies:        []string{"System Default"},
				}},
				Catalogs: []store.Catalog{{Name: "images"}},
			},
		},
		Policies: []store.ComputePolicy{{Name: "System Default"}},
	}
}

// Roles of K8sTenant.
const (
	RoleClusterAuthor = "Kubernetes Cluster Author"
	RoleCloudProvider = "Kubernetes Cloud Provider"
)

// K8sTenant returns a model of an organization that is ready for Kubernetes clusters. It has the users capvcd, for
// Cluster API, and ccm, for cloud controller managers, each with an API token and a separate role. It has networks with
// pools, sizing and placement policies, two storage profiles, a catalog with a node image, and an edge gateway with a
// block of addresses and load balancing. Addresses .200 to .250 of network nodes are in no pool; they are for virtual
// IPs.
func K8sTenant() store.Model {
	return store.Model{
		Orgs: []store.Org{
			system(),
			{
				Name:     "acme",
				FullName: "Acme Corporation",
				Users: []store.User{
					{Name: "admin", Password: "password", FullName: "Administrator", Role: "Organization Administrator"},
					{
						Name:      "capvcd",
						Password:  "password",
						FullName:  "Cluster API",
						Role:      RoleClusterAuthor,
						APITokens: []string{"capvcd-api-token"},
					},
					{
						Name:      "ccm",
						Password:  "password",
						FullName:  "Cloud controller manager",
						Role:      RoleCloudProvider,
						APITokens: []string{"ccm-api-token"},
					},
				},
				Roles: []store.Role{
					{Name: RoleClusterAuthor, Description: "Makes Kubernetes clusters", Rights: access.RightsOfClusterAuthor()},
					{
						Name:        RoleCloudProvider,
						Description: "Serves a Kubernetes cluster from inside",
						Rights:      access.RightsOfCloudProvider(),
					},
				},
				Bundles: []store.RightsBundle{{
					Name:        "Kubernetes Clusters",
					Description: "What a provider publishes for Kubernetes clusters beside the default rights",
					Rights:      access.KubernetesBundle(),
				}},
				VDCs:     []store.VDC{k8sVDC()},
				Catalogs: []store.Catalog{k8sCatalog()},
			},
		},
		Policies: []store.ComputePolicy{
			{Name: "System Default", Description: "No limits"},
			{Name: "small", Description: "2 CPUs, 4 GiB", CPUs: 2, MemoryMiB: 4096},
			{Name: "large", Description: "4 CPUs, 16 GiB", CPUs: 4, MemoryMiB: 16384},
			{Name: "rack-a", Description: "Hosts of rack A", Placement: true},
		},
		ExternalNetworks:    []store.ExternalNetwork{internet()},
		ServiceEngineGroups: []store.ServiceEngineGroup{{Name: "engines", MaxService: 200}},
	}
}

func system() store.Org {
	return store.Org{
		Name:     "System",
		FullName: "System",
		Users: []store.User{{
			Name:     "administrator",
			Password: "password",
			FullName: "System Administrator",
			Role:     "System Administrator",
		}},
	}
}

func k8sVDC() store.VDC {
	return store.VDC{
		Name:            "acme-vdc",
		Description:     "Kubernetes clusters of Acme",
		StorageProfiles: []store.StorageProfile{{Name: "standard", Default: true}, {Name: "fast"}},
		EdgeGateways:    []store.EdgeGateway{k8sGateway()},
		Policies:        []string{"System Default", "small", "large", "rack-a"},
		Networks: []store.Network{
			{
				Name:        "nodes",
				Description: "Kubernetes nodes",
				Type:        store.Routed,
				Gateway:     netip.MustParsePrefix("192.168.100.1/24"),
				DNS:         []netip.Addr{netip.MustParseAddr("192.168.100.1")},
				DNSSuffix:   "acme.example",
				StaticPool:  []store.Range{addresses("192.168.100.10", "192.168.100.99")},
				DHCPPool:    []store.Range{addresses("192.168.100.150", "192.168.100.199")},
			},
			{
				Name:        "storage",
				Description: "Storage traffic",
				Type:        store.Routed,
				Gateway:     netip.MustParsePrefix("10.20.0.1/24"),
				StaticPool:  []store.Range{addresses("10.20.0.10", "10.20.0.99")},
			},
		},
	}
}

func k8sCatalog() store.Catalog {
	return store.Catalog{
		Name:        "kubernetes",
		Description: "Node images",
		Templates: []store.Template{
			{
				Name:              "ubuntu-2404-kube-v1.36.3",
				Description:       "Ubuntu 24.04 with Kubernetes 1.36.3",
				KubernetesVersion: "v1.36.3",
				VMs: []store.TemplateVM{{
					Name:      "ubuntu-2404-kube-v1.36.3",
					OS:        "ubuntu64Guest",
					CPUs:      2,
					MemoryMiB: 2048,
					DisksMiB:  []int64{20480},
					NICs:      1,
				}},
			},
			{Name: "no-vm", Description: "A broken template"},
		},
	}
}

func addresses(from, to string) store.Range {
	return store.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
}

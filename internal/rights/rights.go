// SPDX-License-Identifier: Apache-2.0

// Package rights defines the VCD rights that the provider's user requires, and the functions that do not work without
// each. The page docs/security/permissions.md is generated from it, and vcdctl doctor checks the rights. It sends no
// requests.
package rights

import (
	"regexp"
	"slices"
	"strings"
)

// A Need is a condition under which a right is required.
type Need string

// Needs.
const (
	// Always applies to every cluster.
	Always Need = "always"
	// GrowDisks applies to disks larger than the template's, in a VDC with fast provisioning.
	GrowDisks Need = "expand disks"
	// Balancers applies to clusters on a routed network, unless they have no cloud controller manager.
	Balancers Need = "balancers"
	// NAT applies to one-arm mode.
	NAT Need = "one-arm"
	// Firewall applies to IP sets and source ranges of load balancers.
	Firewall Need = "firewall"
	// Certificates applies to load balancers with a certificate from a Secret.
	Certificates Need = "certificates"
	// Spaces applies to gateways with addresses from IP Spaces.
	Spaces Need = "IP Spaces"
	// AntiAffinity applies to rules that keep VMs on different hosts, or on the same host.
	AntiAffinity Need = "anti-affinity"
	// Entity applies to clusters with a runtime defined entity.
	Entity Need = "entity"
	// Sometimes applies to conditions that no check can detect.
	Sometimes Need = "sometimes"
)

// A Row is one row of the table.
type Row struct {
	Cell     string   // the first cell, in Markdown; empty: the rights, separated by commas
	Rights   []string // names in VCD's API
	Need     Need
	For      string // Markdown
	InAuthor string // whether the role vApp Author has it, in Markdown
	Without  string // Markdown
}

// Title returns the first cell of the row, in Markdown.
func (r Row) Title() string {
	if r.Cell != "" {
		return r.Cell
	}
	return "`" + strings.Join(r.Rights, "`, `") + "`"
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Plain returns a text without its Markdown.
func Plain(markdown string) string {
	return strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(markdown, "$1"))
}

// ExtraConfig is the right that is required to pass bootstrap data to nodes.
const ExtraConfig = "vApp: Allow All Extra Config"

// Consolidate is the right that is required to expand the disks of linked clones.
const Consolidate = "vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"

// Table returns all rows, in the order of the page.
func Table() []Row {
	return slices.Concat(objectRows(), machineRows(), diskRows(), userRows(), gatewayRows(), otherRows())
}

// objectRows returns the rights to find the objects that machines require, and to create VMs from a template.
func objectRows() []Row {
	const yes = "yes"
	return []Row{
		{
			Cell:     "no named right; the VDC must be shared with the user, which is the default",
			For:      "finding the VDC, its storage profiles and its VMs",
			InAuthor: yes,
			Without:  "`NetworkReady` is false: `VDCNotFound`",
		},
		{
			Rights:   []string{"Organization vDC Network: View Properties"},
			Need:     Always,
			InAuthor: yes,
			For:      "finding the network, its static pool and DNS",
			Without:  "`NetworkReady` is false: `NetworkNotFound`",
		},
		{
			Rights:   []string{"Organization vDC Compute Policy: View"},
			Need:     Always,
			InAuthor: yes,
			For:      "sizing and placement policies",
			Without:  "`PlacementReady` is false for machines that set one; others get the default of the VDC",
		},
		{
			Rights:   []string{"Catalog: View Private and Shared Catalogs", "vApp Template / Media: View"},
			Need:     Always,
			For:      "finding the template",
			InAuthor: yes,
			Without:  "`PlacementReady` is false: `CatalogNotFound`, `TemplateNotFound`",
		},
		{
			Rights:   []string{"vApp Template: Checkout"},
			Need:     Always,
			InAuthor: yes,
			For:      "creating VMs from it",
			Without:  "`VAppReady` or `VMCreated` is false",
		},
	}
}

// machineRows returns the rights to create, change and delete vApps and VMs.
func machineRows() []Row {
	const yes, no = "yes", "**no**"
	return []Row{
		{
			Rights:   []string{"vApp: Create / Reconfigure", "vApp: Delete", "vApp: Edit Properties"},
			Need:     Always,
			For:      "vApps and VMs, and their leases",
			InAuthor: yes,
			Without:  "no function works; without the last right, leases are only reported (`LeaseLimited`)",
		},
		{
			Rights:   []string{"vApp: Edit VM Properties", "vApp: Edit VM Network", "vApp: Edit VM Hard Disk"},
			Need:     Always,
			For:      "NICs, disk size, description",
			InAuthor: yes,
			Without:  "`BootstrapInjected` is false",
		},
		{
			Rights:   []string{"vApp: Edit VM CPU", "vApp: Edit VM Memory", "vApp: Edit VM Compute Policy"},
			Need:     Always,
			For:      "sizing policies",
			InAuthor: yes,
			Without:  "VMs keep the size of the template",
		},
		{
			Rights:   []string{"vApp: Power Operations"},
			Need:     Always,
			InAuthor: yes,
			For:      "power on, shut down, reset",
			Without:  "`PoweredOn` is false; running machines cannot be deleted",
		},
		{
			Cell:     "**`" + ExtraConfig + "`**, in the portal *Preserve All ExtraConfig Elements During OVF Import and Export* ?",
			Rights:   []string{ExtraConfig},
			Need:     Always,
			InAuthor: no,
			For:      "guest properties (`guestinfo.*`), which contain the bootstrap data of a node",
			Without:  "`BootstrapInjected` is false: no machine boots as a node; [there is no other way](../concepts/decisions.md#unmodified-bootstrap-data)",
		},
		{
			Rights:   []string{Consolidate},
			Need:     GrowDisks,
			InAuthor: no,
			For:      "`spec.diskSize` larger than the template's disk, in a VDC with [fast provisioning](../operate/drift.md#fast-provisioning) only",
			Without:  "`PlacementReady` is false before the VM is created; `VMInSync` is false for a running VM",
		},
	}
}

// diskRows returns the rights for independent disks.
func diskRows() []Row {
	const yes = "yes"
	return []Row{
		{
			Cell:     "`Organization vDC Named Disk: View Properties`, `vApp: Create / Reconfigure`",
			Rights:   []string{"Organization vDC Named Disk: View Properties"},
			Need:     Always,
			InAuthor: yes,
			For:      "detaching [independent disks of this user](../operate/delete-clusters.md#independent-disks) before a VM is deleted",
			Without:  "a machine with a disk attached cannot be deleted: `VMDeleted` is false",
		},
		{
			Rights:   []string{"Organization vDC Named Disk: Delete"},
			Need:     Sometimes,
			InAuthor: yes,
			For:      "deleting [independent disks of the cluster](../operate/delete-clusters.md#independent-disks), with `spec.orphanedDiskPolicy: Delete`",
			Without:  "`DisksDeleted` is false, and the deletion of the VCDCluster waits",
		},
	}
}

// userRows returns the rights for affinity and anti-affinity rules, and for API tokens.
func userRows() []Row {
	return []Row{
		{
			Rights:   []string{"Organization vDC: VM-VM Affinity Edit"},
			Need:     AntiAffinity,
			InAuthor: "yes",
			For:      "[anti-affinity](../operate/virtual-machines.md#anti-affinity) and [affinity](../operate/virtual-machines.md#affinity): the rules of `spec.antiAffinity` and `spec.affinity`, only for VMs that this user owns",
			Without:  "`AffinityRulesReady` is false, and machines of a group with `Required` are not powered on",
		},
		{
			Cell:     "`API Tokens: Manage`, called `User: Manage user's own API token` in VMware's CAPVCD pages ?",
			Need:     Sometimes,
			Rights:   []string{"API Tokens: Manage"},
			InAuthor: "no",
			For:      "creating an API token for the user",
			Without:  "use a user name and password",
		},
	}
}

// gatewayRows returns the rights to remove load balancers and their related objects.
func gatewayRows() []Row {
	const no = "no"
	return []Row{
		{
			Cell: "`Organization vDC Gateway: View`; `Configure Load Balancer` with its `View`",
			Need: Balancers,
			Rights: []string{
				"Organization vDC Gateway: View", "Organization vDC Gateway: View Load Balancer",
				"Organization vDC Gateway: Configure Load Balancer",
			},
			For:      "removing load balancers with their cluster, and verifying that none remains",
			InAuthor: no,
			Without:  "the deletion of a VCDCluster on a routed network waits, even without load balancers: `LoadBalancersDeleted` is False, `LoadBalancersNotDeleted`. Exceptions are `cloudProvider.mode: None` and a cloud controller manager that was never `Managed` with load balancers enabled, unless the endpoint is of type EdgeGateway. [Endpoints of type EdgeGateway](../networking/control-plane-endpoint.md#endpoint-on-an-edge-gateway) are not created: `EndpointReady` is False",
		},
		{
			Cell:     "`Configure NAT` with its `View`",
			Need:     NAT,
			Rights:   []string{"Organization vDC Gateway: View NAT", "Organization vDC Gateway: Configure NAT"},
			For:      "removing DNAT rules and port profiles of one-arm mode",
			InAuthor: no,
			Without:  "the same, if the cluster has or had a `oneArm` range",
		},
		{
			Cell:     "`Configure Firewall` with its `View`",
			Need:     Firewall,
			Rights:   []string{"Organization vDC Gateway: View Firewall", "Organization vDC Gateway: Configure Firewall"},
			For:      "removing IP sets and the firewall rules of `loadBalancerSourceRanges`",
			InAuthor: no,
			Without:  "the same, if virtual services or pools refer to them; unreferenced objects remain",
		},
		{
			Cell:     "`Certificate Library: View` and `Manage`",
			Need:     Certificates,
			InAuthor: no,
			Rights:   []string{"Certificate Library: View", "Certificate Library: Manage"},
			For:      "removing certificates that were imported from Secrets",
			Without:  "the same as for IP sets. A role requires only the rights that the [cloud controller manager](#permissions-of-the-cloud-controller-manager) has",
		},
		{
			Cell:     "`IP Spaces: Allocate` with `Private IP Spaces: View`",
			Need:     Spaces,
			Rights:   []string{"IP Spaces: Allocate", "Private IP Spaces: View"},
			InAuthor: no,
			For:      "releasing addresses of IP Spaces",
			Without:  "the same",
		},
	}
}

// otherRows returns the rights of functions that clusters do not depend on.
func otherRows() []Row {
	const no = "no"
	return []Row{
		{
			Rights:   []string{"vmware:capvcdCluster: Full Access"},
			Need:     Entity,
			InAuthor: no,
			For:      "[runtime defined entities](../operate/vcd-portal.md), with `spec.rde.mode: Project`",
			Without:  "`RDEReady` is false: `RDEUnavailable`; clusters do not depend on it",
		},
		{
			Rights:   []string{"Catalog: View Published Catalogs"},
			Need:     Sometimes,
			InAuthor: no,
			For:      "templates in catalogs that another organization shares",
			Without:  "only catalogs of the user's organization",
		},
		{
			Cell:     "viewing the user's own tasks (no named right)",
			InAuthor: "yes",
			For:      "polling all tasks with one query",
			Without:  "without the query, tasks are read one by one, which requires more requests",
		},
	}
}

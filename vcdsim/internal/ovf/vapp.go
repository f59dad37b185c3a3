// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// VAppNode returns the VApp document of a vApp.
func VAppNode(r *api.Request, v *store.VApp) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	n := r.Site.Entity("VApp", "vapp", v.ID, v.Name,
		A("ovfDescriptorUploaded", true), A("deployed", r.Cloud.Store.Deployed(v)),
		A("status", int(r.Cloud.Store.Status(v))))
	n.Add(vappLinks(r.Site, r.Cloud.Store, v))
	n.Add([]*xmltree.Node{
		T("Description", v.Description),
		api.TasksNode(r, v.ID),
		LeaseSection(r.Site, v, false),
		startupSection(r.Site, r.Cloud.Store, v),
		networkSection(r.Site, v),
		ProductSection(v.Properties),
		NetworkConfigSection(r.Site, r.Cloud.Store, v, false),
		T("DateCreated", v.Created),
		api.OwnerNode(r.Site, v.OwnerID, UserName(r.Cloud.Store, v)),
		T("autoNature", v.AutoNature),
		T("InMaintenanceMode", false),
	})
	vms := r.Cloud.Store.VMsOf(v.ID)
	if len(vms) == 0 {
		return n
	}
	children := xmltree.New("Children")
	for _, vm := range vms {
		children.Add(VMNode(r, vm, false))
	}
	n.Add(children)
	return n
}

// vappLinks returns links to the actions that a vApp offers in its current state.
func vappLinks(site wire.Site, st *store.Store, v *store.VApp) []*xmltree.Node {
	path := "/api/vApp/vapp-" + v.ID
	var out []*xmltree.Node
	add := func(rel, suffix, kind string) {
		t := ""
		if kind != "" {
			t = wire.Mime(kind)
		}
		out = append(out, site.Link(rel, path+suffix, t))
	}
	deployed := st.Deployed(v)
	switch st.Status(v) {
	case store.PoweredOn, store.Mixed:
		for _, a := range []string{"powerOff", "reboot", "reset", "shutdown", "suspend"} {
			add("power:"+a, "/power/action/"+a, "")
		}
	case store.PoweredOff, store.Suspended:
		add("power:powerOn", "/power/action/powerOn", "")
	case store.Resolved, store.Unresolved, store.FailedCreation:
	}
	add("deploy", "/action/deploy", "deployVAppParams")
	if deployed {
		add("undeploy", "/action/undeploy", "undeployVAppParams")
	}
	for _, n := range v.Networks {
		out = append(out, site.Link("down", "/api/network/"+n.ID, wire.Mime("vAppNetwork"), n.Name))
	}
	add("down", "/controlAccess/", "controlAccess")
	add("controlAccess", "/action/controlAccess", "controlAccess")
	add("recompose", "/action/recomposeVApp", "recomposeVAppParams")
	out = append(out, site.Link("up", "/api/vdc/"+v.VDCID, wire.Mime("vdc")))
	add("edit", "", "vapp")
	if !deployed {
		add("remove", "", "")
	}
	add("down", "/owner", "owner")
	add("down", "/metadata", "metadata")
	add("down", "/productSections/", "productSections")
	return out
}

// UserName returns the name of a vApp's owner.
func UserName(st *store.Store, v *store.VApp) string { return st.User(v.OrgID, v.OwnerID) }

// LeaseSection returns the LeaseSettingsSection element of a vApp. If root is true, the element is a document.
func LeaseSection(site wire.Site, v *store.VApp, root bool) *xmltree.Node {
	href := site.Href("vapp", v.ID) + "/leaseSettingsSection/"
	n := wire.Element("LeaseSettingsSection", root)
	n.Add(api.Section(href, "leaseSettingsSection"))
	n.Add([]*xmltree.Node{
		xmltree.T("ovf:Info", "Lease settings section"),
		xmltree.New("Link", xmltree.A("rel", "edit"), xmltree.A("href", href),
			xmltree.A("type", wire.Mime("leaseSettingsSection"))),
		xmltree.T("DeploymentLeaseInSeconds", int64(v.Lease.Runtime.Seconds())),
		xmltree.T("StorageLeaseInSeconds", int64(v.Lease.Storage.Seconds())),
	})
	if t := v.Lease.Undeploys(); !t.IsZero() {
		n.Add(xmltree.T("DeploymentLeaseExpiration", t))
	}
	if t := v.Lease.Deletes(); !t.IsZero() {
		n.Add(xmltree.T("StorageLeaseExpiration", t))
	}
	return n
}

func startupSection(site wire.Site, st *store.Store, v *store.VApp) *xmltree.Node {
	vms := st.VMsOf(v.ID)
	if len(vms) == 0 {
		return nil
	}
	href := site.Href("vapp", v.ID) + "/startupSection/"
	n := xmltree.New("ovf:StartupSection", xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value),
		xmltree.A(VcloudPrefix+"href", href),
		xmltree.A(VcloudPrefix+"type", wire.Mime("startupSection")), xmltree.T("ovf:Info", "VApp startup section"))
	for _, vm := range vms {
		n.Add(xmltree.New("ovf:Item", xmltree.A("ovf:id", vm.Name), xmltree.A("ovf:order", 0),
			xmltree.A("ovf:startAction", "powerOn"),
			xmltree.A("ovf:startDelay", 0), xmltree.A("ovf:stopAction", "powerOff"), xmltree.A("ovf:stopDelay", 0)))
	}
	return n
}

func networkSection(site wire.Site, v *store.VApp) *xmltree.Node {
	n := xmltree.New("ovf:NetworkSection", xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value),
		xmltree.A(VcloudPrefix+"href", site.Href("vapp", v.ID)+"/networkSection/"),
		xmltree.A(VcloudPrefix+"type", wire.Mime("networkSection")),
		xmltree.T("ovf:Info", "The list of logical networks"))
	for _, net := range v.Networks {
		n.Add(xmltree.New("ovf:Network", xmltree.A("ovf:name", net.Name), xmltree.T("ovf:Description", "")))
	}
	return n
}

// NetworkConfigSection returns the NetworkConfigSection element of a vApp. If root is true, the element is a document.
func NetworkConfigSection(site wire.Site, st *store.Store, v *store.VApp, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	href := site.Href("vapp", v.ID) + "/networkConfigSection/"
	n := wire.Element("NetworkConfigSection", root)
	n.Add(api.Section(href, "networkConfigSection"))
	n.Add([]*xmltree.Node{
		T("ovf:Info", "The configuration parameters for logical networks"),
		xmltree.New("Link", A("rel", "edit"), A("href", href), A("type", wire.Mime("networkConfigSection"))),
	})
	for _, net := range v.Networks {
		n.Add(xmltree.New("NetworkConfig", A("networkName", net.Name),
			site.Link("down", "/api/network/"+net.ID, wire.Mime("vAppNetwork")),
			T("Description", net.Description), VAppNetworkConfiguration(site, st, net),
			T("IsDeployed", st.Deployed(v))))
	}
	return n
}

// VAppNetworkConfiguration returns the Configuration element of a vApp's network.
func VAppNetworkConfiguration(site wire.Site, st *store.Store, net store.VAppNetwork) *xmltree.Node {
	n := xmltree.New("Configuration")
	_, _, parent := st.Network(net.ParentID)
	switch {
	case net.Gateway.IsValid():
		n.Add(IPScope(net.Gateway, net.DNS, net.DNSSuffix, net.Pool, false))
	case parent != nil:
		n.Add(IPScope(parent.Gateway, parent.DNS, parent.DNSSuffix, parent.StaticPool, true))
	}
	if parent != nil {
		n.Add(site.Ref("ParentNetwork", store.Entity{Kind: "network", ID: parent.ID, Name: parent.Name}))
	}
	n.Add([]*xmltree.Node{
		xmltree.T("FenceMode", net.FenceMode),
		xmltree.T("RetainNetInfoAcrossDeployments", net.Retain),
		featuresNode(net),
		xmltree.T("GuestVlanAllowed", net.GuestVLANs),
	})
	return n
}

// services are the services of vApp networks, in the order of VCD.
var services = []string{"DhcpService", "FirewallService", "NatService", "StaticRoutingService"}

// defaultServices are the services of a network that routes the traffic of a vApp to an org network, as they were recorded
// from a VCD.
const defaultServices = `<Features>
<FirewallService>
  <IsEnabled>true</IsEnabled>
  <DefaultAction>drop</DefaultAction>
  <LogDefaultAction>false</LogDefaultAction>
  <FirewallRule>
    <IsEnabled>true</IsEnabled>
    <MatchOnTranslate>false</MatchOnTranslate>
    <Description>Allow all outbound traffic</Description>
    <Policy>allow</Policy>
    <Protocols><Any>true</Any></Protocols>
    <Port>-1</Port>
    <DestinationPortRange>Any</DestinationPortRange>
    <DestinationIp>external</DestinationIp>
    <SourcePort>-1</SourcePort>
    <SourcePortRange>Any</SourcePortRange>
    <SourceIp>internal</SourceIp>
    <EnableLogging>false</EnableLogging>
  </FirewallRule>
</FirewallService>
<NatService>
  <IsEnabled>true</IsEnabled>
  <NatType>ipTranslation</NatType>
  <Policy>allowTrafficIn</Policy>
</NatService>
</Features>`

// featuresNode returns the Features element of a network as the client sent it. It adds the default services that the
// element lacks. Without services, it returns nil.
func featuresNode(n store.VAppNetwork) *xmltree.Node {
	out, _ := xmltree.Parse([]byte(n.Features)) // nil if the client sent none
	if n.FenceMode == "natRouted" && n.ParentID != "" {
		out = withDefaultServices(out)
	}
	if out != nil {
		slices.SortStableFunc(out.Children, func(a, b *xmltree.Node) int {
			return slices.Index(services, a.Name) - slices.Index(services, b.Name)
		})
	}
	return out
}

// withDefaultServices adds the default services that a Features element lacks. The element may be nil.
func withDefaultServices(features *xmltree.Node) *xmltree.Node {
	defaults, err := xmltree.Parse([]byte(defaultServices))
	if err != nil || features == nil {
		return defaults
	}
	for _, service := range defaults.Children {
		if features.At(service.Name) == nil {
			features.Add(service)
		}
	}
	return features
}

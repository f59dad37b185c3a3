// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// checkNetworkRemoval refuses to remove a network that a NIC uses, and to remove any network from a running vApp. Each
// rule applies only if the simulator assumes it.
func checkNetworkRemoval(st *store.Store, assume *cloud.Assumptions, v, after *store.VApp) error {
	for _, n := range v.Networks {
		if after.Network(n.Name) != nil {
			continue
		}
		if vm := st.UserOf(v, n.Name); vm != nil && assume.UsedNetworkStays {
			return store.BadRequest("The network %q cannot be removed: it is in use by VM %q.", n.Name, vm.Name)
		}
		if st.Running(v) && assume.RunningBlocksNetworkRemoval {
			return store.Refuse(http.StatusConflict, "CONFLICT",
				"The requested operation could not be executed on vApp %q. Stop the vApp and try again.", v.Name)
		}
	}
	return nil
}

// readNetworks reads a NetworkConfigSection. Networks that already exist keep their ID; their link or their name
// identifies them.
func readNetworks(st *store.Store, source *ids.Source, vdc *store.VDC, section *xmltree.Node,
	have []store.VAppNetwork,
) ([]store.VAppNetwork, error) {
	var out []store.VAppNetwork
	for _, c := range section.All("NetworkConfig") {
		name := c.Attr("networkName")
		if name == "" || name == "none" {
			continue
		}
		if slices.ContainsFunc(out, func(o store.VAppNetwork) bool { return o.Name == name }) {
			return nil, store.DuplicateName(name)
		}
		n, err := readNetwork(st, vdc, name, c)
		if err != nil {
			return nil, err
		}
		n.ID = vappNetworkID(source, c, have)
		out = append(out, n)
	}
	return out, nil
}

// readNetwork reads the description and the configuration of a network of a vApp.
func readNetwork(st *store.Store, vdc *store.VDC, name string, tree *xmltree.Node) (store.VAppNetwork, error) {
	n := store.VAppNetwork{
		Name:        name,
		Description: tree.Str("Description"),
		FenceMode:   tree.Str("Configuration", "FenceMode"),
		Retain:      tree.At("Configuration").Bool("RetainNetInfoAcrossDeployments"),
		GuestVLANs:  tree.At("Configuration").Bool("GuestVlanAllowed"),
	}
	return n, readConfiguration(st, vdc, tree.At("Configuration"), &n)
}

// vappNetworkID returns the ID of the existing network that a configuration refers to, or a new ID.
func vappNetworkID(source *ids.Source, c *xmltree.Node, have []store.VAppNetwork) string {
	for _, link := range c.All("Link") {
		id := store.Bare(link.Attr("href"))
		if slices.ContainsFunc(have, func(h store.VAppNetwork) bool { return h.ID == id }) {
			return id
		}
	}
	if i := slices.IndexFunc(have, func(h store.VAppNetwork) bool { return h.Name == c.Attr("networkName") }); i >= 0 {
		return have[i].ID
	}
	return source.Next("vappNetwork")
}

func readConfiguration(st *store.Store, vdc *store.VDC, c *xmltree.Node, n *store.VAppNetwork) error {
	if n.FenceMode == "" {
		return store.BadRequest("Bad request - the network configuration of %q has no FenceMode.", n.Name)
	}
	readServices(c.At("Features"), n)
	if parent := c.At("ParentNetwork"); parent != nil {
		id := store.Bare(parent.Attr("href"))
		org, in, net := st.Network(id)
		if net == nil || in.ID != vdc.ID && !org.Shares(net, vdc) {
			return store.Forbidden("ORG_NETWORK_VIEW", id)
		}
		n.ParentID = id
		scope := c.At("IpScopes", "IpScope")
		if n.FenceMode == "bridged" || scope == nil || scope.Bool("IsInherited") {
			return nil
		}
		return readScope(c, n)
	}
	if n.FenceMode == "bridged" {
		return store.BadRequest("The VCD entity network %q does not exist.", n.Name)
	}
	return readScope(c, n)
}

// readServices reads the services of a network. A bridged network has none.
func readServices(features *xmltree.Node, n *store.VAppNetwork) {
	if features == nil || n.FenceMode == "bridged" {
		return
	}
	n.Features = features.String()
	if dhcp := features.At("DhcpService"); dhcp != nil {
		d := &store.VAppDHCP{Enabled: dhcp.Bool("IsEnabled")}
		d.DefaultLease, _ = dhcp.Int("DefaultLeaseTime")
		d.MaxLease, _ = dhcp.Int("MaxLeaseTime")
		d.Range, _ = readRange(dhcp.At("IpRange"))
		n.DHCP = d
	}
}

// readScope reads the subnet of a network that exists only in the vApp.
func readScope(c *xmltree.Node, n *store.VAppNetwork) error {
	scope := c.At("IpScopes", "IpScope")
	if scope == nil {
		scope = c.At("IpScope")
	}
	gateway, err := netip.ParseAddr(scope.Str("Gateway"))
	if err != nil {
		return store.BadRequest("The gateway %q of network %q is invalid.", scope.Str("Gateway"), n.Name)
	}
	bits, err := prefixLength(scope, n.Name)
	if err != nil {
		return err
	}
	n.Gateway = netip.PrefixFrom(gateway, bits)
	n.DNSSuffix = scope.Str("DnsSuffix")
	for _, name := range []string{"Dns1", "Dns2"} {
		if a, err := netip.ParseAddr(scope.Str(name)); err == nil {
			n.DNS = append(n.DNS, a)
		}
	}
	for _, p := range scope.At("IpRanges").All("IpRange") {
		pool, ok := readRange(p)
		if !ok {
			return store.BadRequest("A range of network %q is invalid.", n.Name)
		}
		n.Pool = append(n.Pool, pool)
	}
	return nil
}

// prefixLength returns the prefix length of a subnet, which is either a number or a netmask.
func prefixLength(scope *xmltree.Node, network string) (int, error) {
	if length, ok := scope.Int("SubnetPrefixLength"); ok {
		return int(length), nil
	}
	mask, err := netip.ParseAddr(scope.Str("Netmask"))
	if err != nil {
		return 0, store.BadRequest("The netmask %q of network %q is invalid.", scope.Str("Netmask"), network)
	}
	bits := 0
	for _, b := range mask.AsSlice() {
		for ; b != 0; b <<= 1 {
			bits++
		}
	}
	return bits, nil
}

func readRange(n *xmltree.Node) (store.Range, bool) {
	from, err1 := netip.ParseAddr(n.Str("StartAddress"))
	to, err2 := netip.ParseAddr(n.Str("EndAddress"))
	return store.Range{From: from, To: to}, err1 == nil && err2 == nil
}

// vappNetworkInPath returns the vApp of the network in the path, and the index of the network. The caller may change the
// vApp, and no task uses it.
func vappNetworkInPath(r *api.Request) (*store.VApp, int, error) {
	id := store.Bare(r.Vars["id"])
	for _, v := range r.Cloud.Store.VApps {
		i := slices.IndexFunc(v.Networks, func(n store.VAppNetwork) bool { return n.ID == id })
		if i < 0 || !access.ViewerOf(r).Sees(v) {
			continue
		}
		if err := access.CheckVApp(r, v, "VAPP_VIEW", v.ID); err != nil {
			return nil, 0, err
		}
		return v, i, r.Cloud.Tasks.CheckIdle(v.ID)
	}
	return nil, 0, store.Forbidden("VAPP_NETWORK_VIEW", id)
}

// DeleteVAppNetwork removes a network from its vApp.
func DeleteVAppNetwork(r *api.Request) (*api.Response, error) {
	v, i, err := vappNetworkInPath(r)
	if err != nil {
		return nil, err
	}
	after := *v
	after.Networks = slices.Delete(slices.Clone(v.Networks), i, i+1)
	if err := checkNetworkRemoval(r.Cloud.Store, &r.Cloud.Assume, v, &after); err != nil {
		return nil, err
	}
	return replaceNetworks(r, v, after.Networks), nil
}

// PutVAppNetwork replaces the description and the configuration of a network of a vApp, with its services.
func PutVAppNetwork(r *api.Request) (*api.Response, error) {
	v, i, err := vappNetworkInPath(r)
	if err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	vdc, err := vdcs.VDCByID(r.Cloud.Store, v.VDCID)
	if err != nil {
		return nil, err
	}
	n := &v.Networks[i]
	if name := tree.Attr("name"); name != n.Name {
		return nil, store.BadRequest("The network %q of vApp %q cannot be renamed to %q.", n.Name, v.Name, name)
	}
	after := slices.Clone(v.Networks)
	if after[i], err = readNetwork(r.Cloud.Store, vdc, n.Name, tree); err != nil {
		return nil, err
	}
	after[i].ID = n.ID
	return replaceNetworks(r, v, after), nil
}

// replaceNetworks starts the task that replaces the networks of a vApp.
func replaceNetworks(r *api.Request, v *store.VApp, networks []store.VAppNetwork) *api.Response {
	w := store.Work{Op: cloud.OpNetworks, VApp: v.ID, Networks: networks, Replace: true}
	return r.Start(w, v.Entity(), []string{v.ID})
}

// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

const orgNetworkPath = "/cloudapi/1.0.0/orgVdcNetworks"

func orgNetworkRoutes(add api.AddRoute) {
	add("POST", orgNetworkPath, createOrgNetwork, cloud.LatencyWrite)
	add("PUT", orgNetworkPath+"/{id}", api.With2(idleNetwork, putOrgNetwork), cloud.LatencyWrite)
	add("DELETE", orgNetworkPath+"/{id}", api.With2(idleNetwork, deleteOrgNetwork), cloud.LatencyWrite)
	add("PUT", orgNetworkPath+"/{id}/dhcp", api.With2(idleNetwork, putDHCP), cloud.LatencyWrite)
	add("DELETE", orgNetworkPath+"/{id}/dhcp", api.With2(idleNetwork, deleteDHCP), cloud.LatencyWrite)
	add("GET", orgNetworkPath+"/{id}/segmentProfiles", getSegmentProfiles, cloud.LatencyCloudAPI)
	add("PUT", orgNetworkPath+"/{id}/segmentProfiles", api.With2(idleNetwork, putSegmentProfiles), cloud.LatencyWrite)
}

type orgNetworkBody struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Type        store.NetworkType    `json:"networkType"`
	OwnerRef    gateways.JSONRefBody `json:"ownerRef"`
	OrgVdc      gateways.JSONRefBody `json:"orgVdc"`
	Connection  *struct {
		Router gateways.JSONRefBody `json:"routerRef"`
	} `json:"connection"`
	Segment     string `json:"backingNetworkId"`
	BackingType string `json:"backingNetworkType"`
	Subnets     struct {
		Values []orgSubnetBody `json:"values"`
	} `json:"subnets"`
}

type orgSubnetBody struct {
	Gateway      string              `json:"gateway"`
	PrefixLength int                 `json:"prefixLength"`
	DNS1         string              `json:"dnsServer1"`
	DNS2         string              `json:"dnsServer2"`
	Suffix       string              `json:"dnsSuffix"`
	IPRanges     gateways.JSONRanges `json:"ipRanges"`
}

// networkFields are the fields of a network that are stored unchanged.
var networkFields = []string{
	"guestVlanTaggingAllowed", "enableDualSubnetNetwork", "routeAdvertised", "shared", "segmentProfileTemplateRef",
	"retainNicResources",
}

// readNetwork reads and checks a network. The network replaces old, which is nil for a new network.
func readNetwork(r *api.Request, old *store.Network) (*store.VDC, *store.Network, error) {
	var body orgNetworkBody
	if err := r.Document(&body); err != nil {
		return nil, nil, err
	}
	org, vdc, group, err := gateways.EdgeOwner(r.Session, r.Cloud.Store, gateways.Owner(body.OwnerRef, body.OrgVdc))
	if err != nil {
		return nil, nil, err
	}
	n := &store.Network{
		Name:        body.Name,
		Description: body.Description,
		Type:        body.Type,
		Group:       group,
		Fields:      gateways.Rest(r.Content, networkFields),
	}
	copyFixedFields(n, old)
	if n.Name == "" {
		return nil, nil, store.BadRequest("The field name must not be empty.")
	}
	if slices.ContainsFunc(vdc.Networks,
		func(x store.Network) bool { return x.ID != n.ID && x.Name == n.Name && x.Group == n.Group }) {
		return nil, nil, store.DuplicateName(n.Name)
	}
	if err := readConnection(r, org, n, body); err != nil {
		return nil, nil, err
	}
	if err := readOrgSubnets(n, body.Subnets.Values); err != nil {
		return nil, nil, err
	}
	return vdc, n, checkSubnet(r.Cloud, org, n, old)
}

// copyFixedFields copies the fields that an update cannot change from old, if it is not nil.
func copyFixedFields(n *store.Network, old *store.Network) {
	if old == nil {
		return
	}
	n.ID = old.ID
	n.Type = old.Type
	n.DHCPPool = old.DHCPPool
	n.DHCP = old.DHCP
	for _, f := range []string{
		"backingNetworkId", "backingNetworkType", "segmentProfiles",
		"segmentProfileTemplateRef",
	} {
		if n.Fields[f] == nil && old.Fields[f] != nil {
			n.Fields[f] = old.Fields[f]
		}
	}
}

// readConnection reads the connection of a network: a gateway, an imported segment, or none.
func readConnection(r *api.Request, org *store.Org, n *store.Network, body orgNetworkBody) error {
	switch n.Type {
	case store.Isolated:
		return nil
	case store.Opaque:
		return readImported(r.Cloud, n, body)
	case store.Routed:
	default:
		return store.BadRequest("The network type %q is invalid.", n.Type)
	}
	if body.Connection == nil {
		return store.BadRequest("A routed network must be connected to an edge gateway.")
	}
	var raw struct {
		Connection map[string]any `json:"connection"`
	}
	_ = json.Unmarshal(r.Content, &raw) // r.Document has already parsed it
	for _, f := range []string{"connectionTypeValue", "connectionType"} {
		if kind := store.Text(raw.Connection, f); kind != "" {
			n.Fields["connectionType"] = kind
			break
		}
	}
	owner, vdc, g, err := gateways.EdgeByID(r.Session, r.Cloud.Store, body.Connection.Router.ID)
	if err != nil {
		return err
	}
	if owner.ID != org.ID || vdc == nil {
		return store.Forbidden("GATEWAY_VIEW", body.Connection.Router.ID)
	}
	n.Edge = g.ID
	return r.Cloud.Tasks.CheckIdle(g.ID)
}

// Types of the backing of an imported network.
const (
	importedNSX = "NSXT_FIXED_SEGMENT"
	importedVC  = "DV_PORTGROUP"
)

// readImported reads the segment that backs a network, or the port group if the body specifies that backing type.
func readImported(s *cloud.Cloud, n *store.Network, body orgNetworkBody) error {
	if body.BackingType == importedVC {
		n.Fields["backingNetworkId"] = body.Segment
		n.Fields["backingNetworkType"] = importedVC
		if n.ID != "" {
			return nil
		}
		return vdcs.FreePortGroup(s, body.Segment)
	}
	for _, b := range gateways.ExternalBackings(s) {
		if b.Kind == store.BackingSegment && b.ID == body.Segment {
			if n.ID == "" && importedSegment(s, b.ID) {
				return store.BadRequest("The segment %q is already imported.", b.Name)
			}
			n.Fields["backingNetworkId"] = b.ID
			n.Fields["backingNetworkType"] = importedNSX
			return nil
		}
	}
	return store.BadRequest("The segment %q does not exist.", body.Segment)
}

// readOrgSubnets reads either one subnet, or an IPv4 and an IPv6 subnet.
func readOrgSubnets(n *store.Network, values []orgSubnetBody) error {
	if len(values) == 0 || len(values) > 2 {
		return store.BadRequest("A network has one subnet, or one for IPv4 and one for IPv6.")
	}
	for i, v := range values {
		prefix, pool, err := v.read()
		if err != nil {
			return err
		}
		dns, err := v.readDNS()
		if err != nil {
			return err
		}
		if i == 1 {
			n.Second = &store.SecondSubnet{Gateway: prefix, StaticPool: pool, DNS: dns, DNSSuffix: v.Suffix}
			continue
		}
		n.Gateway = prefix
		n.StaticPool = pool
		n.DNS = dns
		n.DNSSuffix = v.Suffix
	}
	return nil
}

// readDNS reads the addresses of the DNS servers. Without a first server, the second becomes the first.
func (v orgSubnetBody) readDNS() ([]netip.Addr, error) {
	var out []netip.Addr
	for _, text := range []string{v.DNS1, v.DNS2} {
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, store.BadRequest("The DNS server %q is invalid.", text)
		}
		out = append(out, a)
	}
	return out, nil
}

// read returns the gateway with the prefix length of the subnet, and the static pool.
func (v orgSubnetBody) read() (netip.Prefix, []store.Range, error) {
	gateway, err := netip.ParseAddr(v.Gateway)
	if err != nil || v.PrefixLength < 1 || v.PrefixLength >= gateway.BitLen() {
		return netip.Prefix{}, nil, store.BadRequest("The subnet %s/%d is invalid.", v.Gateway, v.PrefixLength)
	}
	prefix := netip.PrefixFrom(gateway, v.PrefixLength)
	pool, err := v.IPRanges.Ranges(prefix)
	if err == nil && gateways.InRanges(pool, gateway) {
		err = store.BadRequest("The static IP pool contains the gateway's address %s.", gateway)
	}
	return prefix, pool, err
}

// checkSubnet refuses a subnet that overlaps with another subnet behind the same gateway. It also refuses a change that
// excludes an address in use.
func checkSubnet(s *cloud.Cloud, org *store.Org, n, old *store.Network) error {
	for v := range org.VDCs {
		for _, x := range org.VDCs[v].Networks {
			if n.Type == store.Routed && x.Edge == n.Edge && x.ID != n.ID && x.Gateway.Masked().Overlaps(n.Gateway.Masked()) {
				return store.BadRequest("The subnet %s overlaps with the network %q.", n.Gateway.Masked(), x.Name)
			}
		}
	}
	if old == nil {
		return nil
	}
	for _, a := range machines.IPAMOf(s).AddressesIn(old.ID) {
		if !n.Gateway.Masked().Contains(a.Address) {
			return store.BadRequest("The IP address %s is in use by VM %q.", a.Address, a.VM.Name)
		}
	}
	return nil
}

func createOrgNetwork(r *api.Request) (*api.Response, error) {
	vdc, n, err := readNetwork(r, nil)
	if err != nil {
		return nil, err
	}
	n.ID = r.Cloud.IDs.Next("network")
	vdc.Networks = append(vdc.Networks, *n)
	return r.Start(store.Work{Op: "create orgVdcNetwork", Creates: true}, n.Entity(), n.Locks()), nil
}

// idleNetwork returns the network in the path, or an error if a task uses the network or its gateway.
func idleNetwork(r *api.Request) (*store.VDC, *store.Network, error) {
	_, vdc, n, err := ownNetwork(r)
	if err != nil {
		return nil, nil, err
	}
	return vdc, n, r.Cloud.Tasks.CheckIdle(n.Locks()...)
}

func putOrgNetwork(r *api.Request, from *store.VDC, old *store.Network) (*api.Response, error) {
	to, n, err := readNetwork(r, old)
	if err != nil {
		return nil, err
	}
	*old = *n
	if to != from && n.Group == "" {
		from.Networks = slices.DeleteFunc(from.Networks, func(x store.Network) bool { return x.ID == n.ID })
		to.Networks = append(to.Networks, *n)
	}
	return r.Start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

func deleteOrgNetwork(r *api.Request, _ *store.VDC, n *store.Network) (*api.Response, error) {
	for _, v := range store.Sorted(r.Cloud.Store.VApps) {
		if slices.ContainsFunc(v.Networks, func(x store.VAppNetwork) bool { return x.ParentID == n.ID }) {
			return nil, documents.InUse("network", n.Name, "vApp "+v.Name)
		}
	}
	for _, d := range r.Cloud.Store.Documents[firewalls.GroupPath] {
		if slices.Contains(documents.Members(d.Body, "members"), n.ID) {
			return nil, documents.InUse("network", n.Name, "firewall group "+store.Text(d.Body, "name"))
		}
	}
	return r.Start(store.Work{Op: "delete orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

func commitDeleteNetwork(s *cloud.Cloud, t *store.Task) error {
	_, vdc, n := s.Store.Network(t.Owner.ID)
	if n == nil {
		return cloud.Gone("network", t.Owner.ID)
	}
	id := n.ID
	vdc.Networks = slices.DeleteFunc(vdc.Networks, func(x store.Network) bool { return x.ID == id })
	s.Store.Forget(id)
	s.Store.Documents[bindingPath] = slices.DeleteFunc(slices.Clone(s.Store.Documents[bindingPath]),
		func(d *store.Object) bool { return d.Parent == id })
	return nil
}

// getSegmentProfiles returns the segment profiles of a network, or the template that it uses.
func getSegmentProfiles(r *api.Request) (*api.Response, error) {
	_, _, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"segmentProfileTemplate": nil,
		"qosProfile":             nil,
		"macDiscoveryProfile":    nil,
		"ipDiscoveryProfile":     nil,
		"segmentSecurityProfile": nil,
		"spoofGuardProfile":      nil,
	}
	if own, ok := n.Fields["segmentProfiles"].(map[string]any); ok {
		maps.Copy(out, own)
	} else if ref := n.Fields["segmentProfileTemplateRef"]; ref != nil {
		out["segmentProfileTemplate"] = map[string]any{"templateRef": ref, "source": "ORG_VDC_NETWORK"}
	}
	return api.JSON(out), nil
}

func putSegmentProfiles(r *api.Request, _ *store.VDC, n *store.Network) (*api.Response, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	n.Fields = maps.Clone(n.Fields)
	if n.Fields == nil {
		n.Fields = map[string]any{}
	}
	n.Fields["segmentProfiles"] = body
	return r.Start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

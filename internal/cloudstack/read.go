// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// Number is a number that CloudStack writes as a number or as text.
type Number int

// UnmarshalJSON parses both forms.
func (n *Number) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return nil
	}
	value, err := strconv.Atoi(text)
	*n = Number(value)
	return err
}

// A VM is a virtual machine.
type VM struct {
	ID, Name, DisplayName, InstanceName string

	State           string
	ZoneName        string
	ServiceOffering string `json:"serviceofferingname"`
	PublicIP        string
	NICs            []NIC `json:"nic"`
}

// A NIC is a network interface.
type NIC struct {
	ID, NetworkID, NetworkName string

	IPAddress, IP6Address string
	IsDefault             bool
	Secondary             []struct{ IPAddress string } `json:"secondaryip"`
}

// A Network is a guest network.
type Network struct {
	ID, Name, Type, VPCID, ACLID, ACLName, ZoneID string

	Services []struct{ Name string } `json:"service"`
}

// Has reports whether the network has a service, such as Lb.
func (n Network) Has(service string) bool {
	for _, s := range n.Services {
		if strings.EqualFold(s.Name, service) {
			return true
		}
	}
	return false
}

// A Tag is a key with a value on an object.
type Tag struct{ Key, Value string }

// An Address is a public address.
type Address struct {
	ID, IPAddress, State string

	NetworkID    string `json:"associatednetworkid"`
	VPCID        string
	IsSourceNAT  bool
	IsStaticNAT  bool
	IsSystem     bool
	ForVirtualNW bool `json:"forvirtualnetwork"`
	Tags         []Tag
}

// A Rule is a load balancer rule.
type Rule struct {
	ID, Name, Description, State string

	Address     string `json:"publicip"`
	AddressID   string `json:"publicipid"`
	PublicPort  Number
	PrivatePort Number
	Protocol    string
	Algorithm   string
	CIDRs       string `json:"cidrlist"`
	NetworkID   string
}

// A Firewall is a firewall rule of a public address.
type Firewall struct {
	ID, Protocol, State string

	AddressID string `json:"ipaddressid"`
	NetworkID string
	StartPort Number
	EndPort   Number
	CIDRs     string `json:"cidrlist"`
	Tags      []Tag
}

// A Policy is a stickiness policy of a load balancer rule. A rule has at most one.
type Policy struct {
	ID, Name, Description string

	Method string            `json:"methodname"`
	Params map[string]string `json:"params"`
}

// A VPN is a remote access VPN at a public address.
type VPN struct {
	ID string

	AddressID string `json:"publicipid"`
}

// A PortForward is a port forwarding rule of a public address.
type PortForward struct {
	ID string

	AddressID string `json:"ipaddressid"`
}

// An ACL is a rule of a network ACL list.
type ACL struct {
	ID, Protocol, State, Action, Reason string

	ListID      string `json:"aclid"`
	TrafficType string
	Number      Number
	StartPort   Number
	EndPort     Number
	CIDRs       string `json:"cidrlist"`
}

// An Event is an entry of CloudStack's event log.
type Event struct{ Type, State, Created, ResourceID string }

// VMs returns the visible virtual machines in the project or account. With an ID, it returns only that one. With
// [ErrChanged], it returns those that were listed, because machines of a large account may come and go all the time.
func (c *Client) VMs(ctx context.Context, id string) ([]VM, error) {
	return shown(ctx, c, "listVirtualMachines", "virtualmachine", Params{"details": "nics,servoff", "id": id},
		func(vm VM) string { return vm.ID })
}

// Networks returns the visible guest networks. With an ID, it returns only that one.
func (c *Client) Networks(ctx context.Context, id string) ([]Network, error) {
	return list[Network](ctx, c, "listNetworks", "network", Params{"id": id})
}

// Addresses returns the public addresses that are associated with a network, or those of its VPC.
func (c *Client) Addresses(ctx context.Context, n Network) ([]Address, error) {
	params := Params{"associatednetworkid": n.ID}
	if n.VPCID != "" {
		params = Params{"vpcid": n.VPCID}
	}
	return list[Address](ctx, c, "listPublicIpAddresses", "publicipaddress", params)
}

// AllAddresses returns the public addresses that are associated with any network or VPC.
func (c *Client) AllAddresses(ctx context.Context) ([]Address, error) {
	return list[Address](ctx, c, "listPublicIpAddresses", "publicipaddress", nil)
}

// FreeAddresses returns public addresses that may be associated with a network. The list may be incomplete, because
// other accounts may associate and release addresses all the time.
func (c *Client) FreeAddresses(ctx context.Context, n Network) ([]Address, error) {
	all, err := shown(ctx, c, "listPublicIpAddresses", "publicipaddress",
		Params{"zoneid": n.ZoneID, "allocatedonly": "false", "state": "Free", "forvirtualnetwork": "true"},
		func(a Address) string { return a.ID })
	if errors.Is(err, ErrChanged) {
		err = nil
	}
	return all, err
}

// Rules returns the load balancer rules of a network. With an empty network, it returns those of all networks.
func (c *Client) Rules(ctx context.Context, network string) ([]Rule, error) {
	return list[Rule](ctx, c, "listLoadBalancerRules", "loadbalancerrule", Params{"networkid": network})
}

// Members returns the IDs of the virtual machines that are members of a load balancer rule.
func (c *Client) Members(ctx context.Context, rule string) ([]string, error) {
	found, err := list[VM](ctx, c, "listLoadBalancerRuleInstances", "loadbalancerruleinstance", Params{"id": rule})
	var out []string
	for _, vm := range found {
		out = append(out, vm.ID)
	}
	return out, err
}

// Firewalls returns the firewall rules of a network. With an empty network, it returns those of all networks.
func (c *Client) Firewalls(ctx context.Context, network string) ([]Firewall, error) {
	return list[Firewall](ctx, c, "listFirewallRules", "firewallrule", Params{"networkid": network})
}

// PortForwards returns the port forwarding rules of a public address.
func (c *Client) PortForwards(ctx context.Context, address string) ([]PortForward, error) {
	return list[PortForward](ctx, c, "listPortForwardingRules", "portforwardingrule", Params{"ipaddressid": address})
}

// VPNs returns the remote access VPNs at a public address.
func (c *Client) VPNs(ctx context.Context, address string) ([]VPN, error) {
	return list[VPN](ctx, c, "listRemoteAccessVpns", "remoteaccessvpn", Params{"publicipid": address})
}

// policies are the stickiness policies of one load balancer rule.
type policies struct {
	Policies []Policy `json:"stickinesspolicy"`
}

// Policies returns the stickiness policies of a load balancer rule.
func (c *Client) Policies(ctx context.Context, rule string) ([]Policy, error) {
	found, err := list[policies](ctx, c, "listLBStickinessPolicies", "stickinesspolicies", Params{"lbruleid": rule})
	var out []Policy
	for _, of := range found {
		out = append(out, of.Policies...)
	}
	return out, err
}

// ACLs returns the rules of a network ACL list. With an empty list ID, it returns those of all lists.
func (c *Client) ACLs(ctx context.Context, aclList string) ([]ACL, error) {
	return list[ACL](ctx, c, "listNetworkACLs", "networkacl", Params{"aclid": aclList})
}

// Events returns the events of an object in CloudStack's log.
func (c *Client) Events(ctx context.Context, resource, resourceType string) ([]Event, error) {
	return list[Event](ctx, c, "listEvents", "event", Params{"resourceid": resource, "resourcetype": resourceType})
}

// Version returns the version of CloudStack, such as 4.20.1.0.
func (c *Client) Version(ctx context.Context) (string, error) {
	var answer struct {
		Capability struct{ CloudStackVersion string }
	}
	err := c.call(ctx, "listCapabilities", nil, &answer)
	return answer.Capability.CloudStackVersion, err
}

func number(n Number) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

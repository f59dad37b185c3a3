// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kinds of objects for tags.
const (
	TagAddress  = "PublicIpAddress"
	TagFirewall = "FirewallRule"
)

// Associate associates a public address with a network: the given address, or any if it is empty.
func (c *Client) Associate(ctx context.Context, n Network, address string) (Address, error) {
	params := Params{"projectid": c.opts.Project, "ipaddress": address, "networkid": n.ID}
	if n.VPCID != "" {
		params["vpcid"] = n.VPCID
		params["networkid"] = ""
	}
	var out Address
	err := c.run(ctx, "associateIpAddress", params, "ipaddress", &out)
	return out, err
}

// Disassociate releases a public address.
func (c *Client) Disassociate(ctx context.Context, id string) error {
	return c.run(ctx, "disassociateIpAddress", Params{"id": id}, "", nil)
}

// CreateRule creates a load balancer rule. It opens no firewall.
func (c *Client) CreateRule(ctx context.Context, r Rule) (Rule, error) {
	var out Rule
	err := c.run(ctx, "createLoadBalancerRule", Params{
		"name":         r.Name,
		"description":  r.Description,
		"publicipid":   r.AddressID,
		"networkid":    r.NetworkID,
		"publicport":   number(r.PublicPort),
		"privateport":  number(r.PrivatePort),
		"protocol":     r.Protocol,
		"algorithm":    r.Algorithm,
		"cidrlist":     r.CIDRs,
		"openfirewall": "false",
	}, "loadbalancer", &out)
	return out, err
}

// UpdateRule changes the fields of a load balancer rule that are set.
func (c *Client) UpdateRule(ctx context.Context, r Rule) error {
	return c.run(ctx, "updateLoadBalancerRule", Params{
		"id":          r.ID,
		"name":        r.Name,
		"description": r.Description,
		"protocol":    r.Protocol,
		"algorithm":   r.Algorithm,
		"cidrlist":    r.CIDRs,
	}, "", nil)
}

// DeleteRule deletes a load balancer rule.
func (c *Client) DeleteRule(ctx context.Context, id string) error {
	return c.run(ctx, "deleteLoadBalancerRule", Params{"id": id}, "", nil)
}

// CreatePolicy creates a stickiness policy of a load balancer rule. It replaces the existing one.
func (c *Client) CreatePolicy(ctx context.Context, rule string, p Policy) (Policy, error) {
	params := Params{"lbruleid": rule, "name": p.Name, "description": p.Description, "methodname": p.Method}
	for i, name := range slices.Sorted(maps.Keys(p.Params)) {
		at := "param[" + strconv.Itoa(i) + "]."
		params[at+"name"] = name
		params[at+"value"] = p.Params[name]
	}
	var out policies
	if err := c.run(ctx, "createLBStickinessPolicy", params, "stickinesspolicies", &out); err != nil {
		return Policy{}, err
	}
	if len(out.Policies) > 0 {
		p.ID = out.Policies[len(out.Policies)-1].ID
	}
	return p, nil
}

// DeletePolicy deletes a stickiness policy.
func (c *Client) DeletePolicy(ctx context.Context, id string) error {
	return c.run(ctx, "deleteLBStickinessPolicy", Params{"id": id}, "", nil)
}

// AddMembers adds virtual machines to a load balancer rule.
func (c *Client) AddMembers(ctx context.Context, rule string, vms []string) error {
	return c.run(ctx, "assignToLoadBalancerRule", Params{"id": rule, "virtualmachineids": strings.Join(vms, ",")}, "",
		nil)
}

// RemoveMembers removes virtual machines from a load balancer rule.
func (c *Client) RemoveMembers(ctx context.Context, rule string, vms []string) error {
	params := Params{"id": rule, "virtualmachineids": strings.Join(vms, ",")}
	return c.run(ctx, "removeFromLoadBalancerRule", params, "", nil)
}

// CreateFirewall creates a firewall rule.
func (c *Client) CreateFirewall(ctx context.Context, f Firewall) (Firewall, error) {
	var out Firewall
	err := c.run(ctx, "createFirewallRule", Params{
		"ipaddressid": f.AddressID,
		"protocol":    f.Protocol,
		"startport":   number(f.StartPort),
		"endport":     number(f.EndPort),
		"cidrlist":    f.CIDRs,
	}, "firewallrule", &out)
	return out, err
}

// DeleteFirewall deletes a firewall rule.
func (c *Client) DeleteFirewall(ctx context.Context, id string) error {
	return c.run(ctx, "deleteFirewallRule", Params{"id": id}, "", nil)
}

// CreateACL creates a rule of a network ACL list.
func (c *Client) CreateACL(ctx context.Context, a ACL) (ACL, error) {
	var out ACL
	err := c.run(ctx, "createNetworkACL", Params{
		"aclid":       a.ListID,
		"protocol":    a.Protocol,
		"startport":   number(a.StartPort),
		"endport":     number(a.EndPort),
		"cidrlist":    a.CIDRs,
		"traffictype": a.TrafficType,
		"action":      a.Action,
		"reason":      a.Reason,
	}, "networkacl", &out)
	return out, err
}

// DeleteACL deletes a rule of a network ACL list.
func (c *Client) DeleteACL(ctx context.Context, id string) error {
	return c.run(ctx, "deleteNetworkACL", Params{"id": id}, "", nil)
}

// Tag adds a tag to all objects of a kind, or to none if one of them is missing or already has a tag with that key.
func (c *Client) Tag(ctx context.Context, kind string, ids []string, tag Tag) error {
	return c.run(ctx, "createTags", Params{
		"resourcetype":  kind,
		"resourceids":   strings.Join(ids, ","),
		"tags[0].key":   tag.Key,
		"tags[0].value": tag.Value,
	}, "", nil)
}

// Untag removes a tag from an object.
func (c *Client) Untag(ctx context.Context, kind, id string, tag Tag) error {
	return c.run(ctx, "deleteTags", Params{
		"resourcetype":  kind,
		"resourceids":   id,
		"tags[0].key":   tag.Key,
		"tags[0].value": tag.Value,
	}, "", nil)
}

// SPDX-License-Identifier: Apache-2.0

package cloudstacksim

import (
	"slices"
	"strconv"
	"strings"
)

// writes are the commands that change state. Each returns the result of its job.
var writes = map[string]func(*call) (any, error){
	"associateIpAddress":         (*call).associate,
	"disassociateIpAddress":      (*call).disassociate,
	"createLoadBalancerRule":     (*call).createRule,
	"updateLoadBalancerRule":     (*call).updateRule,
	"deleteLoadBalancerRule":     (*call).deleteRule,
	"assignToLoadBalancerRule":   (*call).addMembers,
	"removeFromLoadBalancerRule": (*call).removeMembers,
	"createFirewallRule":         (*call).createFirewall,
	"deleteFirewallRule":         func(c *call) (any, error) { return c.remove(Firewalls) },
	"createNetworkACL":           (*call).createACL,
	"deleteNetworkACL":           func(c *call) (any, error) { return c.remove(ACLs) },
	"createLBStickinessPolicy":   (*call).createPolicy,
	"deleteLBStickinessPolicy":   func(c *call) (any, error) { return c.remove(Policies) },
	"createTags":                 (*call).createTags,
	"deleteTags":                 (*call).deleteTags,
}

var success = Object{"success": true}

// remove deletes an object by its ID.
func (c *call) remove(kind string) (any, error) {
	if c.sim.find(kind, c.get("id")) == nil {
		return nil, missing("id")
	}
	c.sim.objects[kind] = slices.DeleteFunc(c.sim.objects[kind], func(o Object) bool { return o["id"] == c.get("id") })
	return success, nil
}

func (s *Simulator) allocate(a, network Object) {
	a["state"] = "Allocated"
	a["associatednetworkid"] = network["id"]
	a["vpcid"] = network["vpcid"]
	if network["vpcid"] != nil { // the address belongs to the VPC until a tier uses it
		delete(a, "associatednetworkid")
	} else {
		delete(a, "vpcid")
	}
	if network["projectid"] != nil {
		a["projectid"] = network["projectid"]
	}
}

func (c *call) associate() (any, error) {
	network := c.sim.find(Networks, c.get("networkid"))
	if vpc := c.get("vpcid"); vpc != "" {
		network = Object{"vpcid": vpc}
	}
	if network == nil {
		return nil, missing("networkid")
	}
	wanted := c.get("ipaddress")
	if c.sim.quarantined[wanted] {
		return nil, &failure{codeInternal, 4250, "Failed to allocate public IP address [" + wanted + "] as it is in quarantine."}
	}
	for _, a := range c.sim.objects[Addresses] {
		free := a["state"] == "Free" && !c.sim.quarantined[text(a["ipaddress"])]
		if free && (wanted == "" || a["ipaddress"] == wanted) {
			c.sim.allocate(a, network)
			if project := c.get("projectid"); project != "" {
				a["projectid"] = project
			}
			return Object{"ipaddress": a}, nil
		}
	}
	return nil, &failure{codeCapacity, 4350, "Unable to find available public IP addresses"}
}

func (c *call) disassociate() (any, error) {
	a := c.sim.find(Addresses, c.get("id"))
	switch {
	case a == nil || a["state"] == "Free":
		return nil, missing("id")
	case a["issourcenat"] == true:
		return nil, invalid("IP address is used for source NAT purposes")
	}
	// CloudStack removes all rules of the address, including those of other users.
	of := func(field string) func(Object) bool {
		return func(o Object) bool { return o[field] == a["id"] }
	}
	c.sim.objects[Rules] = slices.DeleteFunc(c.sim.objects[Rules], of("publicipid"))
	c.sim.objects[Firewalls] = slices.DeleteFunc(c.sim.objects[Firewalls], of("ipaddressid"))
	c.sim.objects[PortForwards] = slices.DeleteFunc(c.sim.objects[PortForwards], of("ipaddressid"))
	c.sim.objects[VPNs] = slices.DeleteFunc(c.sim.objects[VPNs], of("publicipid"))
	a["state"] = "Free"
	delete(a, "associatednetworkid")
	delete(a, "vpcid")
	delete(a, "projectid")
	delete(c.sim.tags, tagKind(Addresses)+text(a["id"]))
	return success, nil
}

func (c *call) createRule() (any, error) {
	a := c.sim.find(Addresses, c.get("publicipid"))
	if a == nil || a["state"] == "Free" {
		return nil, missing("publicipid")
	}
	network := c.sim.find(Networks, c.get("networkid"))
	if network == nil {
		network = c.sim.find(Networks, text(a["associatednetworkid"]))
	}
	if network == nil {
		return nil, missing("networkid")
	}
	if err := fits(a, network); err != nil {
		return nil, err
	}
	if err := c.checkPorts(a); err != nil {
		return nil, err
	}
	protocol := c.get("protocol")
	a["associatednetworkid"] = network["id"]
	rule := c.sim.put(Rules, Object{
		"name":        c.get("name"),
		"description": c.get("description"),
		"publicip":    a["ipaddress"],
		"publicipid":  a["id"],
		"publicport":  c.get("publicport"),
		"privateport": c.get("privateport"),
		"protocol":    protocol,
		"zoneid":      ZoneID,
		"algorithm":   c.get("algorithm"),
		"cidrlist":    c.get("cidrlist"),
		"networkid":   network["id"],
		"state":       "Active",
	})
	if id := network["projectid"]; id != nil {
		rule["projectid"] = id
	}
	if c.get("openfirewall") != "false" && network["vpcid"] == nil {
		c.open(a, transport(protocol), c.get("publicport"), c.get("publicport"), "0.0.0.0/0")
	}
	return Object{"loadbalancer": rule}, nil
}

// fits returns an error if an address cannot have load balancer rules in a network.
func fits(a, network Object) error {
	switch {
	case !serves(network, "Lb"):
		return invalid("Network does not support service Lb")
	case a["isstaticnat"] == true:
		return &failure{codeConflict, 4375, "IP address is enabled for static NAT"}
	case a["associatednetworkid"] != nil && a["associatednetworkid"] != network["id"]:
		return invalid("IP address is already associated with another network")
	}
	return nil
}

// checkPorts returns an error if the ports of a new rule are invalid or in use.
func (c *call) checkPorts(a Object) error {
	protocol := c.get("protocol")
	if !isPort(c.get("publicport")) || !isPort(c.get("privateport")) ||
		!slices.Contains([]string{"tcp", "udp", "tcp-proxy"}, protocol) {
		return invalid("Invalid port or protocol")
	}
	for _, o := range c.sim.objects[Rules] {
		if o["publicipid"] == a["id"] && o["publicport"] == c.get("publicport") &&
			transport(text(o["protocol"])) == transport(protocol) {
			return &failure{codeConflict, 4375, "The range specified conflicts with rule " + text(o["id"])}
		}
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n < 65536
}

// transport returns the transport protocol of a rule's protocol.
func transport(protocol string) string {
	if protocol == "tcp-proxy" {
		return "tcp"
	}
	return protocol
}

func serves(network Object, service string) bool {
	all, _ := network["service"].([]Object)
	return slices.ContainsFunc(all, func(o Object) bool { return o["name"] == service })
}

func (c *call) updateRule() (any, error) {
	rule := c.sim.find(Rules, c.get("id"))
	if rule == nil {
		return nil, missing("id")
	}
	if c.form.Has("cidrlist") && !c.sim.atLeast(4, 22) {
		return nil, invalid("Unrecognized parameter cidrlist")
	}
	for _, field := range []string{"name", "description", "algorithm", "protocol", "cidrlist"} {
		if c.form.Has(field) {
			rule[field] = c.get(field)
		}
	}
	return Object{"loadbalancer": rule}, nil
}

// atLeast reports whether the simulated version is at least major.minor.
func (s *Simulator) atLeast(major, minor int) bool {
	parts := strings.Split(s.opts.Version, ".")
	have, _ := strconv.Atoi(parts[0])
	minors, _ := strconv.Atoi(parts[1])
	return have > major || have == major && minors >= minor
}

func (c *call) deleteRule() (any, error) {
	delete(c.sim.members, c.get("id"))
	c.sim.objects[Policies] = slices.DeleteFunc(c.sim.objects[Policies],
		func(o Object) bool { return o["lbruleid"] == c.get("id") })
	return c.remove(Rules)
}

// createPolicy creates a stickiness policy, which replaces the existing one of the rule.
func (c *call) createPolicy() (any, error) {
	rule := c.sim.find(Rules, c.get("lbruleid"))
	switch {
	case rule == nil:
		return nil, missing("lbruleid")
	case c.get("name") == "":
		return nil, invalid("missing parameter name")
	case !slices.Contains([]string{"LbCookie", "AppCookie", "SourceBased"}, c.get("methodname")):
		return nil, invalid("Failed to match Stickiness method name for LB rule")
	}
	params := Object{}
	for i := 0; c.get("param["+strconv.Itoa(i)+"].name") != ""; i++ {
		at := "param[" + strconv.Itoa(i) + "]."
		params[c.get(at+"name")] = c.get(at + "value")
	}
	if params["bad"] != nil {
		return nil, invalid("Validation failed: bad is not a parameter of the method")
	}
	c.sim.objects[Policies] = slices.DeleteFunc(c.sim.objects[Policies],
		func(o Object) bool { return o["lbruleid"] == rule["id"] })
	c.sim.put(Policies, Object{
		"lbruleid":    rule["id"],
		"name":        c.get("name"),
		"description": c.get("description"),
		"state":       "Active",
		"methodname":  c.get("methodname"),
		"params":      params,
	})
	return Object{"stickinesspolicies": c.policiesOf(rule)}, nil
}

func (c *call) addMembers() (any, error) {
	rule := c.sim.find(Rules, c.get("id"))
	if rule == nil {
		return nil, missing("id")
	}
	for _, vm := range strings.Split(c.get("virtualmachineids"), ",") {
		o := c.sim.find(VMs, vm)
		switch {
		case o == nil || o["state"] == "Destroyed":
			return nil, missing("virtualmachineids")
		case !inNetwork(o, text(rule["networkid"])):
			return nil, invalid("VM does not have a NIC in the network of the rule")
		case slices.Contains(c.sim.members[text(rule["id"])], vm):
			return nil, invalid("VM is already mapped to the load balancer")
		}
		c.sim.members[text(rule["id"])] = append(c.sim.members[text(rule["id"])], vm)
	}
	return success, nil
}

func inNetwork(vm Object, network string) bool {
	nics, _ := vm["nic"].([]Object)
	return slices.ContainsFunc(nics, func(o Object) bool { return o["networkid"] == network })
}

func (c *call) removeMembers() (any, error) {
	if c.sim.find(Rules, c.get("id")) == nil {
		return nil, missing("id")
	}
	gone := strings.Split(c.get("virtualmachineids"), ",")
	c.sim.members[c.get("id")] = slices.DeleteFunc(c.sim.members[c.get("id")],
		func(vm string) bool { return slices.Contains(gone, vm) })
	return success, nil
}

func (c *call) open(a Object, protocol, start, end, cidrs string) Object {
	first, _ := strconv.Atoi(start)
	last, _ := strconv.Atoi(end)
	f := Object{
		"ipaddressid": a["id"],
		"ipaddress":   a["ipaddress"],
		"networkid":   a["associatednetworkid"],
		"protocol":    protocol,
		"startport":   first,
		"endport":     last,
		"cidrlist":    cidrs,
		"state":       "Active",
	}
	if id := a["projectid"]; id != nil {
		f["projectid"] = id
	}
	return c.sim.put(Firewalls, f)
}

func (c *call) createFirewall() (any, error) {
	a := c.sim.find(Addresses, c.get("ipaddressid"))
	if a == nil || a["state"] == "Free" {
		return nil, missing("ipaddressid")
	}
	if network := c.sim.find(Networks, text(a["associatednetworkid"])); network == nil || !serves(network, "Firewall") {
		return nil, invalid("Network does not support service Firewall")
	}
	if !slices.Contains([]string{"tcp", "udp", "icmp"}, c.get("protocol")) {
		return nil, invalid("Protocol is not supported")
	}
	if c.opened(a) {
		return nil, &failure{codeConflict, 4375, "There is already a firewall rule with the same ports and CIDRs"}
	}
	return Object{"firewallrule": c.open(a, c.get("protocol"), c.get("startport"), c.get("endport"),
		c.get("cidrlist"))}, nil
}

// opened reports whether a firewall rule covers the port and a CIDR of a new rule.
func (c *call) opened(a Object) bool {
	first, _ := strconv.Atoi(c.get("startport"))
	last, _ := strconv.Atoi(c.get("endport"))
	return slices.ContainsFunc(c.sim.objects[Firewalls], func(f Object) bool {
		from, _ := strconv.Atoi(text(f["startport"]))
		to, _ := strconv.Atoi(text(f["endport"]))
		return f["ipaddressid"] == a["id"] && f["protocol"] == c.get("protocol") && from <= last && first <= to &&
			shares(text(f["cidrlist"]), c.get("cidrlist"))
	})
}

// shares reports whether two lists have a common element.
func shares(a, b string) bool {
	return slices.ContainsFunc(strings.Split(a, ","),
		func(x string) bool { return slices.Contains(strings.Split(b, ","), x) })
}

func (c *call) createACL() (any, error) {
	list := c.sim.find(ACLLists, c.get("aclid"))
	switch {
	case list == nil:
		return nil, missing("aclid")
	case strings.HasPrefix(text(list["name"]), "default_"):
		return nil, invalid("Default ACL cannot be modified")
	case !slices.Contains([]string{"tcp", "udp", "icmp", "all"}, c.get("protocol")):
		return nil, invalid("Invalid protocol")
	}
	acl := Object{
		"aclid":       list["id"],
		"protocol":    c.get("protocol"),
		"startport":   c.get("startport"),
		"endport":     c.get("endport"),
		"cidrlist":    c.get("cidrlist"),
		"traffictype": c.get("traffictype"),
		"action":      c.get("action"),
		"reason":      c.get("reason"),
		"state":       "Active",
		"number":      len(c.sim.objects[ACLs]) + 1,
	}
	if id := list["projectid"]; id != nil {
		acl["projectid"] = id
	}
	return Object{"networkacl": c.sim.put(ACLs, acl)}, nil
}

// tagsOf returns the tags in the parameters of a call.
func (c *call) tagsOf() []Object {
	var out []Object
	for i := 0; c.get("tags["+strconv.Itoa(i)+"].key") != ""; i++ {
		at := "tags[" + strconv.Itoa(i) + "]."
		out = append(out, Object{"key": c.get(at + "key"), "value": c.get(at + "value")})
	}
	return out
}

// createTags adds tags to all given resources, or to none of them.
func (c *call) createTags() (any, error) {
	var all []string
	for _, id := range strings.Split(c.get("resourceids"), ",") {
		at := strings.ToLower(c.get("resourcetype")) + id
		if !c.sim.taggable(strings.ToLower(c.get("resourcetype")), id) {
			return nil, missing("resourceids")
		}
		for _, tag := range c.tagsOf() {
			if slices.ContainsFunc(c.sim.tags[at], func(o Object) bool { return o["key"] == tag["key"] }) {
				return nil, &jobError{codeInternal, "tag " + text(tag["key"]) + " already on the resource"}
			}
		}
		all = append(all, at)
	}
	for _, at := range all {
		c.sim.tags[at] = append(c.sim.tags[at], c.tagsOf()...)
	}
	return success, nil
}

// taggable reports whether an object exists that a tag can be added to.
func (s *Simulator) taggable(resourceType, id string) bool {
	for kind := range s.objects {
		if tagKind(kind) == resourceType && s.find(kind, id) != nil {
			return true
		}
	}
	return false
}

func (c *call) deleteTags() (any, error) {
	wanted := c.tagsOf()
	deleted := 0
	for _, id := range strings.Split(c.get("resourceids"), ",") {
		at := strings.ToLower(c.get("resourcetype")) + id
		before := len(c.sim.tags[at])
		c.sim.tags[at] = slices.DeleteFunc(c.sim.tags[at], func(o Object) bool {
			return slices.ContainsFunc(wanted, func(tag Object) bool {
				return tag["key"] == o["key"] && (tag["value"] == "" || tag["value"] == o["value"])
			})
		})
		deleted += before - len(c.sim.tags[at])
	}
	if deleted == 0 {
		return nil, &jobError{codeInternal, "Failed to delete tags"}
	}
	return success, nil
}

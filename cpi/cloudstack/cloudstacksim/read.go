// SPDX-License-Identifier: Apache-2.0

package cloudstacksim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A listing is a command that lists objects.
type listing struct {
	kind string
	// equal maps parameters to fields that must equal their value. like maps parameters to fields that must contain it.
	equal, like map[string]string
	// filter selects objects further; nil selects all.
	filter func(*call, Object) bool
}

var lists = map[string]listing{
	"listVirtualMachines": {
		kind:  VMs,
		equal: fields("id", "zoneid", "state"),
		like:  map[string]string{"name": "name", "keyword": "name"},
		filter: func(c *call, o Object) bool {
			return o["state"] != "Expunging" && (o["state"] != "Destroyed" || c.sim.opts.ShowDestroyed)
		},
	},
	"listNetworks": {
		kind:  Networks,
		equal: fields("id", "zoneid", "vpcid"),
		like:  map[string]string{"keyword": "name"},
	},
	"listNetworkACLs": {kind: ACLs, equal: fields("id", "aclid", "protocol"), filter: byNetwork},
	"listEvents": {
		kind:  Events,
		equal: fields("id", "type", "resourceid"),
		like:  map[string]string{"keyword": "type"},
	},
	"listZones":               {kind: Zones, equal: fields("id", "name"), like: map[string]string{"keyword": "name"}},
	"listProjects":            {kind: Projects, equal: fields("id", "name")},
	"listPortForwardingRules": {kind: PortForwards, equal: fields("id", "ipaddressid", "networkid")},

	"listRemoteAccessVpns": {kind: VPNs, equal: fields("id", "publicipid", "networkid")},

	"listFirewallRules": {kind: Firewalls, equal: fields("id", "ipaddressid", "networkid")},
	"listLoadBalancerRules": {
		kind:  Rules,
		equal: fields("id", "publicipid", "networkid", "zoneid"),
		like:  map[string]string{"name": "name", "keyword": "name"},
		filter: func(c *call, o Object) bool {
			vm := c.get("virtualmachineid")
			return vm == "" || slices.Contains(c.sim.members[text(o["id"])], vm)
		},
	},
	"listNetworkACLLists": {
		kind:  ACLLists,
		equal: fields("id", "vpcid", "name"),
		filter: func(c *call, o Object) bool {
			n := c.sim.find(Networks, c.get("networkid"))
			return c.get("networkid") == "" || n != nil && n["aclid"] == o["id"]
		},
	},
	"listPublicIpAddresses": {
		kind:  Addresses,
		equal: fields("id", "zoneid", "vpcid", "ipaddress", "state", "associatednetworkid"),
		filter: func(c *call, o Object) bool {
			free := o["state"] == "Free"
			return !free || c.get("allocatedonly") == "false" && (!c.sim.opts.HideFree || c.user.admin)
		},
	},
}

// byNetwork selects the rules in the ACL list of a network.
func byNetwork(c *call, o Object) bool {
	n := c.sim.find(Networks, c.get("networkid"))
	return c.get("networkid") == "" || n != nil && n["aclid"] == o["aclid"]
}

func fields(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = name
	}
	return out
}

// list serves a page of a list.
func (c *call) list(l listing) (any, error) {
	if id := c.get("projectid"); id != "" && id != "-1" && c.sim.find(Projects, id) == nil {
		return nil, missing("projectid")
	}
	if id := c.get("id"); id != "" && c.sim.find(l.kind, id) == nil {
		return nil, missing("id")
	}
	var found []Object
	for _, o := range c.sim.objects[l.kind] {
		if c.scoped(l.kind, o) && c.matches(l, o) {
			found = append(found, c.sim.shown(l.kind, o, c.user.admin))
		}
	}
	return c.page(l.kind, found)
}

// scoped reports whether an object is in the requested project, or in the account if no project is requested.
func (c *call) scoped(kind string, o Object) bool {
	switch id := c.get("projectid"); {
	case kind == Zones, kind == Projects, kind == Addresses && o["state"] == "Free", id == "-1":
		return true
	default:
		return text(o["projectid"]) == id
	}
}

func (c *call) matches(l listing, o Object) bool {
	for param, field := range l.equal {
		if value := c.get(param); value != "" && !strings.EqualFold(text(o[field]), value) {
			return false
		}
	}
	for param, field := range l.like {
		value := strings.ToLower(c.get(param))
		if value != "" && !strings.Contains(strings.ToLower(text(o[field])), value) {
			return false
		}
	}
	return l.filter == nil || l.filter(c, o)
}

// shown returns an object as the API shows it to a user.
func (s *Simulator) shown(kind string, o Object, admin bool) Object {
	out := maps.Clone(o)
	if tags := s.tags[tagKind(kind)+text(o["id"])]; len(tags) > 0 {
		out["tags"] = slices.Clone(tags)
	}
	if kind == VMs && !admin {
		delete(out, "instancename")
		delete(out, "hostname")
	}
	return out
}

func (c *call) page(key string, found []Object) (any, error) {
	size := c.sim.opts.PageSize
	page := 1
	if (c.get("pagesize") == "") != (c.get("page") == "") {
		return nil, invalid("parameters page and pagesize require each other")
	}
	if requested, err := strconv.Atoi(c.get("pagesize")); err == nil {
		if requested > size {
			return nil, invalid(fmt.Sprintf("Page size can't exceed max allowed page size value: %d", size))
		}
		size = requested
	}
	if n, err := strconv.Atoi(c.get("page")); err == nil {
		page = n
	}
	if len(found) == 0 {
		return Object{}, nil
	}
	first := min((page-1)*size, len(found))
	return Object{"count": len(found), key: found[first:min(first+size, len(found))]}, nil
}

func (c *call) listMembers() (any, error) {
	id := c.get("id")
	if c.sim.find(Rules, id) == nil {
		return nil, missing("id")
	}
	var found []Object
	for _, vm := range c.sim.members[id] {
		if o := c.sim.find(VMs, vm); o != nil {
			found = append(found, c.sim.shown(VMs, o, c.user.admin))
		}
	}
	return c.page("loadbalancerruleinstance", found)
}

// listPolicies returns the stickiness policies of one rule as a list with one element.
func (c *call) listPolicies() (any, error) {
	rule := c.sim.find(Rules, c.get("lbruleid"))
	if c.get("lbruleid") == "" {
		return nil, invalid("load balancer rule ID and stickiness policy ID can't be null")
	}
	if rule == nil {
		return nil, missing("lbruleid")
	}
	return c.page("stickinesspolicies", []Object{c.policiesOf(rule)})
}

// policiesOf returns the stickiness policies of a rule.
func (c *call) policiesOf(rule Object) Object {
	found := []Object{}
	for _, p := range c.sim.objects[Policies] {
		if p["lbruleid"] == rule["id"] {
			found = append(found, p)
		}
	}
	return Object{"lbruleid": rule["id"], "name": rule["name"], "state": "Active", "stickinesspolicy": found}
}

// tagKind returns the name of a kind in the API of tags.
func tagKind(kind string) string {
	return map[string]string{
		Addresses: "publicipaddress",
		Rules:     "loadbalancer",
		VMs:       "uservm",
		Firewalls: "firewallrule",
		ACLs:      "networkacl",
	}[kind]
}

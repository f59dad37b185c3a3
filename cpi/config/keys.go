package config

import (
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"
)

// A key is a key of the file.
type key struct {
	path     string // zones[].name is a key of each element of zones
	kind     string // in words; empty: it only holds other keys
	fallback string
	doc      string
	legacy   bool   // VMware's CPI 1.6.1 has it
	dead     string // why it does nothing any more
	set      func(*Config, *yaml.Node) error
	begin    func(*Config) // called before the keys of each element
}

// keys returns every key of the file, for the page that explains them.
func keys() []key {
	var all []key
	for _, part := range [][]key{siteKeys(), balancerKeys(), gatewayKeys(), nodeKeys(), rdeKeys()} {
		all = append(all, part...)
	}
	return all
}

func siteKeys() []key {
	return []key{
		{path: "vcd"},
		{path: "vcd.host", kind: "URL", legacy: true, doc: "Address of VMware Cloud Director, `https://host[:port]`. Required.", set: text(func(c *Config) *string { return &c.Site })},
		{path: "vcd.org", kind: "name", legacy: true, doc: "Organisation of the cluster. Required.", set: text(func(c *Config) *string { return &c.Org })},
		{path: "vcd.vdc", kind: "name or URN", legacy: true, doc: "Organisation VDC of the cluster. Required unless `vcd.vdcs` or `nodes.zones` name some.", set: text(func(c *Config) *string { return &c.vdc })},
		{path: "vcd.vdcs", kind: "list of names or URNs", doc: "Further VDCs that have machines of the cluster.", set: texts(func(c *Config) *[]string { return &c.VDCs })},
		{path: "vcd.userOrg", kind: "name", fallback: "`vcd.org`", doc: "Organisation of the user, if it is another. A user name of the form `org/user` says it, too.", set: text(func(c *Config) *string { return &c.UserOrg })},
		{path: "vcd.userorg", kind: "name", legacy: true, doc: "As `vcd.userOrg`.", set: text(func(c *Config) *string { return &c.UserOrg })},
		{path: "vcd.user", kind: "text", legacy: true, doc: "User name. Better in the Secret, which wins.", set: text(func(c *Config) *string { return &c.inlineUser.Username })},
		{path: "vcd.secret", kind: "text", legacy: true, doc: "Password. Better in the Secret, which wins.", set: text(func(c *Config) *string { return &c.inlineUser.Password })},
		{path: "vcd.refreshtoken", kind: "text", legacy: true, doc: "API token. Better in the Secret, which wins.", set: text(func(c *Config) *string { return &c.inlineUser.APIToken })},
		{path: "vcd.isZoneEnabledCluster", kind: "boolean", legacy: true, dead: "zones are those of `nodes.zones`", set: ignore},
		{path: "vcd.caBundle", kind: "PEM", doc: "Certificates that the site's is trusted by, in place of the system's.", set: text(func(c *Config) *string { return &c.caInline })},
		{path: "vcd.caBundleFile", kind: "file", doc: "File with such certificates.", set: text(func(c *Config) *string { return &c.caFile })},
		{path: "vcd.insecureSkipVerify", kind: "boolean", fallback: "false", doc: "Trust any certificate. Whoever is between can read the credentials.", set: boolean(func(c *Config) *bool { return &c.Insecure })},
		{path: "vcd.serviceAccountSecret", kind: "name", doc: "Secret in the controller's namespace with key `refreshToken`: the rotating token of a service account. The controller alone reads and rewrites it.", set: text(func(c *Config) *string { return &c.Login.ServiceAccountSecret })},
		{path: "vcd.requestsPerSecond", kind: "number", fallback: "20", doc: "Most calls a second.", set: decimal(func(c *Config) *float64 { return &c.Requests.PerSecond })},
		{path: "vcd.burst", kind: "integer", fallback: "40", doc: "Calls that may be made at once after a pause.", set: integer(func(c *Config) *int { return &c.Requests.Burst })},
		{path: "vcd.inFlight", kind: "integer", fallback: "8", doc: "Calls at the same time.", set: integer(func(c *Config) *int { return &c.Requests.InFlight })},
		{path: "vcd.requestTimeout", kind: "duration", fallback: "1m", doc: "For one call, with its answer.", set: duration(func(c *Config) *time.Duration { return &c.Requests.Timeout })},
		{path: "clusterid", kind: "text", fallback: "environment variable `CLUSTER_ID`", legacy: true, doc: "Id of the cluster: marks what is its own. The URN of a runtime defined entity is kept up to date, too. Required with load balancers.", set: text(func(c *Config) *string { return &c.ClusterID })},
		{path: "vAppName", kind: "name", legacy: true, doc: "vApp of the nodes. See `nodes.vApps`.", set: oneMore(func(c *Config) *[]string { return &c.Nodes.VApps })},
	}
}

func balancerKeys() []key {
	balancer := func(c *Config) *Balancer { return &c.Balancer }
	return []key{
		{path: "loadbalancer"},
		{path: "loadbalancer.enabled", kind: "boolean", fallback: "true", doc: "Make load balancers for Services. Without, the controller looks after Nodes only, and needs no NSX; Services that have load balancers keep them, and cannot be deleted, until it is on again.", set: not(func(c *Config) *bool { return &balancer(c).Disabled })},
		{path: "loadbalancer.enableVirtualServiceSharedIP", kind: "boolean", legacy: true, dead: "whether ports can share an address is found out from VCD", set: ignore},
		{path: "loadbalancer.ports", legacy: true},
		{path: "loadbalancer.ports.http", kind: "integer", legacy: true, dead: "the ports of a Service are its own", set: ignore},
		{path: "loadbalancer.ports.https", kind: "integer", legacy: true, dead: "the ports of a Service are its own", set: ignore},
		{path: "loadbalancer.certAlias", kind: "text", fallback: "`<clusterid>-cert`", legacy: true, doc: "Certificate, by its alias in VCD's library, of ports with TLS that name none.", set: text(func(c *Config) *string { return &balancer(c).Certificate })},
		{path: "loadbalancer.engineGroup", kind: "name", doc: "Service engine group of virtual services. Without, the first with room.", set: text(func(c *Config) *string { return &balancer(c).EngineGroup })},
		{path: "loadbalancer.algorithm", kind: "text", fallback: "ROUND_ROBIN", doc: "How pools choose a member: ROUND_ROBIN, LEAST_CONNECTIONS, LEAST_LOAD, FASTEST_RESPONSE, FEWEST_SERVERS, FEWEST_TASKS, RANDOM, CONSISTENT_HASH or CORE_AFFINITY.", set: text(func(c *Config) *string { return &balancer(c).Algorithm })},
		{path: "loadbalancer.sourceRanges", kind: "boolean", fallback: "false", doc: "Make firewall rules for `spec.loadBalancerSourceRanges` of a Service. Without, such a Service is refused.", set: boolean(func(c *Config) *bool { return &balancer(c).SourceRanges })},
		{path: "loadbalancer.includeControlPlane", kind: "boolean", fallback: "false", doc: "Send traffic of Services to control plane nodes, too.", set: boolean(func(c *Config) *bool { return &balancer(c).IncludeControlPlane })},
		{path: "loadbalancer.class", kind: "text", doc: "`spec.loadBalancerClass` that is ours, beside Services that have none.", set: text(func(c *Config) *string { return &balancer(c).Class })},
		{path: "loadbalancer.classOnly", kind: "boolean", fallback: "false", doc: "Leave Services without a class to others.", set: boolean(func(c *Config) *bool { return &balancer(c).ClassOnly })},
		{path: "loadbalancer.driftInterval", kind: "duration", fallback: "1m", doc: "How often load balancers are held against what they should be.", set: duration(func(c *Config) *time.Duration { return &balancer(c).Drift })},
	}
}

// gatewayKeys are those of the default gateway, right in the section, and of each further one.
func gatewayKeys() []key {
	all := gatewayKeysAt("loadbalancer", true, func(c *Config) *Gateway { return &c.Balancer.Gateway })
	all = append(all, key{path: "loadbalancer.gateways"}, key{path: "loadbalancer.gateways[]", begin: func(c *Config) {
		c.Balancer.Gateways = append(c.Balancer.Gateways, Gateway{})
	}})
	last := func(c *Config) *Gateway { return &c.Balancer.Gateways[len(c.Balancer.Gateways)-1] }
	all = append(all, key{path: "loadbalancer.gateways[].name", kind: "name", doc: "Name that Services choose this gateway by.", set: text(func(c *Config) *string { return &last(c).Name })})
	return append(all, gatewayKeysAt("loadbalancer.gateways[]", false, last)...)
}

func gatewayKeysAt(at string, legacy bool, of func(*Config) *Gateway) []key {
	arm := func(c *Config) *Range {
		if of(c).OneArm == nil {
			of(c).OneArm = &Range{}
		}
		return of(c).OneArm
	}
	return []key{
		{path: at + ".network", kind: "name", legacy: legacy, doc: "Routed organisation network of the nodes: its edge gateway gets the load balancers. Required, or `edgeGateway`.", set: text(func(c *Config) *string { return &of(c).Network })},
		{path: at + ".edgeGateway", kind: "name or URN", doc: "The edge gateway itself.", set: text(func(c *Config) *string { return &of(c).Edge })},
		{path: at + ".vipSubnet", kind: "CIDR", legacy: legacy, doc: "Take addresses of Services from this subnet only.", set: prefix(func(c *Config) *netip.Prefix { return &of(c).VIPSubnet })},
		{path: at + ".ipSpace", kind: "name", doc: "IP space to take addresses of Services from. Without, any of the gateway.", set: text(func(c *Config) *string { return &of(c).IPSpace })},
		{path: at + ".oneArm", legacy: legacy},
		{path: at + ".oneArm.startIP", kind: "address", legacy: legacy, doc: "First internal address of virtual services in one-arm mode, with a DNAT rule for each port.", set: address(func(c *Config) *netip.Addr { return &arm(c).From })},
		{path: at + ".oneArm.endIP", kind: "address", legacy: legacy, doc: "Last such address.", set: address(func(c *Config) *netip.Addr { return &arm(c).To })},
	}
}

func nodeKeys() []key {
	nodes := func(c *Config) *Nodes { return &c.Nodes }
	lastZone := func(c *Config) *Zone { return &nodes(c).Zones[len(nodes(c).Zones)-1] }
	all := []key{
		{path: "nodes"},
		{path: "nodes.vApps", kind: "list of names", doc: "vApps that hold nodes of the cluster.", set: texts(func(c *Config) *[]string { return &nodes(c).VApps })},
		{path: "nodes.vAppNamePrefix", kind: "text", doc: "What the names of vApps with nodes begin with, where each node has its own. Nodes are also found by their provider IDs, wherever they are.", set: text(func(c *Config) *string { return &nodes(c).VAppPrefix })},
		{path: "nodes.region", kind: "text", doc: "Region of nodes that no zone of `nodes.zones` is for.", set: text(func(c *Config) *string { return &nodes(c).Region })},
		{path: "nodes.maxAge", kind: "duration", fallback: "30s", doc: "How old what is known of the machines may be. Asking VCD for all of them is one query.", set: duration(func(c *Config) *time.Duration { return &nodes(c).MaxAge })},
		{path: "nodes.zones"},
		{path: "nodes.zones[]", begin: func(c *Config) { nodes(c).Zones = append(nodes(c).Zones, Zone{}) }},
		{path: "nodes.zones[].name", kind: "text", doc: "Zone of the nodes in that VDC. Without zones, a node's zone is the name of its VDC.", set: text(func(c *Config) *string { return &lastZone(c).Name })},
		{path: "nodes.zones[].region", kind: "text", fallback: "`nodes.region`", doc: "Region of the zone.", set: text(func(c *Config) *string { return &lastZone(c).Region })},
		{path: "nodes.zones[].vdc", kind: "name or URN", doc: "Organisation VDC of the zone. Required.", set: text(func(c *Config) *string { return &lastZone(c).VDC })},
		{path: "nodes.zones[].placementPolicy", kind: "name or URN", doc: "VM placement policy of the zone, where it is less than a VDC.", set: text(func(c *Config) *string { return &lastZone(c).PlacementPolicy })},
		{path: "nodes.addresses"},
		{path: "nodes.addresses.families", kind: "list of `IPv4`, `IPv6`", fallback: "both, IPv4 first", doc: "Families of addresses, in the order they are told in.", set: families},
	}
	all = append(all, selectionKeys("nodes.addresses.internal", "InternalIP", "the primary NIC", func(c *Config) *Selection { return &nodes(c).Internal })...)
	return append(all, selectionKeys("nodes.addresses.external", "ExternalIP", "none", func(c *Config) *Selection { return &nodes(c).External })...)
}

func selectionKeys(at, name, fallback string, of func(*Config) *Selection) []key {
	return []key{
		{path: at},
		{path: at + ".nics", kind: "list of integers", fallback: fallback, doc: "NICs, by index, whose addresses are told as " + name + ".", set: integers(func(c *Config) *[]int { return &of(c).NICs })},
		{path: at + ".cidrs", kind: "list of CIDRs", doc: "Tell addresses in these only.", set: prefixes(func(c *Config) *[]netip.Prefix { return &of(c).CIDRs })},
		{path: at + ".exclude", kind: "list of CIDRs", doc: "Do not tell addresses in these.", set: prefixes(func(c *Config) *[]netip.Prefix { return &of(c).Exclude })},
	}
}

func rdeKeys() []key {
	return []key{
		{path: "rde"},
		{path: "rde.enabled", kind: "boolean", fallback: "true", doc: "Keep section `status.cpi` of the cluster's runtime defined entity, where there is one. What it lists and is gone is taken out two minutes after the start, and once an hour.", set: not(func(c *Config) *bool { return &c.RDE.Disabled })},
		{path: "rde.id", kind: "URN", fallback: "`clusterid`, if it is one", doc: "The runtime defined entity of the cluster.", set: text(func(c *Config) *string { return &c.RDE.ID })},
	}
}

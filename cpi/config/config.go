// Package config is the configuration of the cloud controller manager: one strict YAML file, with every key that VMware's CPI
// 1.6.1 knows and ours, and the files of a Secret. All that is wrong is said at once, with the key and what would be right.
// The package knows neither Kubernetes nor VMware Cloud Director: it only reads.
package config

import (
	"net/netip"
	"time"
)

// A Config is what the file says, checked.
type Config struct {
	Site       string   // https://host[:port]
	Org        string   // organisation of the cluster
	UserOrg    string   // organisation of the user; empty: Org
	VDCs       []string // names or URNs; the first is the cluster's own
	CABundle   []byte   // PEM; nil: the system's
	Insecure   bool
	ClusterID  string // marks whose objects are whose
	Requests   Requests
	Login      Login
	Balancer   Balancer
	Nodes      Nodes
	RDE        RDE
	Warnings   []string // keys that do nothing any more, and the like
	vdc        string   // vcd.vdc
	caFile     string
	caInline   string
	inlineUser Credentials
}

// Requests bound what VCD is asked. What is 0 is left to the client.
type Requests struct {
	PerSecond float64
	Burst     int
	InFlight  int
	Timeout   time.Duration
}

// A Login says where credentials come from that are not in the files of the Secret.
type Login struct {
	// ServiceAccountSecret is the name of a Secret, in the namespace of the controller, with the rotating token of a service
	// account; empty: there is none.
	ServiceAccountSecret string
}

// A Balancer says how Services of type LoadBalancer are made.
type Balancer struct {
	Disabled    bool // nodes only
	Gateway          // the default: its Name is empty
	Gateways    []Gateway
	Certificate string // alias for ports with TLS that name none; empty: <cluster id>-cert
	EngineGroup string // name of the service engine group; empty: the first with room
	Algorithm   string // of pools
	// SourceRanges allows firewall rules for spec.loadBalancerSourceRanges.
	SourceRanges bool
	// IncludeControlPlane makes control plane nodes members of pools, too.
	IncludeControlPlane bool
	Class               string // spec.loadBalancerClass that is ours
	ClassOnly           bool   // Services without a class are not ours
	Drift               time.Duration
}

// A Gateway is where load balancers are made.
type Gateway struct {
	Name      string // that Services choose it by
	Network   string // organisation network of the nodes; decides the edge gateway
	Edge      string // name or URN of the edge gateway, instead
	OneArm    *Range
	VIPSubnet netip.Prefix // invalid: any
	IPSpace   string       // name of the IP space to claim from; empty: any
}

// A Range is a range of addresses, both ends included.
type Range struct{ From, To netip.Addr }

// Nodes say which machines are the cluster's and what is told of them.
type Nodes struct {
	VApps      []string // names
	VAppPrefix string
	Zones      []Zone
	Region     string // of nodes that no zone is for
	Internal   Selection
	External   Selection
	Families   []Family // in order; empty: IPv4, then IPv6
	MaxAge     time.Duration
}

// A Zone is a failure domain: a VDC, or what a placement policy is in it.
type Zone struct{ Name, Region, VDC, PlacementPolicy string }

// A Selection chooses addresses of a node.
type Selection struct {
	NICs    []int          // by index; empty: all that the networks choose
	CIDRs   []netip.Prefix // empty: all of the NICs
	Exclude []netip.Prefix
}

// Empty says whether nothing is chosen.
func (s Selection) Empty() bool { return len(s.NICs) == 0 && len(s.CIDRs) == 0 && len(s.Exclude) == 0 }

// A Family is a family of addresses.
type Family string

// Families of addresses.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// RDE says whether the runtime defined entity of the cluster is kept.
type RDE struct {
	ID       string // URN; empty: it is not kept
	Disabled bool
}

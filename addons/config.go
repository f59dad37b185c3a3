package addons

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"
)

// Config is the configuration of the cloud controller manager, in the words that CPI 1.6.1 knows, and those that it does not.
type Config struct {
	// VCD says where the cluster is.
	VCD VCDConfig `json:"vcd"`
	// LoadBalancer is how Services are published.
	LoadBalancer LoadBalancerConfig `json:"loadbalancer"`
	// ClusterID is what marks the objects of the cluster in VCD.
	ClusterID string `json:"clusterid,omitempty"`
	// VApp is the vApp of the nodes, if they have one in common.
	VApp string `json:"vAppName,omitempty"`
	// Nodes is what is told of Nodes; nil: what is told without asking for something else.
	Nodes *NodesConfig `json:"nodes,omitempty"`
}

// VCDConfig says where a cluster is in VMware Cloud Director.
type VCDConfig struct {
	Host string `json:"host"`
	Org  string `json:"org"`
	VDC  string `json:"vdc"`
	// CABundle is the PEM bundle of the authorities that may have signed the site's certificate; the system's if empty.
	CABundle string `json:"caBundle,omitempty"`
	// Insecure accepts any certificate.
	Insecure bool `json:"insecureSkipVerify,omitempty"`
	// ServiceAccountSecret is the name of the Secret with the token of a service account, if that is what is logged in with.
	ServiceAccountSecret string `json:"serviceAccountSecret,omitempty"`
}

// LoadBalancerConfig is how Services are published. What is zero is left to the cloud controller manager.
type LoadBalancerConfig struct {
	// Enabled is false where Services are not published.
	Enabled *bool `json:"enabled,omitempty"`
	// Network of the nodes, whose edge gateway balances.
	Network string `json:"network,omitempty"`
	// VIPSubnet limits the external addresses, as a CIDR.
	VIPSubnet string `json:"vipSubnet,omitempty"`
	// IPSpace is the name of the IP Space of external addresses.
	IPSpace string `json:"ipSpace,omitempty"`
	// EngineGroup is the name of the service engine group; any with room if empty.
	EngineGroup string `json:"engineGroup,omitempty"`
	// Algorithm is how pools choose a member, in VCD's words.
	Algorithm string `json:"algorithm,omitempty"`
	// Certificate is the alias, in VCD's library, of the certificate of ports that name none.
	Certificate string `json:"certAlias,omitempty"`
	// SourceRanges lets rules of the firewall be made.
	SourceRanges bool `json:"sourceRanges,omitempty"`
	// IncludeControlPlane sends traffic to control-plane nodes, too.
	IncludeControlPlane bool `json:"includeControlPlane,omitempty"`
	// Class is the spec.loadBalancerClass that is served.
	Class string `json:"class,omitempty"`
	// ClassOnly leaves Services without a class to others.
	ClassOnly bool `json:"classOnly,omitempty"`
	// DriftInterval is how often load balancers are held against what they should be, as Go writes durations.
	DriftInterval string `json:"driftInterval,omitempty"`
	// OneArm, if set, puts virtual services on internal addresses behind DNAT rules.
	OneArm *OneArm `json:"oneArm,omitempty"`
	// Gateways are further edge gateways.
	Gateways []GatewayConfig `json:"gateways,omitempty"`
}

// GatewayConfig is a further edge gateway.
type GatewayConfig struct {
	// Name that Services choose it by.
	Name string `json:"name"`
	// EdgeGateway is its URN.
	EdgeGateway string `json:"edgeGateway"`
	// VIPSubnet limits the external addresses, as a CIDR.
	VIPSubnet string `json:"vipSubnet,omitempty"`
	// IPSpace is the name of the IP Space of external addresses.
	IPSpace string `json:"ipSpace,omitempty"`
	// OneArm, if set, puts virtual services on internal addresses behind DNAT rules.
	OneArm *OneArm `json:"oneArm,omitempty"`
}

// NodesConfig is what is told of Nodes.
type NodesConfig struct {
	// Region of Nodes that no zone says another of.
	Region string `json:"region,omitempty"`
	// Zones of Nodes; the name of the VDC if empty.
	Zones []ZoneConfig `json:"zones,omitempty"`
	// Addresses that are told; those of the primary NIC if nil.
	Addresses *AddressesConfig `json:"addresses,omitempty"`
}

// ZoneConfig is the zone of Nodes in a VDC, or of a placement policy in it.
type ZoneConfig struct {
	Name            string `json:"name"`
	Region          string `json:"region,omitempty"`
	VDC             string `json:"vdc"`
	PlacementPolicy string `json:"placementPolicy,omitempty"`
}

// AddressesConfig chooses the addresses of Nodes.
type AddressesConfig struct {
	// Families are IPv4 and IPv6, in the order they are told in.
	Families []string `json:"families,omitempty"`
	// Internal chooses what is told as InternalIP, External as ExternalIP.
	Internal *SelectionConfig `json:"internal,omitempty"`
	External *SelectionConfig `json:"external,omitempty"`
}

// SelectionConfig chooses addresses by NICs and networks.
type SelectionConfig struct {
	NICs    []int32  `json:"nics,omitempty"`
	CIDRs   []string `json:"cidrs,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// OneArm is the range of internal addresses of virtual services, inclusive.
type OneArm struct {
	StartIP string `json:"startIP"`
	EndIP   string `json:"endIP"`
}

// DefaultOneArm is the range of CPI's manifests.
func DefaultOneArm() OneArm { return OneArm{StartIP: "192.168.8.2", EndIP: "192.168.8.100"} }

// ParseOneArm reads "first-last"; nothing is the default.
func ParseOneArm(s string) (OneArm, error) {
	if s == "" {
		return DefaultOneArm(), nil
	}
	from, to, found := strings.Cut(s, "-")
	first, err1 := netip.ParseAddr(strings.TrimSpace(from))
	last, err2 := netip.ParseAddr(strings.TrimSpace(to))
	switch {
	case !found || errors.Join(err1, err2) != nil:
		return OneArm{}, fmt.Errorf("%q is no range of addresses of the form first-last", s)
	case first.Is4() != last.Is4() || last.Less(first):
		return OneArm{}, fmt.Errorf("the range %q ends before it begins", s)
	}
	return OneArm{StartIP: first.String(), EndIP: last.String()}, nil
}

// YAML writes the configuration as the cloud controller manager reads it.
func (c Config) YAML() ([]byte, error) {
	raw, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of the cloud controller manager: %w", err)
	}
	return raw, nil
}

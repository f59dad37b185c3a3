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

// LoadBalancerConfig is how Services are published.
type LoadBalancerConfig struct {
	// Network of the nodes, whose edge gateway balances.
	Network string `json:"network,omitempty"`
	// VIPSubnet limits the external addresses, as a CIDR.
	VIPSubnet string `json:"vipSubnet,omitempty"`
	// EngineGroup is the name of the service engine group; any with room if empty.
	EngineGroup string `json:"engineGroup,omitempty"`
	// OneArm, if set, puts virtual services on internal addresses behind DNAT rules.
	OneArm *OneArm `json:"oneArm,omitempty"`
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

// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// config returns the configuration of the cloud controller manager. It consists of data of the manager, the spec of the
// VCDCluster, and inherited values.
func (s *scope) config() (*vcdconfig.Config, error) {
	config, err := ownConfig(s)
	if badRecord := complete(&config.LoadBalancer, inheritedBy(s.vcdCluster)); badRecord != nil {
		err = errors.Join(err, fmt.Errorf("spec.recordedState.inheritedLoadBalancer: %w", badRecord))
	}
	return config, err
}

// ownConfig returns the configuration without inherited values.
func ownConfig(s *scope) (*vcdconfig.Config, error) {
	c := s.vcdCluster
	site := s.shared.Config
	r := &converter{}
	config := &vcdconfig.Config{
		VCD: vcdconfig.VCD{
			Host:               site.Site,
			Org:                c.Spec.Org,
			VDC:                c.Status.OVDC.ID,
			CABundle:           string(site.CABundle),
			InsecureSkipVerify: site.Insecure,
		},
		LoadBalancer: r.loadBalancer(c.Spec.LoadBalancer, c.Status.OVDCNetwork.Name, s.gateways),
		ClusterID:    c.Spec.InfraID,
		Nodes:        r.nodes(c.Spec.CloudProvider.Nodes, c.Status.OVDC.ID),
	}
	config.LoadBalancer.ReservedAddresses = endpointAddresses(c)
	if c.Spec.RDE.Mode == infrav1.RDEProject {
		config.RDE.ID = notes.EntityID(c)
	}
	if !vapp.PerMachine(c) && (c.Spec.OVDC != "" || len(s.where.vApps) == 0) {
		config.VAppName = vapp.Name(c, s.cluster.Name) // Otherwise nodes are in zones, or found by their provider IDs.
	}
	config.VCD.VDCs = s.where.vdcs
	config.Nodes.VApps = s.where.vApps
	config.Nodes.Zones = append(config.Nodes.Zones, s.where.zones...)
	if s.shared.ServiceAccount {
		config.VCD.ServiceAccountSecret = addons.ServiceAccountName
	}
	return config, errors.Join(r.problems...)
}

// endpointAddresses returns the addresses of the control plane, which no Service may get.
func endpointAddresses(c *infrav1.VCDCluster) []netip.Addr {
	var all []netip.Addr
	for _, host := range append([]string{c.Spec.ControlPlaneEndpoint.Host}, c.Status.VirtualIPs...) {
		if a, err := netip.ParseAddr(host); err == nil && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// A converter converts the spec of a VCDCluster, and collects its problems.
type converter struct{ problems []error }

// algorithms maps algorithms to their names in VCD.
var algorithms = map[infrav1.LoadBalancerAlgorithm]string{
	infrav1.AlgorithmRoundRobin:       "ROUND_ROBIN",
	infrav1.AlgorithmLeastConnections: "LEAST_CONNECTIONS",
	infrav1.AlgorithmLeastLoad:        "LEAST_LOAD",
	infrav1.AlgorithmFastestResponse:  "FASTEST_RESPONSE",
	infrav1.AlgorithmFewestServers:    "FEWEST_SERVERS",
	infrav1.AlgorithmFewestTasks:      "FEWEST_TASKS",
	infrav1.AlgorithmRandom:           "RANDOM",
	infrav1.AlgorithmConsistentHash:   "CONSISTENT_HASH",
	infrav1.AlgorithmCoreAffinity:     "CORE_AFFINITY",
}

// loadBalancer returns the settings for Services. The map gateways contains the URNs of the additional gateways, by
// name.
func (r *converter) loadBalancer(
	spec infrav1.LoadBalancerSpec, network string, gateways map[string]string,
) vcdconfig.LoadBalancer {
	config := vcdconfig.LoadBalancer{
		EngineGroup:         spec.ServiceEngineGroup,
		Algorithm:           algorithms[spec.Algorithm],
		CertAlias:           spec.CertificateAlias,
		TLSPorts:            string(spec.TLSPorts),
		SourceRanges:        spec.SourceRanges == infrav1.SourceRangesFirewall,
		IncludeControlPlane: spec.Members == infrav1.LoadBalancerAllNodes,
		EdgeGateway:         r.gateway("spec.loadBalancer", spec.ArmMode, spec.OneArm, spec.VIPSubnet, spec.IPSpace),
	}
	config.Network = network
	config.InternalSubnets = r.prefixes("spec.loadBalancer.internalSubnets", spec.InternalSubnets)
	if spec.Mode == infrav1.LoadBalancerDisabled {
		config.Enabled = new(bool)
	}
	if spec.Class != nil {
		config.Class = spec.Class.Name
		config.ClassOnly = spec.Class.UnclassifiedServices == infrav1.UnclassifiedIgnore
	}
	if spec.KubeVIP != nil {
		config.KubeVIP = r.kubeVIP(*spec.KubeVIP)
	}
	if spec.DriftIntervalSeconds != nil {
		config.DriftInterval = metav1.Duration{Duration: time.Duration(*spec.DriftIntervalSeconds) * time.Second}
	}
	for _, g := range spec.EdgeGateways {
		path := "spec.loadBalancer.edgeGateways[" + g.Name + "]"
		gateway := r.gateway(path, g.ArmMode, g.OneArm, g.VIPSubnet, g.IPSpace)
		gateway.ID = gateways[g.Name]
		gateway.InternalSubnets = r.prefixes(path+".internalSubnets", g.InternalSubnets)
		config.Gateways = append(config.Gateways, vcdconfig.Gateway{Name: g.Name, EdgeGateway: gateway})
	}
	return config
}

// kubeVIP returns the addresses that kube-vip announces.
func (r *converter) kubeVIP(spec infrav1.KubeVIPServices) vcdconfig.KubeVIP {
	config := vcdconfig.KubeVIP{Class: spec.Class}
	for i, addresses := range spec.AddressRanges {
		found, err := vcdconfig.NewRange(addresses.StartIP, addresses.EndIP)
		r.note(fmt.Sprintf("spec.loadBalancer.kubeVIP.addressRanges[%d]", i), err)
		config.AddressRanges = append(config.AddressRanges, vcdconfig.AddressRange(found))
	}
	return config
}

func (r *converter) gateway(
	path string, mode infrav1.ArmMode, arm infrav1.OneArmSpec, vipSubnet, ipSpace string,
) vcdconfig.EdgeGateway {
	gateway := vcdconfig.EdgeGateway{IPSpace: ipSpace}
	if vipSubnet != "" {
		gateway.VIPSubnet = r.prefix(path+".vipSubnet", vipSubnet)
	}
	if mode == infrav1.ArmModeOneArm {
		addresses, err := vcdconfig.NewRange(arm.InternalRange.StartIP, arm.InternalRange.EndIP)
		r.note(path+".oneArm.internalRange", err)
		gateway.OneArm = &addresses
	}
	return gateway
}

// nodes returns the settings for Nodes. All zones are in one VDC.
func (r *converter) nodes(spec infrav1.CloudProviderNodes, vdc string) vcdconfig.Nodes {
	const path = "spec.cloudProvider.nodes.addresses."
	nodes := vcdconfig.Nodes{
		Region:      spec.Region,
		DefaultZone: string(spec.DefaultZone),
		Addresses: vcdconfig.Addresses{
			Internal: r.selection(path+"internal", spec.Addresses.Internal),
			External: r.selection(path+"external", spec.Addresses.External),
		},
	}
	for _, f := range spec.Addresses.Families {
		nodes.Addresses.Families = append(nodes.Addresses.Families, corev1.IPFamily(f))
	}
	for _, z := range spec.Zones {
		zone := vcdconfig.Zone{Name: z.Name, Region: z.Region, VDC: vdc, PlacementPolicy: z.PlacementPolicy}
		nodes.Zones = append(nodes.Zones, zone)
	}
	return nodes
}

func (r *converter) selection(path string, spec infrav1.AddressSelection) vcdconfig.Selection {
	out := vcdconfig.Selection{
		CIDRs:   r.prefixes(path+".cidrs", spec.CIDRs),
		Exclude: r.prefixes(path+".exclude", spec.Exclude),
	}
	for _, nic := range spec.NICs {
		out.NICs = append(out.NICs, int(nic))
	}
	return out
}

func (r *converter) prefixes(path string, values []string) []netip.Prefix {
	var out []netip.Prefix
	for _, value := range values {
		out = append(out, r.prefix(path, value))
	}
	return out
}

func (r *converter) prefix(path, value string) netip.Prefix {
	prefix, err := netip.ParsePrefix(value)
	r.note(path, err)
	return prefix
}

func (r *converter) note(path string, err error) {
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("%s: %w", path, err))
	}
}

package cloudprovider

import (
	"fmt"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
)

// config is what the cloud controller manager has to know: what the manager knows itself, and what the VCDCluster wishes for.
func (s *scope) config() (addons.Config, error) {
	c := s.vcdCluster
	balancer, err := balancerConfig(c, s.gateways)
	if err != nil {
		return addons.Config{}, err
	}
	config := addons.Config{
		VCD: addons.VCDConfig{
			Host: s.shared.Config.Site, Org: c.Spec.Org, VDC: c.Status.OVDC.ID,
			CABundle: string(s.shared.Config.CABundle), Insecure: s.shared.Config.Insecure,
		},
		LoadBalancer: balancer,
		ClusterID:    c.Spec.InfraID,
		Nodes:        nodesConfig(c.Spec.CloudProvider.Nodes, c.Status.OVDC.ID),
	}
	if !vapp.PerMachine(c) { // Otherwise nodes are found by their provider IDs.
		config.VApp = vapp.Name(c, s.cluster.Name)
	}
	if s.shared.ServiceAccount {
		config.VCD.ServiceAccountSecret = addons.ServiceAccountName
	}
	return config, nil
}

// balancerConfig is how Services are published. Gateways are the URNs of the further ones, by name.
func balancerConfig(c *infrav1.VCDCluster, gateways map[string]string) (addons.LoadBalancerConfig, error) {
	spec := c.Spec.LoadBalancer
	arm, err := oneArm(spec.OneArm)
	if err != nil {
		return addons.LoadBalancerConfig{}, fmt.Errorf("spec.loadBalancer.oneArm.internalRange: %w", err)
	}
	config := addons.LoadBalancerConfig{
		Network: c.Status.OVDCNetwork.Name, VIPSubnet: spec.VIPSubnet, IPSpace: spec.IPSpace, OneArm: arm,
		EngineGroup: spec.ServiceEngineGroup, Algorithm: string(spec.Algorithm), Certificate: spec.CertificateAlias,
		SourceRanges: spec.SourceRanges == infrav1.SourceRangesFirewall, IncludeControlPlane: spec.Members == infrav1.LoadBalancerAllNodes,
	}
	if spec.Mode == infrav1.LoadBalancerDisabled {
		config.Enabled = new(bool)
	}
	if spec.Class != nil {
		config.Class, config.ClassOnly = spec.Class.Name, spec.Class.UnclassifiedServices == infrav1.UnclassifiedIgnore
	}
	if spec.DriftIntervalSeconds != nil {
		config.DriftInterval = (time.Duration(*spec.DriftIntervalSeconds) * time.Second).String()
	}
	for _, g := range spec.Gateways {
		arm, err := oneArm(g.OneArm)
		if err != nil {
			return addons.LoadBalancerConfig{}, fmt.Errorf("spec.loadBalancer.gateways[%s].oneArm.internalRange: %w", g.Name, err)
		}
		config.Gateways = append(config.Gateways, addons.GatewayConfig{
			Name: g.Name, EdgeGateway: gateways[g.Name], VIPSubnet: g.VIPSubnet, IPSpace: g.IPSpace, OneArm: arm,
		})
	}
	return config, nil
}

// oneArm is nil where virtual services are not behind DNAT rules.
func oneArm(spec *infrav1.OneArmSpec) (*addons.OneArm, error) {
	if spec == nil {
		return nil, nil
	}
	arm, err := addons.ParseOneArm(spec.InternalRange)
	return &arm, err
}

// nodesConfig is what is told of Nodes, all of which are in one VDC; nil: nothing else than without asking.
func nodesConfig(spec infrav1.CloudProviderNodes, vdc string) *addons.NodesConfig {
	nodes := addons.NodesConfig{Region: spec.Region, Addresses: addressesConfig(spec.Addresses)}
	for _, z := range spec.Zones {
		nodes.Zones = append(nodes.Zones, addons.ZoneConfig{Name: z.Name, Region: z.Region, VDC: vdc, PlacementPolicy: z.PlacementPolicy})
	}
	if nodes.Region == "" && nodes.Zones == nil && nodes.Addresses == nil {
		return nil
	}
	return &nodes
}

func addressesConfig(spec infrav1.CloudProviderAddresses) *addons.AddressesConfig {
	addresses := addons.AddressesConfig{Internal: selectionConfig(spec.Internal), External: selectionConfig(spec.External)}
	for _, f := range spec.Families {
		addresses.Families = append(addresses.Families, string(f))
	}
	if addresses.Families == nil && addresses.Internal == nil && addresses.External == nil {
		return nil
	}
	return &addresses
}

func selectionConfig(spec infrav1.AddressSelection) *addons.SelectionConfig {
	if len(spec.NICs) == 0 && len(spec.CIDRs) == 0 && len(spec.Exclude) == 0 {
		return nil
	}
	return &addons.SelectionConfig{NICs: spec.NICs, CIDRs: spec.CIDRs, Exclude: spec.Exclude}
}

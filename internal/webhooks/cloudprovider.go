// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// cloudProviderErrors validates the configuration of the cloud controller manager.
func cloudProviderErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	errs := identityOfCCMErrors(spec, path.Child("cloudProvider", "identityRef"))
	if image := spec.CloudProvider.Image; image != "" {
		errs = append(errs, repositoryErrors(image, path.Child("cloudProvider", "image"))...)
		if strings.HasSuffix(image, ":latest") {
			errs = append(errs, invalid(path.Child("cloudProvider", "image"), image,
				"must not have the tag latest, whose content changes: remove the tag to use the version of the manager")...)
		}
	}
	errs = append(errs, balancerErrors(&spec.LoadBalancer, path.Child("loadBalancer"))...)
	errs = append(errs, kubeVIPServicesErrors(spec, path)...)
	return append(errs, nodesErrors(&spec.CloudProvider.Nodes, path.Child("cloudProvider", "nodes"))...)
}

// identityOfCCMErrors rejects an identity with which the cloud controller manager would never be installed. The Nodes
// of such a cluster would keep their taint forever.
func identityOfCCMErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	const never = "credentials of a VCDClusterIdentity are never copied into a workload cluster"
	own := spec.CloudProvider.IdentityRef
	if own != nil && own.Kind == infrav1.ClusterIdentity {
		return field.ErrorList{field.Invalid(path.Child("kind"), own.Kind, "must be VCDIdentity: "+never)}
	}
	return nil
}

func balancerErrors(spec *infrav1.LoadBalancerSpec, path *field.Path) field.ErrorList {
	errs := gatewayErrors(spec.OneArm, spec.VIPSubnet, path)
	errs = append(errs, internalErrors(spec.InternalSubnets, path)...)
	if spec.Class != nil {
		for _, msg := range validation.IsQualifiedName(spec.Class.Name) {
			errs = append(errs, field.Invalid(path.Child("class", "name"), spec.Class.Name, msg))
		}
	}
	for i, g := range spec.EdgeGateways {
		at := path.Child("edgeGateways").Index(i)
		errs = append(errs, objectErrors(g.EdgeGateway, typeGateway, at.Child("edgeGateway"))...)
		errs = append(errs, objectErrors(g.Network, typeNetwork, at.Child("network"))...)
		errs = append(errs, gatewayErrors(g.OneArm, g.VIPSubnet, at)...)
		errs = append(errs, internalErrors(g.InternalSubnets, at)...)
	}
	return errs
}

func internalErrors(cidrs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		errs = append(errs, cidrErrors(cidr, path.Child("internalSubnets").Index(i))...)
	}
	return errs
}

// gatewayErrors validates the settings that all edge gateways have in common.
func gatewayErrors(arm infrav1.OneArmSpec, vipSubnet string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneArmErrors(arm, path.Child("oneArm"))...)
	if vipSubnet != "" {
		errs = append(errs, cidrErrors(vipSubnet, path.Child("vipSubnet"))...)
	}
	return errs
}

func oneArmErrors(arm infrav1.OneArmSpec, path *field.Path) field.ErrorList {
	r := arm.InternalRange
	if _, err := vcdconfig.NewRange(r.StartIP, r.EndIP); err != nil {
		return invalid(path.Child("internalRange"), r.StartIP+" to "+r.EndIP, err.Error())
	}
	return nil
}

func nodesErrors(spec *infrav1.CloudProviderNodes, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	zoneOf := map[string]string{}
	for i, z := range spec.Zones {
		errs = append(errs, objectErrors(z.PlacementPolicy, typePolicy,
			path.Child("zones").Index(i).Child("placementPolicy"))...)
		if other, taken := zoneOf[z.PlacementPolicy]; taken {
			errs = append(errs, field.Duplicate(path.Child("zones").Index(i).Child("placementPolicy"),
				z.PlacementPolicy+" (of zone "+other+")"))
		}
		zoneOf[z.PlacementPolicy] = z.Name
	}
	addresses := path.Child("addresses")
	errs = append(errs, selectionErrors(&spec.Addresses.Internal, addresses.Child("internal"))...)
	return append(errs, selectionErrors(&spec.Addresses.External, addresses.Child("external"))...)
}

func selectionErrors(spec *infrav1.AddressSelection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range spec.CIDRs {
		errs = append(errs, cidrErrors(cidr, path.Child("cidrs").Index(i))...)
	}
	for i, cidr := range spec.Exclude {
		errs = append(errs, cidrErrors(cidr, path.Child("exclude").Index(i))...)
	}
	return errs
}

func cidrErrors(value string, path *field.Path) field.ErrorList {
	if _, err := netip.ParsePrefix(value); err != nil {
		return invalid(path, value, "must be a CIDR, such as 203.0.113.0/24")
	}
	return nil
}

package webhooks

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// cloudProviderErrors looks at what the cloud controller manager is given.
func cloudProviderErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref := spec.CloudProvider.IdentityRef; ref != nil && ref.Kind == infrav1.ClusterIdentity {
		errs = append(errs, field.Invalid(path.Child("cloudProvider", "identityRef", "kind"), ref.Kind,
			"must be VCDIdentity: credentials of a VCDClusterIdentity are never put into a workload cluster"))
	}
	balancer := path.Child("loadBalancer")
	if arm := spec.LoadBalancer.OneArm; arm != nil {
		if _, err := addons.ParseOneArm(arm.InternalRange); err != nil {
			errs = append(errs, field.Invalid(balancer.Child("oneArm", "internalRange"), arm.InternalRange, err.Error()))
		}
	}
	if subnet := spec.LoadBalancer.VIPSubnet; subnet != "" {
		if _, err := netip.ParsePrefix(subnet); err != nil {
			errs = append(errs, field.Invalid(balancer.Child("vipSubnet"), subnet, "must be a CIDR, such as 203.0.113.0/24"))
		}
	}
	return errs
}

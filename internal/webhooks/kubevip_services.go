// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// kubeVIPServicesErrors validates the settings of kube-vip for Services.
func kubeVIPServicesErrors(spec *infrav1.VCDClusterSpec, path *field.Path) field.ErrorList {
	kube := spec.LoadBalancer.KubeVIP
	if kube == nil {
		return nil
	}
	at := path.Child("loadBalancer", "kubeVIP")
	var errs field.ErrorList
	if mode := spec.CloudProvider.Mode; mode != "" && mode != infrav1.CloudProviderManaged {
		errs = append(errs, field.Forbidden(at, "requires cloudProvider.mode Managed: the cloud controller manager assigns the addresses"))
	}
	if kube.Class != "" {
		for _, msg := range validation.IsQualifiedName(kube.Class) {
			errs = append(errs, field.Invalid(at.Child("class"), kube.Class, msg))
		}
	}
	if kube.Interface != "" {
		errs = append(errs, interfaceErrors(kube.Interface, at.Child("interface"))...)
	}
	if kube.Interface == "lo" {
		errs = append(errs, invalid(at.Child("interface"), kube.Interface,
			"must not be the loopback interface: the addresses must be announced on a network")...)
	}
	if kube.Image != "" {
		errs = append(errs, imageErrors(kube.Image, at.Child("image"))...)
	}
	return append(errs, serviceRangeErrors(kube.AddressRanges, spec.ControlPlaneEndpoint.Host, at.Child("addressRanges"))...)
}

// serviceRangeErrors validates the address ranges of Services, which must not contain the host of the control plane
// endpoint.
func serviceRangeErrors(ranges []infrav1.AddressRange, host string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var before []vcdconfig.Range
	for i, r := range ranges {
		at := path.Index(i)
		text := r.StartIP + " to " + r.EndIP
		ends := append(unicastErrors(r.StartIP, at.Child("startIP")), unicastErrors(r.EndIP, at.Child("endIP"))...)
		if len(ends) > 0 {
			errs = append(errs, ends...)
			continue
		}
		addresses, err := vcdconfig.NewRange(r.StartIP, r.EndIP)
		if err != nil {
			errs = append(errs, invalid(at, text, err.Error())...)
			continue
		}
		if addr, err := netip.ParseAddr(host); err == nil && contains(addresses, addr) {
			errs = append(errs, invalid(at, text, "contains the host of controlPlaneEndpoint, "+host+": choose other addresses")...)
		}
		for _, other := range before {
			if contains(other, addresses.StartIP) || contains(addresses, other.StartIP) {
				errs = append(errs, invalid(at, text, "overlaps "+other.StartIP.String()+" to "+other.EndIP.String()+
					": merge both")...)
			}
		}
		before = append(before, addresses)
	}
	return errs
}

func contains(r vcdconfig.Range, addr netip.Addr) bool {
	return r.StartIP.Compare(addr) <= 0 && addr.Compare(r.EndIP) <= 0
}

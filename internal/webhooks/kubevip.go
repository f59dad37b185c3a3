// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// kubeVIPErrors validates a virtual IP. virtualIPs are its addresses, if they are known.
func kubeVIPErrors(vip *infrav1.KubeVIPEndpoint, virtualIPs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, pools := range map[string][]infrav1.IPPoolReference{
		"poolRefs":          vip.PoolRefs,
		"secondaryPoolRefs": vip.SecondaryPoolRefs,
	} {
		for i := range pools {
			errs = append(errs, poolErrors(&pools[i], path.Child(name).Index(i))...)
		}
	}
	if vip.Interface != "" {
		errs = append(errs, interfaceErrors(vip.Interface, path.Child("interface"))...)
	}
	if vip.Interface == "lo" && vip.BGP == nil {
		errs = append(errs, field.Invalid(path.Child("interface"), vip.Interface,
			"must not be the loopback interface without bgp: the address must be announced on a network"))
	}
	if vip.Image != "" {
		errs = append(errs, imageErrors(vip.Image, path.Child("image"))...)
	}
	if vip.BGP != nil {
		errs = append(errs, bgpErrors(vip.BGP, virtualIPs, path.Child("bgp"))...)
	}
	return errs
}

// dnsNameErrors validates the DNS name of an endpoint whose record a DHCP server updates.
func dnsNameErrors(value string, path *field.Path) field.ErrorList {
	if _, err := netip.ParseAddr(value); err == nil || len(validation.IsDNS1123Subdomain(value)) > 0 {
		return invalid(path, value, "must be a DNS name in lower case, without scheme and port")
	}
	return nil
}

// bgpErrors validates the peers, and checks that each known virtual IP has a peer of its family.
func bgpErrors(bgp *infrav1.KubeVIPBGP, virtualIPs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	peers := families{}
	for i, peer := range bgp.Peers {
		at := path.Child("peers").Index(i).Child("address")
		if problem := unicastErrors(peer.Address, at); len(problem) > 0 {
			errs = append(errs, problem...)
			continue
		}
		peers[netip.MustParseAddr(peer.Address).Is4()] = true
	}
	for name, value := range map[string]string{
		"routerInterface": bgp.RouterInterface,
		"sourceInterface": bgp.SourceInterface,
	} {
		if value != "" {
			errs = append(errs, interfaceErrors(value, path.Child(name))...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if i := slices.IndexFunc(virtualIPs, func(value string) bool {
		address, err := netip.ParseAddr(value)
		return err == nil && !peers[address.Is4()]
	}); i >= 0 {
		errs = append(errs, field.Invalid(path.Child("peers"), virtualIPs[i],
			"no peer has the IP family of this virtual IP: an address is announced only to peers of the same family"))
	}
	return errs
}

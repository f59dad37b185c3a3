// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// networksErrors validates the NICs of a machine.
func networksErrors(nics []infrav1.NetworkSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	subnets := map[netip.Prefix]string{}
	for i := range nics {
		at := path.Index(i)
		errs = append(errs, networkErrors(&nics[i], at)...)
		for j, address := range nics[i].Addresses {
			prefix, err := netip.ParsePrefix(address)
			if err != nil {
				continue // reported above
			}
			for subnet, other := range subnets {
				if other != at.String() && subnet.Overlaps(prefix) {
					errs = append(errs, field.Invalid(at.Child("addresses").Index(j), address,
						"is in the subnet of "+other+": a guest cannot route two NICs in one subnet"))
				}
			}
			subnets[prefix.Masked()] = at.String()
		}
	}
	return errs
}

func networkErrors(nic *infrav1.NetworkSpec, path *field.Path) field.ErrorList {
	errs := objectErrors(nic.Name, typeNetwork, path.Child("name"))
	errs = append(errs, addressErrors(nic.Addresses, path.Child("addresses"))...)
	pools := map[infrav1.IPPoolReference]bool{}
	for i, pool := range nic.PoolRefs {
		at := path.Child("poolRefs").Index(i)
		errs = append(errs, poolErrors(&pool, at)...)
		if pools[pool] {
			errs = append(errs, field.Duplicate(at, pool.Name))
		}
		pools[pool] = true
	}
	for i, server := range nic.Nameservers {
		errs = append(errs, unicastErrors(server, path.Child("nameservers").Index(i))...)
	}
	for i, domain := range nic.SearchDomains {
		for _, msg := range validation.IsDNS1123Subdomain(domain) {
			errs = append(errs, field.Invalid(path.Child("searchDomains").Index(i), domain, msg))
		}
	}
	for i := range nic.Routes {
		errs = append(errs, routeErrors(&nic.Routes[i], path.Child("routes").Index(i))...)
	}
	return errs
}

func addressErrors(addresses []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := families{}
	for i, address := range addresses {
		at := path.Index(i)
		prefix, err := netip.ParsePrefix(address)
		if err != nil {
			errs = append(errs,
				field.Invalid(at, address, "must be an address with prefix length, such as 10.0.0.5/24"))
			continue
		}
		errs = append(errs, unicastErrors(prefix.Addr().String(), at)...)
		errs = append(errs, seen.add(prefix.Addr(), at)...)
	}
	return errs
}

func routeErrors(route *infrav1.RouteSpec, path *field.Path) field.ErrorList {
	to, err := netip.ParsePrefix(route.To)
	if err != nil || to != to.Masked() {
		return invalid(path.Child("to"), route.To, "must be a subnet with prefix length, such as 172.16.0.0/12")
	}
	via, err := netip.ParseAddr(route.Via)
	if err != nil || via.Zone() != "" || via.Is4() != to.Addr().Is4() {
		return invalid(path.Child("via"), route.Via, "must be an address of the same family as to, such as 10.0.0.254")
	}
	return nil
}

// sharedInTemplate rejects manual addresses and host names, which all machines of a template would share.
func sharedInTemplate(t *infrav1.VCDMachineTemplate) field.ErrorList {
	var errs field.ErrorList
	for i, nic := range t.Spec.Template.Spec.Networks {
		if nic.AddressSource == infrav1.AddressManual {
			at := field.NewPath("spec", "template", "spec", "networks").Index(i)
			errs = append(errs, field.Forbidden(at.Child("addressSource"), "all machines of the template would have the same address: use IPAM with poolRefs, or StaticPool; Manual requires a VCDMachine without a template"))
		}
		if nic.DHCPOverrides != nil && nic.DHCPOverrides.Hostname != "" {
			at := field.NewPath("spec", "template", "spec", "networks").Index(i).Child("dhcpOverrides", "hostname")
			errs = append(errs, field.Forbidden(at, "all machines of the template would send the same host name: remove it, so that each machine sends its own"))
		}
	}
	return errs
}

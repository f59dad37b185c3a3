// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

// unicastErrors validates the address of a single host.
func unicastErrors(value string, path *field.Path) field.ErrorList {
	address, err := netip.ParseAddr(value)
	switch {
	case err != nil:
		return invalid(path, value, "must be an IPv4 or IPv6 address, such as 10.0.0.10")
	case address.Zone() != "" || address.Is4In6():
		return invalid(path, value, "must be a plain address, without a zone and not an IPv4-mapped IPv6 address")
	case !address.IsGlobalUnicast() || address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return invalid(path, value,
			"must be a unicast address: not unspecified, loopback, link-local, multicast or broadcast")
	}
	return nil
}

// families are the IP families of addresses in a list that may contain at most one address of each. The key is true for
// IPv4.
type families map[bool]bool

// add records the family of an address, and returns an error for a second address of a family.
func (f families) add(address netip.Addr, path *field.Path) field.ErrorList {
	if f[address.Is4()] {
		return invalid(path, address.String(),
			"is the second address of its family: use at most one IPv4 and one IPv6 address")
	}
	f[address.Is4()] = true
	return nil
}

// hostErrors validates an IP address or a DNS name.
func hostErrors(value string, path *field.Path) field.ErrorList {
	if _, err := netip.ParseAddr(value); err == nil {
		return unicastErrors(value, path)
	}
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		return invalid(path, value, "must be an IP address or a DNS name in lower case, without scheme and port")
	}
	return nil
}

func poolErrors(pool *infrav1.IPPoolReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(pool.APIGroup) {
		errs = append(errs, field.Invalid(path.Child("apiGroup"), pool.APIGroup,
			msg+"; set the group without a version"))
	}
	for _, msg := range validation.IsDNS1123Subdomain(pool.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), pool.Name, msg))
	}
	return errs
}

// interfaceErrors validates the name of a network interface of kube-vip.
func interfaceErrors(value string, path *field.Path) field.ErrorList {
	if !kubevip.IsInterface(value) {
		return invalid(path, value, "must be the name of a network interface, such as eth0")
	}
	return nil
}

// uuid matches a UUID in VCD's notation.
const uuid = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

// urnPrefix is the prefix of VCD's URNs.
const urnPrefix = "urn:vcloud:"

// Types of VCD objects as they appear in URNs.
const (
	typeVDC            = "vdc"
	typeNetwork        = "network"
	typeCatalog        = "catalog"
	typeTemplate       = "vapptemplate"
	typePolicy         = "vdcComputePolicy"
	typeStorageProfile = "vdcstorageProfile"
	typeGateway        = "gateway"
)

// objectErrors validates a name or a URN of an object of a type.
func objectErrors(value, kind string, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(value, urnPrefix) || regexp.MustCompile("^"+urnPrefix+kind+":"+uuid+"$").MatchString(value) {
		return nil
	}
	return invalid(path, value, "must be a name, or a URN of the form "+urnPrefix+kind+":<UUID>")
}

// imageErrors validates a full image reference of kube-vip.
func imageErrors(value string, path *field.Path) field.ErrorList {
	if errs := repositoryErrors(value, path); len(errs) > 0 {
		return errs
	}
	if !kubevip.IsImage(value) {
		return invalid(path, value, "must be the reference of an image, such as registry.example.com/kube-vip/kube-vip:v1.0.0")
	}
	if !strings.ContainsAny(lastPart(value), ":@") {
		return invalid(path, value, "must end with a tag or digest, such as :v1.0.0")
	}
	return nil
}

// lastPart returns the name of an image with its tag and digest.
func lastPart(image string) string { return image[strings.LastIndex(image, "/")+1:] }

// repositoryErrors validates an image reference with a registry. The tag or digest is optional.
func repositoryErrors(value string, path *field.Path) field.ErrorList {
	if strings.ContainsFunc(value, unicode.IsSpace) || strings.Contains(value, "://") {
		return invalid(path, value, "must be the reference of an image, without scheme and spaces")
	}
	registry, _, found := strings.Cut(value, "/")
	if !found || (!strings.ContainsAny(registry, ".:") && registry != "localhost") {
		return invalid(path, value, "must begin with a registry, such as registry.example.com/kube-vip/kube-vip:v1.0.0")
	}
	return nil
}

// filterMeta are the characters that names in VCD's queries cannot contain. A vApp with such a name could not be found
// again.
const filterMeta = ";,()*=!<>\"'\\"

// vcdNameErrors validates the name of a vApp.
func vcdNameErrors(value string, path *field.Path) field.ErrorList {
	if len(value) > maxVAppName {
		return invalid(path, value, fmt.Sprintf("must have at most %d characters", maxVAppName))
	}
	if strings.TrimSpace(value) != value || strings.ContainsFunc(value, unicode.IsControl) {
		return invalid(path, value, "must not begin or end with a space and must not contain control characters")
	}
	if strings.ContainsAny(value, filterMeta) {
		return invalid(path, value, "must not contain any of "+filterMeta+", which VCD cannot query")
	}
	return nil
}

func invalid(path *field.Path, value, remedy string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, value, remedy)}
}

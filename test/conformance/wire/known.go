// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"regexp"
)

// A tolerance is an accepted violation, because VMware's document is wrong, incomplete, or older than the simulator.
type tolerance struct {
	operation, what *regexp.Regexp
	reason          string
}

func tolerate(operation, what, reason string) tolerance {
	return tolerance{regexp.MustCompile("^(" + operation + ")$"), regexp.MustCompile(what), reason}
}

// tolerances lists all accepted violations.
var tolerances = []tolerance{
	tolerate(`(GET|POST) /cloudapi/1.0.0/sessions.*`, "^/operatingOrg: .*not define", "added to sessions in API 38"),
	tolerate(`DELETE /cloudapi/1.0.0/sessions`, "does not define DELETE on this path",
		"go-vcloud-director deletes its session without an ID"),
	tolerate(`.* /cloudapi/1.0.0/orgs`, "/(maskedEventTaskUsername|creationStatus|canManageOrgs|managedBy): .*not define", "added to organizations in API 38 and 39"),
	tolerate(`\w+ /cloudapi/1.0.0/(apiFilters|externalEndpoints)`, "does not define .* on this path",
		"added in API 37.3"),
	tolerate(`.* /cloudapi/2.0.0/.*(vdcComputePolicies|computePolicies)`,
		"/(isVgpuPolicy|pvdcNamedVmGroupsMap|pvdcLogicalVmGroupsMap|policyType): .*not define",
		"the document has no schema for VdcVmPolicy, the only kind with these fields; its other fields are those of VdcComputePolicy"),
	tolerate(`.*/accessControls`, "/memberId: .*not define",
		"the document has no schema for MembershipAccessControlGrant, the kind with this field"),
	tolerate(`.* /cloudapi/1.0.0/edgeGateways`, "/(usingIpSpace|deploymentMode): .*not define",
		"added to edge gateways in API 38"),
	tolerate(`POST /cloudapi/1.0.0/edgeGateways/firewall/rules`, "does not define POST on this path",
		"added in API 38.1"),
	tolerate(`.* /cloudapi/1.0.0/edgeGateways/firewall/rules`, "/(source|destination)FirewallIpAddresses: .*not define",
		"added to firewall rules in API 38.1"),
	tolerate(`\w+ /cloudapi/2.0.0/edgeGateways/firewall/rules`, "does not define .* on this path", "added in API 38.1"),
	tolerate(`.* /cloudapi/1.0.0/externalNetworks`,
		"/(natAndFirewallServiceIntention|networkRouteAdvertisementIntention): .*not define",
		"added to external networks in API 38.1"),
	tolerate(`.* /cloudapi/1.0.0/ipSpaces`, "/defaultGatewayServiceConfig: .*not define", "added to IP Spaces in API 38"),
	tolerate(`.* /cloudapi/1.0.0/ipSpaceUplinks`, "/interfaces: .*not define",
		"added to the uplinks of IP Spaces in API 38"),
	tolerate(`\w+ /cloudapi/1.0.0/(nsxTResources/tier0RouterInterfaces|loadBalancer/virtualServices/httpPolicy/\w+)`,
		"does not define .* on this path", "added in API 38"),
	tolerate(`\w+ /cloudapi/1.0.0/(loadBalancer/healthMonitors|edgeGateways/loadBalancer/healthMonitorSummaries)`,
		"does not define .* on this path", "added in API 39"),
	tolerate(`.* /cloudapi/1.0.0/loadBalancer/pools`,
		"/healthMonitors/.*/(id|description|sendInterval|receiveTimeout|successfulChecksCount|failedChecksCount|httpSettings): .*not define", "added to health monitors in API 39"),
	tolerate(`PUT /cloudapi/1.0.0/loadBalancer/controllers`, "^/password: .*missing",
		"go-vcloud-director sends the object as read, without the password"),
	tolerate(`.* /api/query type=nsxTManager`, "NsxTManagerRecord",
		"added to the legacy API after the last published schemas"),
	tolerate(".*", "'SecondaryIp(Address|Type|AddressAllocationMode)'",
		"added to network connections of VMs after the last published schemas; the order is that of go-vcloud-director"),
	tolerate(".*", "'OpenIdProviderConfiguration': No matching global declaration",
		"added to the legacy API after the last published schemas"),
	tolerate(".*", "'VdcComputePolicyReferences': No matching global declaration",
		"added to the legacy API in version 31, after the last published schemas"),
}

func tolerated(v Violation) bool {
	for _, t := range tolerances {
		if t.operation.MatchString(v.Operation) && t.what.MatchString(v.What) {
			return true
		}
	}
	return false
}

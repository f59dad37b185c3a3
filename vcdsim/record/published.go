// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"regexp"
)

// newer matches what VCD returns since API 31, which is not in the published XML schemas.
var newer = []*regexp.Regexp{
	regexp.MustCompile(`(?s)\s*<ComputePolicy>.*?</ComputePolicy>`),
	regexp.MustCompile(`(?s)\s*<IopsAllocation>.*?</IopsAllocation>`),
	regexp.MustCompile(`\s*<DefaultComputePolicy [^>]*/>`),
	regexp.MustCompile(`\s*<(SubnetPrefixLength|Firmware|RecommendedFirmware|SupportedFirmware|SupportsTPM|BootRetryEnabled|BootRetryDelay|EfiSecureBootEnabled|NetworkBootProtocol|IsElastic|IncludeMemoryOverhead|vmext:ComputeProviderScope)>[^<]*</[^>]*>`),
	regexp.MustCompile(`\s*<vmext:NsxTManagerReference [^>]*/>`),
	regexp.MustCompile(` (isComputePolicyCompliant|vmSizingPolicyId|vmPlacementPolicyId|encrypted|dateCreated|totalStorageAllocatedMb|` +
		`operationFull|shareable|sharingType|uuid|attachedVmCount|isShareable|storageProfileOverrideVmDefault)="[^"]*"`),
	// The OpenID Connect settings of organizations.
	regexp.MustCompile(`(?s)\s*<(OrgRedirectUri|ClientId|ClientSecret|UserAuthorizationEndpoint|AccessTokenEndpoint|UserInfoEndpoint|` +
		`ScimEndpoint|Scope|MaxClockSkew|JwksUri|AutoRefreshKey|KeyRefreshStrategy|KeyRefreshFrequencyInHours|` +
		`KeyExpireDurationInHours|WellKnownEndpoint|EnableIdTokenClaims|UsePKCE|SendClientCredentialsAsAuthorizationHeader|` +
		`CustomUiButtonLabel)>[^<]*</\w+>`),
	regexp.MustCompile(`(?s)\s*<OIDCAttributeMapping>.*?</OIDCAttributeMapping>`),
}

// renamed lists attributes that had another name in API 30.
var renamed = []struct{ from, to []byte }{
	{[]byte(" sizeMb="), []byte(" size=")},
}

// Published removes from an XML document what is newer than the schemas that VMware published, so that the document
// can be validated against them.
func Published(doc []byte) []byte {
	for _, re := range newer {
		doc = re.ReplaceAll(doc, nil)
	}
	for _, r := range renamed {
		doc = bytes.ReplaceAll(doc, r.from, r.to)
	}
	return doc
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"regexp"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// ExtraConfig reports the extra configuration keys that an identity does not allow. Keys are compared
// case-insensitively, as the hypervisor does.
func ExtraConfig(entries []infrav1.ExtraConfigEntry, identity string, allowed []string) *Finding {
	var refused []string
	for _, entry := range entries {
		matches := func(pattern string) bool { return keyMatcher(pattern).MatchString(entry.Key) }
		if ReservedExtraConfig(entry.Key) || !slices.ContainsFunc(allowed, matches) {
			refused = append(refused, entry.Key)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return finding(infrav1.ExtraConfigNotAllowedReason, "leave them out, or have the owner of the identity add them to its spec.allowedExtraConfig", "%s does not allow these keys of spec.extraConfig: %s", identity, strings.Join(refused, ", "))
}

// ReservedExtraConfig reports whether a key is reserved. No identity can allow reserved keys, because the provider uses
// them to configure the guest.
func ReservedExtraConfig(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, "guestinfo") || lower == "disk.enableuuid"
}

// keyMatcher returns a matcher for whole keys. An asterisk in the pattern matches any characters.
func keyMatcher(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
}

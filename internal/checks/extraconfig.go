// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"regexp"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// ExtraConfig reports the keys of extra configuration that an identity does not allow. The hypervisor takes keys in any
// case.
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
	return finding(infrav1.ExtraConfigNotAllowedReason, "leave them out, or have the owner of the identity add them to its "+
		"spec.allowedExtraConfig", "%s does not allow these keys of spec.extraConfig: %s", identity, strings.Join(refused, ", "))
}

// ReservedExtraConfig reports whether no identity can allow a key, because the provider configures the guest by it.
func ReservedExtraConfig(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, "guestinfo") || lower == "disk.enableuuid"
}

// keyMatcher returns what matches the whole keys that a pattern stands for.
func keyMatcher(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
}

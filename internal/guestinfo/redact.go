// SPDX-License-Identifier: Apache-2.0

package guestinfo

import "strings"

const (
	// redactedValue is the value that cloud-init writes to a redacted key: an empty YAML document.
	redactedValue = "---"
	// redactedIgnition is the value that Ignition writes to its key: an empty JSON object in base64.
	redactedIgnition = "e30K"
)

// bootstrapKeys are the keys for bootstrap data of both formats.
var bootstrapKeys = []string{
	KeyUserdata,
	KeyUserdataEncoding,
	KeyIgnition,
	KeyIgnitionEncoding,
	keyCAPVCDName,
	keyCAPVCDNetwork,
}

// Redacted reports whether extraConfig no longer contains bootstrap data. Either the guest has removed it after reading
// it, or the controller has. The metadata makes cloud-init do so on its first boot; Ignition does so since 2.14.
func Redacted(extraConfig map[string]string) bool {
	config := extraConfig[KeyIgnition]
	return blank(extraConfig[KeyUserdata]) && (blank(config) || config == redactedIgnition)
}

// Leftovers returns the keys to clear on a VM when values from [Render] are written to it. They are bootstrap data of
// the other format, which a template that was captured from a VM may still contain.
func Leftovers(extraConfig, values map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range bootstrapKeys {
		if _, written := values[key]; !written && extraConfig[key] != "" {
			out[key] = ""
		}
	}
	return out
}

// ClearUserdata returns the values that remove bootstrap data from a VM whose guest did not remove it. The caller must
// not write them before the guest has read the data. Metadata remains, as the package comment explains. VCD removes
// keys with an empty value. User data is set to the value that cloud-init writes itself, so that the next boot of the
// guest finds a known state.
func ClearUserdata() map[string]string {
	return map[string]string{
		KeyUserdata:         redactedValue,
		KeyUserdataEncoding: "",
		KeyIgnition:         "",
		KeyIgnitionEncoding: "",
	}
}

// blank reports whether cloud-init treats a value as empty. It ignores white space, because a guest cannot set a key to
// an empty value and writes a space instead.
func blank(value string) bool {
	value = strings.TrimSpace(value)
	return value == "" || value == redactedValue
}

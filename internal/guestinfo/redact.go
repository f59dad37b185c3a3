// SPDX-License-Identifier: Apache-2.0

package guestinfo

import "strings"

const (
	// redactedValue is what cloud-init writes over a redacted key: an empty YAML document.
	redactedValue = "---"
	// redactedIgnition is what Ignition writes over its key: an empty JSON object, in base64.
	redactedIgnition = "e30K"
)

// bootstrapKeys are the keys of both formats.
var bootstrapKeys = []string{
	KeyUserdata,
	KeyUserdataEncoding,
	KeyIgnition,
	KeyIgnitionEncoding,
	keyCAPVCDName,
	keyCAPVCDNetwork,
}

// Redacted reports whether extraConfig holds no bootstrap data any more: the guest has read and removed it,
// as cloud-init does on its first boot because of the metadata, and Ignition since 2.14, or the controller has.
func Redacted(extraConfig map[string]string) bool {
	config := extraConfig[KeyIgnition]
	return blank(extraConfig[KeyUserdata]) && (blank(config) || config == redactedIgnition)
}

// Leftovers returns what to write with values from [Render] to a VM with extraConfig, to remove bootstrap data of the
// other format: a template that was captured from a VM may still have it.
func Leftovers(extraConfig, values map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range bootstrapKeys {
		if _, written := values[key]; !written && extraConfig[key] != "" {
			out[key] = ""
		}
	}
	return out
}

// ClearUserdata returns what to write to remove bootstrap data from a VM whose guest did not. It must not be
// written before the guest has read it. Metadata stays: see the package comment. An empty value makes VCD drop
// the key; user data gets the value that cloud-init itself leaves, so that either way the guest's next boot
// meets a state it knows.
func ClearUserdata() map[string]string {
	return map[string]string{
		KeyUserdata:         redactedValue,
		KeyUserdataEncoding: "",
		KeyIgnition:         "",
		KeyIgnitionEncoding: "",
	}
}

// blank reports whether cloud-init treats a value as none. It strips white space, because a guest cannot set a
// key to nothing and writes a space.
func blank(value string) bool {
	value = strings.TrimSpace(value)
	return value == "" || value == redactedValue
}

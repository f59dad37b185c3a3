// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"regexp"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
)

// oneOf returns value if the list contains it, otherwise the empty string.
func oneOf(value string, list ...string) string {
	if slices.Contains(list, value) {
		return value
	}
	return ""
}

// guestOS matches vSphere's identifiers of guest operating systems.
var guestOS = regexp.MustCompile(`^(almalinux|amazonlinux[0-9]{0,2}|asianux[0-9]{0,2}|centos[0-9]{0,2}|coreos|crxPod1|` +
	`crxSys1|debian[0-9]{0,2}|dos|fedora|freebsd([0-9]{2})?|genericLinux|mandriva|nld9|oes|opensuse|oracleLinux[0-9]{0,2}|` +
	`other(26x|3x|4x|5x|6x|7x)?Linux|other|redhat|rhel[0-9]{1,2}|rockylinux|sles([0-9]{2})?|suse|turboLinux|ubuntu|` +
	`vmkernel[0-9]{0,2}|vmwarePhoton|windows(7|8|9|11|12)?(Server)?|windows(2019|2022)srv(Next)?)(_?64)?Guest$`)

var hardwareVersion = regexp.MustCompile(`^vmx-[0-9]{1,2}$`)

func matching(value string, pattern *regexp.Regexp) string {
	if pattern.MatchString(value) {
		return value
	}
	return ""
}

// readingRights are additional rights that the export itself requires.
var readingRights = []string{
	"Access All Organization VDCs",
	"General: Administrator View",
	"Organization vDC: View",
	"Organization vDC Gateway: View",
	"Organization vDC Gateway: View DHCP",
}

// knownRights returns the rights that a file may contain: those that this project uses.
func knownRights() []string {
	all := slices.Clone(readingRights)
	for _, row := range rights.Table() {
		all = append(all, row.Rights...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

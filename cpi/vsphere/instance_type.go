// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"fmt"
	"regexp"
	"strings"
)

// irregular maps guest IDs to short names that cannot be derived from the ID.
var irregular = map[string]string{
	"centos64Guest":              "centos64",
	"sles64Guest":                "sles64",
	"redhatGuest":                "rhel",
	"genericLinuxGuest":          "linux",
	"vmwarePhoton64Guest":        "photon",
	"turboLinuxGuest":            "turbolinux",
	"turboLinux64Guest":          "turbolinux",
	"unixWare7Guest":             "unixware7",
	"otherGuest64":               "other",
	"windowsHyperVGuest":         "windowshyperv",
	"windows9Guest":              "win10",
	"windows9_64Guest":           "win10",
	"windows9Server64Guest":      "win10server",
	"windows2019srvNext_64Guest": "win2022srv",
	"windows2022srvNext_64Guest": "win2025srv",
}

var (
	anyLinux  = regexp.MustCompile(`^other([0-9]+x)?Linux(64)?Guest$`)
	anyDarwin = regexp.MustCompile(`^darwin[0-9]*(_64|64)?Guest$`)
	guestID   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*?)_?(64)?Guest$`)
)

// shortOS returns the short name of a guest operating system, as used in instance types.
func shortOS(id string) string {
	switch name := irregular[id]; {
	case name != "":
		return name
	case anyLinux.MatchString(id):
		return "linux"
	case anyDarwin.MatchString(id):
		return "darwin"
	}
	match := guestID.FindStringSubmatch(id)
	if match == nil {
		return "unknown"
	}
	if strings.HasPrefix(match[1], "win") {
		return "win" + strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(match[1], "win"), "dows"))
	}
	return match[1]
}

// instanceType returns the instance type of a VM in the same form as the vSphere CPI.
func instanceType(cpus, memoryMiB int32, guestID string) string {
	return fmt.Sprintf("vsphere-vm.cpu-%d.mem-%dgb.os-%s", cpus, memoryMiB/1024, shortOS(guestID))
}

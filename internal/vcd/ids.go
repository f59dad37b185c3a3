// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"regexp"
	"strings"
)

// Kinds of objects as they stand in URNs.
const (
	kindVDC            = "vdc"
	kindVApp           = "vapp"
	kindVM             = "vm"
	kindTask           = "task"
	kindTemplate       = "vapptemplate"
	kindNetwork        = "network"
	kindDisk           = "disk"
	kindCatalog        = "catalog"
	kindStorageProfile = "vdcstorageProfile"
	kindOrg            = "org"
	kindComputePolicy  = "vdcComputePolicy"
	kindAffinityRule   = "vmAffinityRule"
)

var (
	uuidPattern = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	urnPattern  = regexp.MustCompile(`^urn:vcloud:([A-Za-z0-9]+):(` + uuidPattern.String() + `)$`)
)

// paths of the XML API by kind of object; the UUID is appended.
var pathByKind = map[string]string{
	kindVDC:            "/api/vdc/",
	kindVApp:           "/api/vApp/vapp-",
	kindVM:             "/api/vApp/vm-",
	kindTask:           "/api/task/",
	kindTemplate:       "/api/vAppTemplate/vappTemplate-",
	kindNetwork:        "/api/network/",
	kindDisk:           "/api/disk/",
	kindCatalog:        "/api/catalog/",
	kindStorageProfile: "/api/vdcStorageProfile/",
	kindOrg:            "/api/org/",
	kindAffinityRule:   "/api/vmAffinityRule/",
}

// kindOfHRef maps what comes before the UUID in an href to the kind of the object.
var kindOfHRef = []struct{ part, kind string }{
	{"/vApp/vapp-", kindVApp},
	{"/vApp/vm-", kindVM},
	{"/vAppTemplate/vappTemplate-", kindTemplate},
	{"/vAppTemplate/vm-", kindVM},
	{"/vdcStorageProfile/", kindStorageProfile},
	{"/vdc/", kindVDC},
	{"/task/", kindTask},
	{"/network/", kindNetwork},
	{"/disk/", kindDisk},
	{"/catalog/", kindCatalog},
	{"/vmAffinityRule/", kindAffinityRule},
	{"/org/", kindOrg},
}

// isURN reports whether s is a URN rather than a name.
func isURN(s string) bool { return urnPattern.MatchString(s) }

// uuidOf returns the UUID in a URN or href; empty if there is none.
func uuidOf(s string) string { return strings.ToLower(uuidPattern.FindString(s)) }

// urnOf returns the URN of the object that ref names: a URN, a bare UUID or an href. VCD uses all three for the
// same attribute.
func urnOf(kind, ref string) string {
	if match := urnPattern.FindStringSubmatch(ref); match != nil {
		return ref
	}
	for _, known := range kindOfHRef {
		if strings.Contains(ref, known.part) {
			kind = known.kind
			break
		}
	}
	if id := uuidOf(ref); id != "" {
		return "urn:vcloud:" + kind + ":" + id
	}
	return ""
}

// pathOf returns the path of an object in the XML API. URLs are always built from ids: what a server writes into an
// href decides nothing.
func pathOf(kind, urn string) string { return pathByKind[kind] + uuidOf(urn) }

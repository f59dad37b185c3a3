// SPDX-License-Identifier: Apache-2.0

// Package urn knows the identities of VCD's objects: URNs, the UUIDs in them, the addresses that the XML API writes, and
// its paths. It makes no calls, and does not know what the objects are.
package urn

import (
	"regexp"
	"strings"
)

// Kinds of objects as they stand in URNs.
const (
	VDC            = "vdc"
	VApp           = "vapp"
	VM             = "vm"
	Task           = "task"
	Template       = "vapptemplate"
	Network        = "network"
	Disk           = "disk"
	Catalog        = "catalog"
	StorageProfile = "vdcstorageProfile"
	Org            = "org"
	ComputePolicy  = "vdcComputePolicy"
	AffinityRule   = "vmAffinityRule"
)

var (
	// UUIDPattern matches a UUID anywhere in a text.
	UUIDPattern = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	urnPattern  = regexp.MustCompile(`^urn:vcloud:([A-Za-z0-9]+):(` + UUIDPattern.String() + `)$`)
)

// pathByKind holds the paths of the XML API; the UUID is appended.
var pathByKind = map[string]string{
	VDC:            "/api/vdc/",
	VApp:           "/api/vApp/vapp-",
	VM:             "/api/vApp/vm-",
	Task:           "/api/task/",
	Template:       "/api/vAppTemplate/vappTemplate-",
	Network:        "/api/network/",
	Disk:           "/api/disk/",
	Catalog:        "/api/catalog/",
	StorageProfile: "/api/vdcStorageProfile/",
	Org:            "/api/org/",
	AffinityRule:   "/api/vmAffinityRule/",
}

// kindOfHRef maps what comes before the UUID in an href to the kind of the object.
var kindOfHRef = []struct{ part, kind string }{
	{"/vApp/vapp-", VApp},
	{"/vApp/vm-", VM},
	{"/vAppTemplate/vappTemplate-", Template},
	{"/vAppTemplate/vm-", VM},
	{"/vdcStorageProfile/", StorageProfile},
	{"/vdc/", VDC},
	{"/task/", Task},
	{"/network/", Network},
	{"/disk/", Disk},
	{"/catalog/", Catalog},
	{"/vmAffinityRule/", AffinityRule},
	{"/org/", Org},
}

// Is reports whether s is a URN rather than a name.
func Is(s string) bool { return urnPattern.MatchString(s) }

// UUID returns the UUID in a URN or href; empty if there is none.
func UUID(s string) string { return strings.ToLower(UUIDPattern.FindString(s)) }

// Of returns the URN of the object that ref names: a URN, a bare UUID or an href. VCD uses all three for the
// same attribute.
func Of(kind, ref string) string {
	if match := urnPattern.FindStringSubmatch(ref); match != nil {
		return ref
	}
	for _, known := range kindOfHRef {
		if strings.Contains(ref, known.part) {
			kind = known.kind
			break
		}
	}
	if id := UUID(ref); id != "" {
		return "urn:vcloud:" + kind + ":" + id
	}
	return ""
}

// Path returns the path of an object in the XML API. URLs are always built from ids: what a server writes into an
// href decides nothing.
func Path(kind, urn string) string { return pathByKind[kind] + UUID(urn) }

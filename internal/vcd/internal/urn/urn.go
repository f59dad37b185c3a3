// SPDX-License-Identifier: Apache-2.0

// Package urn converts identities of VCD's objects: URNs, their UUIDs, and the URLs and paths of the XML API. It sends
// no requests.
package urn

import (
	"regexp"
	"strings"
)

// Kinds of objects as they appear in URNs.
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

// pathByKind maps kinds to the paths of the XML API, without the UUID at their end.
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

// kindOfHRef maps the text before the UUID in an href to the kind of the object.
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

// Is reports whether s is a URN.
func Is(s string) bool { return urnPattern.MatchString(s) }

// UUID returns the UUID in a URN or href, or the empty string.
func UUID(s string) string { return strings.ToLower(UUIDPattern.FindString(s)) }

// Of returns the URN of the object that ref refers to, or the empty string. The reference is a URN, a bare UUID or an
// href, because VCD uses all three for the same attribute. The kind is only used if ref does not contain one.
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

// Path returns the path of an object in the XML API. URLs are always built from IDs: hrefs of a server are never used
// as URLs.
func Path(kind, urn string) string { return pathByKind[kind] + UUID(urn) }

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// A VAppRecord is what one row of the query of vApps says.
type VAppRecord struct {
	Ref

	VDC     Ref
	Status  Status
	Created time.Time
}

// List returns the vApps of the organization that the user is shown, in all VDCs, sorted by name.
func (v *VApps) List(ctx context.Context) ([]VAppRecord, error) {
	records, err := queryAll(ctx, v.client, "vApp", "vApps", "", "name",
		func(r *types.QueryResultVAppRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultVAppRecordType) {
			return found.VAppRecord, found.AdminVAppRecord
		})
	found := make([]VAppRecord, 0, len(records))
	for _, r := range records {
		found = append(found, VAppRecord{
			Ref:     Ref{ID: urnOf(kindVApp, r.HREF), Name: r.Name},
			VDC:     Ref{ID: urnOf(kindVDC, r.VdcHREF), Name: r.VdcName},
			Status:  parseStatus(r.Status),
			Created: parseTime(r.CreationDate),
		})
	}
	return found, wrapped(err, "listing vApps of organization", v.client.config.Org)
}

// MetadataValue reads a value of a vApp's metadata; empty if there is none.
func (v *VApps) MetadataValue(ctx context.Context, id, key string) (string, error) {
	var doc types.MetadataValue
	err := v.client.getXML(ctx, pathOf(kindVApp, id)+"/metadata/"+url.PathEscape(key), &doc)
	if err = readable(err); err != nil || doc.TypedValue == nil {
		return "", wrapped(err, "reading metadata of vApp", id)
	}
	return doc.TypedValue.Value, nil
}

// A VAppDetails is a vApp with its VMs in full.
type VAppDetails struct {
	VApp

	Created  time.Time
	Children []VM
}

// Details reads a vApp with all VMs in it, by one call.
func (v *VApps) Details(ctx context.Context, id string) (VAppDetails, error) {
	var doc types.VApp
	if err := v.client.getXML(ctx, pathOf(kindVApp, id), &doc); err != nil {
		return VAppDetails{}, err
	}
	found := VAppDetails{VApp: vAppFrom(&doc), Created: parseTime(doc.DateCreated)}
	if found.ID == "" {
		return VAppDetails{}, unavailable("the answer is no vApp of VCD")
	}
	if doc.Children != nil {
		for _, vm := range doc.Children.VM {
			found.Children = append(found.Children, vmFrom(vm))
		}
	}
	return found, nil
}

// AtAddress finds the VMs that the user is shown whose primary address is one.
func (i *Inventory) AtAddress(ctx context.Context, address netip.Addr) ([]VMRecord, error) {
	records, err := i.queryVMs(ctx, allOf(is("ipAddress", address.String()), is("isVAppTemplate", "false")))
	var found []VMRecord
	for _, record := range records {
		found = append(found, vmRecord(record))
	}
	return found, err
}

// Since lists the tasks of all users that VCD began after a time, as far as the user may see them.
func (ts *Tasks) Since(ctx context.Context, after time.Time) ([]Task, error) {
	filter := "startDate=gt=" + escapeValue(after.UTC().Format("2006-01-02T15:04:05.000Z"))
	return ts.logged(ctx, filter)
}

// Visible lists the edge gateways that the user is shown, sorted by name.
func (g *Gateways) Visible(ctx context.Context) ([]Gateway, error) {
	return listAs(ctx, g.client, listing{path: gatewaysPage, what: "edge gateways", sort: "name"},
		(*wireGateway).gateway)
}

// A TypeVersion is a version of a type of runtime defined entities.
type TypeVersion struct{ ID, Vendor, Namespace, Version string }

type wireTypeVersion struct {
	wireRef

	Vendor  string `json:"vendor"`
	NSS     string `json:"nss"`
	Version string `json:"version"`
}

// TypeVersions lists the versions of a type of entities that the site has and the user is shown.
func (e *Entities) TypeVersions(ctx context.Context, vendor, namespace string) ([]TypeVersion, error) {
	lines, err := listAll[wireTypeVersion](ctx, e.client, listing{
		path:  "/cloudapi/1.0.0/entityTypes",
		what:  "entity types",
		terms: []term{is("vendor", vendor), is("nss", namespace)},
	})
	var found []TypeVersion
	for _, w := range lines {
		if strings.EqualFold(w.Vendor, vendor) && strings.EqualFold(w.NSS, namespace) {
			found = append(found, TypeVersion{w.ID, w.Vendor, w.NSS, w.Version})
		}
	}
	return found, readable(err)
}

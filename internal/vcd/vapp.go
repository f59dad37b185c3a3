// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A VApp is a vApp with the names of its VMs.
type VApp struct {
	Ref

	Description  string // carries the ownership marker
	Status       Status
	Deployed     bool
	Networks     []string // names of the organization networks it is connected to
	VMs          []Ref
	Tasks        []Task // unfinished tasks that hold it
	RuntimeLease time.Duration
	StorageLease time.Duration
	LeaseEnd     time.Time // zero if never
}

// VApps are the vApps of VDCs.
type VApps struct {
	client  *api.Client
	lookups *cache.Cache
}

// FindVApp finds a vApp of the VDC by name. Its id is cached, so that the next time takes one call.
func (v *VApps) FindVApp(ctx context.Context, vdc VDC, name string) (VApp, error) {
	cacheKey := cache.Key("vapp", vdc.ID, name)
	if id, ok := v.lookups.Get(ctx, cacheKey); ok {
		found, err := v.VApp(ctx, fmt.Sprint(id))
		if err == nil && found.Name == name {
			return found, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrForbidden) {
			return VApp{}, err
		}
		v.lookups.Drop(cacheKey) // deleted or renamed; there may be another
	}
	ref, err := v.locateVApp(ctx, vdc, name)
	if err != nil {
		return VApp{}, err
	}
	found, err := v.VApp(ctx, ref.ID)
	if err == nil {
		v.lookups.Put(cacheKey, ref.ID)
	}
	return found, err
}

func (v *VApps) locateVApp(ctx context.Context, vdc VDC, name string) (Ref, error) {
	in := "VDC " + vdc.Name
	if err := fiql.CheckName("vApp", name, in); err != nil {
		return Ref{}, err
	}
	var found types.QueryResultRecordsType
	filter := fiql.AllOf(fiql.Is("name", name), fiql.Is("vdc", vdc.ID))
	if err := v.client.QueryPage(ctx, "vApp", filter, 1, "", &found); err != nil {
		return Ref{}, fmt.Errorf("looking up vApp %s: %w", name, err)
	}
	var hits []Ref
	for _, record := range api.Both(found.VAppRecord, found.AdminVAppRecord) {
		hits = append(hits, Ref{ID: urn.Of(urn.VApp, record.HREF), Name: record.Name})
	}
	return only("vApp", name, in, hits)
}

// VApp reads a vApp.
func (v *VApps) VApp(ctx context.Context, id string) (VApp, error) {
	var doc types.VApp
	if err := v.client.GetXML(ctx, urn.Path(urn.VApp, id), &doc); err != nil {
		return VApp{}, err
	}
	found := vAppFrom(&doc)
	if found.ID == "" {
		return VApp{}, failure.Unavailable("the response is not a VCD vApp")
	}
	return found, nil
}

// A VAppRecord is what one row of the query of vApps says.
type VAppRecord struct {
	Ref

	VDC     Ref
	Status  Status
	Created time.Time
}

// List returns the vApps of the organization that the user is shown, in all VDCs, sorted by name.
func (v *VApps) List(ctx context.Context) ([]VAppRecord, error) {
	records, err := api.QueryAll(ctx, v.client, "vApp", "vApps", "", "name",
		func(r *types.QueryResultVAppRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultVAppRecordType) {
			return found.VAppRecord, found.AdminVAppRecord
		})
	found := make([]VAppRecord, 0, len(records))
	for _, r := range records {
		found = append(found, VAppRecord{
			Ref:     Ref{ID: urn.Of(urn.VApp, r.HREF), Name: r.Name},
			VDC:     Ref{ID: urn.Of(urn.VDC, r.VdcHREF), Name: r.VdcName},
			Status:  parseStatus(r.Status),
			Created: wire.Time(r.CreationDate),
		})
	}
	return found, failure.Wrap(err, "listing vApps of organization", v.client.Org)
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
	if err := v.client.GetXML(ctx, urn.Path(urn.VApp, id), &doc); err != nil {
		return VAppDetails{}, err
	}
	found := VAppDetails{VApp: vAppFrom(&doc), Created: wire.Time(doc.DateCreated)}
	if found.ID == "" {
		return VAppDetails{}, failure.Unavailable("the response is not a VCD vApp")
	}
	if doc.Children != nil {
		for _, vm := range doc.Children.VM {
			found.Children = append(found.Children, vmFrom(vm))
		}
	}
	return found, nil
}

func vAppFrom(doc *types.VApp) VApp {
	v := VApp{
		Ref:         Ref{ID: urn.Of(urn.VApp, doc.ID), Name: doc.Name},
		Description: doc.Description,
		Status:      Status(doc.Status),
		Deployed:    doc.Deployed,
		Tasks:       unfinished(doc.Tasks),
	}
	if v.ID == "" {
		v.ID = urn.Of(urn.VApp, doc.HREF)
	}
	if doc.NetworkConfigSection != nil {
		for _, n := range doc.NetworkConfigSection.NetworkConfig {
			// "none" is what VCD writes for NICs that are not connected.
			if n.Configuration != nil && n.Configuration.ParentNetwork != nil && n.NetworkName != "none" {
				v.Networks = append(v.Networks, n.NetworkName)
			}
		}
	}
	if doc.Children != nil {
		for _, vm := range doc.Children.VM {
			v.VMs = append(v.VMs, Ref{ID: urn.Of(urn.VM, vm.HREF), Name: vm.Name})
			v.Tasks = append(v.Tasks, unfinished(vm.Tasks)...)
		}
	}
	if lease := doc.LeaseSettingsSection; lease != nil {
		v.RuntimeLease = time.Duration(lease.DeploymentLeaseInSeconds) * time.Second
		v.StorageLease = time.Duration(lease.StorageLeaseInSeconds) * time.Second
		v.LeaseEnd = earliest(wire.Time(lease.DeploymentLeaseExpiration), wire.Time(lease.StorageLeaseExpiration))
	}
	return v
}

// earliest returns the earlier of two times, of which the zero time is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// DeleteVApp starts the next step of deleting a vApp: undeploying it while it is deployed, else removing it. Call it
// again when the task has ended, until it fails with [ErrNotFound]. It deletes all VMs of the vApp; the caller has made
// sure that they are its own.
func (v *VApps) DeleteVApp(ctx context.Context, id string) (Task, error) {
	found, err := v.VApp(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if found.Deployed {
		return startUndeploying(ctx, v.client, urn.Path(urn.VApp, id), "powerOff")
	}
	return startXML(ctx, v.client, http.MethodDelete, urn.Path(urn.VApp, id), "", nil)
}

// SetLease starts setting the leases of a vApp; 0 is never. Where the organization caps them, VCD refuses or shortens:
// read the vApp to see what it is.
func (v *VApps) SetLease(ctx context.Context, vAppID string, runtime, storage time.Duration) (Task, error) {
	section := wire.NewLeaseSection(runtime, storage)
	section.Xmlns = wire.NamespaceVCloud
	section.XmlnsOVF = wire.NamespaceOVF
	return startXML(ctx, v.client, http.MethodPut, urn.Path(urn.VApp, vAppID)+"/leaseSettingsSection/", wire.MIMELease, section)
}

// ConnectNetworks starts connecting networks to a vApp, in addition to those it has.
func (v *VApps) ConnectNetworks(ctx context.Context, vAppID string, networks []Ref) (Task, error) {
	path := urn.Path(urn.VApp, vAppID) + "/networkConfigSection/"
	got, err := v.client.Do(ctx, api.Call{Method: http.MethodGet, Path: path})
	if err != nil {
		return Task{}, err
	}
	doc, err := wire.ParseXML(got.Body)
	if err != nil {
		return Task{}, err
	}
	known := map[string]bool{}
	for _, n := range doc.Nodes("NetworkConfig") {
		known[n.Attr("networkName")] = true
	}
	for _, n := range networks {
		if known[n.Name] {
			continue
		}
		config := bridged(v.client, n)
		config.Xmlns = wire.NamespaceVCloud
		added, err := wire.NewNode(config)
		if err != nil {
			return Task{}, err
		}
		doc.InsertBefore("", added)
	}
	return startXML(ctx, v.client, http.MethodPut, path, wire.MIMENetworkConfig, doc.Document())
}

// bridged connects an organization network, bridged and under its own name.
func bridged(c *api.Client, n Ref) wire.NetworkConfig {
	return wire.NetworkConfig{
		Name:      n.Name,
		Parent:    wire.XMLRef{HRef: c.Href(urn.Network, n.ID), ID: n.ID, Name: n.Name},
		FenceMode: "bridged",
	}
}

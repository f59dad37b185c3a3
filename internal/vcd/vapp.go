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

	Description  string // contains the ownership marker
	Status       Status
	Deployed     bool
	Networks     []string // names of connected organization networks
	VMs          []Ref
	Tasks        []Task // unfinished tasks that lock it
	RuntimeLease time.Duration
	StorageLease time.Duration
	LeaseEnd     time.Time // zero: never
}

// VApps is the client for vApps.
type VApps struct {
	client  *api.Client
	lookups *cache.Cache
}

// FindVApp finds a vApp in the VDC by name. It caches the ID of the vApp, so that the next call sends only one request.
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
		v.lookups.Drop(cacheKey) // deleted or renamed; another vApp may have the name
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

// A VAppRecord is a vApp in the result of a query.
type VAppRecord struct {
	Ref

	VDC     Ref
	Status  Status
	Created time.Time
}

// List returns the vApps of the organization in all VDCs that are visible to the user, sorted by name.
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

// A VAppDetails is a vApp with all fields of its VMs.
type VAppDetails struct {
	VApp

	Created  time.Time
	Children []VM
}

// Details reads a vApp with all its VMs in one request.
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
			// VCD writes "none" for NICs that are not connected.
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

// earliest returns the earlier of two times. The zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// DeleteVApp starts the next step in the deletion of a vApp: it undeploys a deployed vApp, otherwise it removes the
// vApp. Call it again after the task has finished, until it fails with [ErrNotFound]. It deletes all VMs in the vApp,
// so the caller must verify that it owns them.
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

// SetLease starts setting the leases of a vApp; 0 means never. If the organization limits leases, VCD rejects or
// shortens them: read the vApp to get the result.
func (v *VApps) SetLease(ctx context.Context, vAppID string, runtime, storage time.Duration) (Task, error) {
	section := wire.NewLeaseSection(runtime, storage)
	section.Xmlns = wire.NamespaceVCloud
	section.XmlnsOVF = wire.NamespaceOVF
	return startXML(ctx, v.client, http.MethodPut, urn.Path(urn.VApp, vAppID)+"/leaseSettingsSection/", wire.MIMELease, section)
}

// ConnectNetworks starts connecting networks to a vApp, in addition to those already connected.
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

// bridged returns the configuration that connects an organization network in bridged mode under its own name.
func bridged(c *api.Client, n Ref) wire.NetworkConfig {
	return wire.NetworkConfig{
		Name:      n.Name,
		Parent:    wire.XMLRef{HRef: c.Href(urn.Network, n.ID), ID: n.ID, Name: n.Name},
		FenceMode: "bridged",
	}
}

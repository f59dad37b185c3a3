// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A VAppSpec describes a new vApp. Its leases are set to never expire.
type VAppSpec struct {
	Name        string
	Description string
	Networks    []Ref    // organization networks to connect, in bridged mode
	VMs         []VMSpec // created in the same request
}

// A VMSpec describes a new VM.
type VMSpec struct {
	Name            string
	Description     string
	Template        Template
	NICs            []NIC // Index, Network, Mode, Address (MANUAL), Primary, Adapter
	SizingPolicy    *Policy
	PlacementPolicy *Policy
	StorageProfile  *StorageProfile
	ComputerName    string
}

// defaultAdapter is the adapter type of NICs without one.
const defaultAdapter = "VMXNET3"

// ComposeVApp starts the creation of a vApp with its first VMs, in one request that contains their descriptions. The
// returned vApp has its ID immediately.
func (v *VApps) ComposeVApp(ctx context.Context, vdc VDC, spec VAppSpec) (VApp, Task, error) {
	what := v.composition("ComposeVAppParams", spec.VMs)
	what.Name = spec.Name
	what.Description = spec.Description
	what.Params = &wire.Instantiation{Lease: wire.NewLeaseSection(0, 0)}
	if len(spec.Networks) > 0 {
		section := &wire.NetworkConfigSection{Info: "Networks"}
		for _, n := range spec.Networks {
			section.Networks = append(section.Networks, bridged(v.client, n))
		}
		what.Params.NetworkConfig = section
	}
	got, err := v.client.Do(ctx, api.Call{
		Method:      http.MethodPost,
		Path:        urn.Path(urn.VDC, vdc.ID) + "/action/composeVApp",
		ContentType: wire.MIMECompose,
		Content:     what,
	})
	if err != nil {
		return VApp{}, Task{}, fmt.Errorf("composing vApp %s: %w", spec.Name, err)
	}
	var doc types.VApp
	if err := wire.DecodeXML(got.Body, &doc); err != nil {
		return VApp{}, Task{}, err
	}
	created := vAppFrom(&doc)
	if created.ID == "" {
		return VApp{}, Task{},
			failure.Unavailable("the response to composing vApp " + spec.Name + " is not from VCD")
	}
	v.lookups.Put(cache.Key("vapp", vdc.ID, spec.Name), created.ID)
	return created, composeTask(&doc, created), nil
}

// composeTask returns the task in a response. Without one, the creation has already succeeded.
func composeTask(doc *types.VApp, created VApp) Task {
	if doc.Tasks != nil && len(doc.Tasks.Task) > 0 {
		return taskFrom(doc.Tasks.Task[0])
	}
	return Task{Owner: created.ID, State: TaskSucceeded}
}

// AddVMs starts adding VMs to a vApp, in one task for all of them. Their networks must be connected to the vApp: see
// [VApps.ConnectNetworks].
func (v *VApps) AddVMs(ctx context.Context, vAppID string, vms []VMSpec) (Task, error) {
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VApp, vAppID)+"/action/recomposeVApp", wire.MIMERecompose,
		v.composition("RecomposeVAppParams", vms))
}

func (v *VApps) composition(root string, vms []VMSpec) wire.Composition {
	c := wire.Composition{XMLName: xml.Name{Local: root}, Xmlns: wire.NamespaceVCloud, XmlnsOVF: wire.NamespaceOVF, EULAs: true}
	for _, vm := range vms {
		c.Items = append(c.Items, v.sourcedItem(vm))
	}
	return c
}

func (v *VApps) sourcedItem(vm VMSpec) wire.SourcedItem {
	item := wire.SourcedItem{
		Source: wire.XMLRef{
			HRef: v.client.Base + "/api/vAppTemplate/vm-" + urn.UUID(vm.Template.VM.ID),
			ID:   vm.Template.VM.ID,
			Name: vm.Template.VM.Name,
			Type: wire.MIMEVM,
		},
		General: wire.GeneralParams{Name: vm.Name, Description: vm.Description, RegenerateBIOSUUID: true},
		Params: &wire.Instantiation{
			Connections:   connections(vm.NICs),
			Customization: &wire.CustomizationSection{Info: "Guest customization", ComputerName: vm.ComputerName},
		},
	}
	if profile := vm.StorageProfile; profile != nil {
		item.StorageProfile = &wire.XMLRef{HRef: v.client.Href(urn.StorageProfile, profile.ID), ID: profile.ID, Name: profile.Name}
	}
	if vm.SizingPolicy != nil || vm.PlacementPolicy != nil {
		item.Policies = &wire.PolicyRefs{Placement: v.policyRef(vm.PlacementPolicy), Sizing: v.policyRef(vm.SizingPolicy)}
	}
	return item
}

func (v *VApps) policyRef(p *Policy) *wire.XMLRef {
	if p == nil {
		return nil
	}
	return &wire.XMLRef{HRef: v.client.PolicyHRef(p.ID), ID: p.ID, Name: p.Name}
}

// connections returns the network connections of a VM. A VM without NICs gets an empty section, so that it does not
// inherit the NICs of the template.
func connections(nics []NIC) *wire.ConnectionSection {
	section := &wire.ConnectionSection{Info: "Network connections"}
	for _, nic := range nics {
		c := wire.Connection{Network: nic.Network, Index: nic.Index, Connected: true, Mode: string(nic.Mode), Adapter: nic.Adapter}
		if nic.Mode == ModeManual {
			c.Address = nic.Address
		}
		switch {
		case nic.Mode == ModeManual && nic.Secondary != "":
			c.Type = "IPV4"
			c.Secondary = nic.Secondary
			c.SecondaryType = "IPV6"
			c.SecondaryMode = string(ModeManual)
		case nic.SecondaryMode == ModePool:
			c.Type = "IPV4"
			c.SecondaryType = "IPV6"
			c.SecondaryMode = string(ModePool)
		}
		if c.Mode == "" {
			c.Mode = string(ModePool)
		}
		if c.Adapter == "" {
			c.Adapter = defaultAdapter
		}
		if nic.Primary {
			section.Primary = nic.Index
		}
		section.Connections = append(section.Connections, c)
	}
	slices.SortFunc(section.Connections, func(a, b wire.Connection) int { return a.Index - b.Index })
	return section
}

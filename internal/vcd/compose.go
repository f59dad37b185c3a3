// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A VAppSpec is what a new vApp looks like. Leases are set to never expire.
type VAppSpec struct {
	Name        string
	Description string
	Networks    []Ref    // organization networks to connect, bridged
	VMs         []VMSpec // created in the same request
}

// A VMSpec is what a new VM looks like.
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

// Namespaces of what is sent. The SDK's types do not write them as the schema wants, nor more than one VM per request.
const (
	namespaceVCloud = "http://www.vmware.com/vcloud/v1.5"
	namespaceOVF    = "http://schemas.dmtf.org/ovf/envelope/1"
)

// defaultAdapter is the adapter of NICs that name none.
const defaultAdapter = "VMXNET3"

// composition is ComposeVAppParams and RecomposeVAppParams, in the order of the schema.
type composition struct {
	XMLName     xml.Name
	Xmlns       string         `xml:"xmlns,attr"`
	XmlnsOVF    string         `xml:"xmlns:ovf,attr"`
	Name        string         `xml:"name,attr,omitempty"`
	Deploy      bool           `xml:"deploy,attr"`
	PowerOn     bool           `xml:"powerOn,attr"`
	Description string         `xml:"Description,omitempty"`
	Params      *instantiation `xml:"InstantiationParams,omitempty"`
	Items       []sourcedItem  `xml:"SourcedItem"`
	EULAs       bool           `xml:"AllEULAsAccepted"`
}

type instantiation struct {
	Lease         *leaseSection
	NetworkConfig *networkConfigSection
	Connections   *connectionSection
	Customization *customizationSection
}

type leaseSection struct {
	XMLName  xml.Name `xml:"LeaseSettingsSection"`
	Xmlns    string   `xml:"xmlns,attr,omitempty"`
	XmlnsOVF string   `xml:"xmlns:ovf,attr,omitempty"`
	Info     string   `xml:"ovf:Info"`
	Runtime  int64    `xml:"DeploymentLeaseInSeconds"`
	Storage  int64    `xml:"StorageLeaseInSeconds"`
}

func newLeaseSection(runtime, storage time.Duration) *leaseSection {
	return &leaseSection{Info: "Lease settings", Runtime: int64(runtime.Seconds()), Storage: int64(storage.Seconds())}
}

type networkConfigSection struct {
	XMLName  xml.Name        `xml:"NetworkConfigSection"`
	Info     string          `xml:"ovf:Info"`
	Networks []networkConfig `xml:"NetworkConfig"`
}

type networkConfig struct {
	XMLName   xml.Name `xml:"NetworkConfig"`
	Xmlns     string   `xml:"xmlns,attr,omitempty"`
	Name      string   `xml:"networkName,attr"`
	Parent    xmlRef   `xml:"Configuration>ParentNetwork"`
	FenceMode string   `xml:"Configuration>FenceMode"`
}

// networkConfig connects an organization network, bridged and under its own name.
func (v *VApps) networkConfig(n Ref) networkConfig {
	return networkConfig{
		Name:      n.Name,
		Parent:    xmlRef{HRef: v.client.href(urn.Network, n.ID), ID: n.ID, Name: n.Name},
		FenceMode: "bridged",
	}
}

type xmlRef struct {
	HRef string `xml:"href,attr"`
	ID   string `xml:"id,attr,omitempty"`
	Name string `xml:"name,attr,omitempty"`
	Type string `xml:"type,attr,omitempty"`
}

type sourcedItem struct {
	Source         xmlRef         `xml:"Source"`
	General        generalParams  `xml:"VmGeneralParams"`
	Params         *instantiation `xml:"InstantiationParams"`
	StorageProfile *xmlRef        `xml:"StorageProfile,omitempty"`
	Policies       *policyRefs    `xml:"ComputePolicy,omitempty"`
}

type generalParams struct {
	Name               string `xml:"Name"`
	Description        string `xml:"Description"`
	NeedsCustomization bool   `xml:"NeedsCustomization"`
	RegenerateBIOSUUID bool   `xml:"RegenerateBiosUuid"`
}

type policyRefs struct {
	Placement *xmlRef `xml:"VmPlacementPolicy,omitempty"`
	Sizing    *xmlRef `xml:"VmSizingPolicy,omitempty"`
}

type connectionSection struct {
	XMLName     xml.Name     `xml:"NetworkConnectionSection"`
	Info        string       `xml:"ovf:Info"`
	Primary     int          `xml:"PrimaryNetworkConnectionIndex"`
	Connections []connection `xml:"NetworkConnection"`
}

type connection struct {
	Network       string      `xml:"network,attr"`
	Index         int         `xml:"NetworkConnectionIndex"`
	Address       string      `xml:"IpAddress,omitempty"`
	Type          string      `xml:"IpType,omitempty"`
	Secondary     string      `xml:"SecondaryIpAddress,omitempty"`
	SecondaryType string      `xml:"SecondaryIpType,omitempty"`
	Connected     bool        `xml:"IsConnected"`
	Mode          AddressMode `xml:"IpAddressAllocationMode"`
	SecondaryMode AddressMode `xml:"SecondaryIpAddressAllocationMode,omitempty"`
	Adapter       string      `xml:"NetworkAdapterType"`
}

// customizationSection switches VCD's guest customization off: cloud-init does its work, and no password is made up.
type customizationSection struct {
	XMLName      xml.Name `xml:"GuestCustomizationSection"`
	Info         string   `xml:"ovf:Info"`
	Enabled      bool     `xml:"Enabled"`
	Password     bool     `xml:"AdminPasswordEnabled"`
	ComputerName string   `xml:"ComputerName,omitempty"`
}

// ComposeVApp starts the creation of a vApp with its first VMs, in one request that carries their descriptions. The
// vApp has its ID at once.
func (v *VApps) ComposeVApp(ctx context.Context, vdc VDC, spec VAppSpec) (VApp, Task, error) {
	what := v.composition("ComposeVAppParams", spec.VMs)
	what.Name = spec.Name
	what.Description = spec.Description
	what.Params = &instantiation{Lease: newLeaseSection(0, 0)}
	if len(spec.Networks) > 0 {
		section := &networkConfigSection{Info: "Networks"}
		for _, n := range spec.Networks {
			section.Networks = append(section.Networks, v.networkConfig(n))
		}
		what.Params.NetworkConfig = section
	}
	got, err := v.client.do(ctx, call{
		method:      http.MethodPost,
		path:        urn.Path(urn.VDC, vdc.ID) + "/action/composeVApp",
		contentType: mimeCompose,
		content:     what,
	})
	if err != nil {
		return VApp{}, Task{}, fmt.Errorf("composing vApp %s: %w", spec.Name, err)
	}
	var doc types.VApp
	if err := decodeXML(got.Body, &doc); err != nil {
		return VApp{}, Task{}, err
	}
	created := vAppFrom(&doc)
	if created.ID == "" {
		return VApp{}, Task{},
			failure.Unavailable("the answer to composing vApp " + spec.Name + " is none of VCD")
	}
	v.lookups.put(key("vapp", vdc.ID, spec.Name), created.ID)
	return created, composeTask(&doc, created), nil
}

// composeTask returns the task that an answer carries. VCD may have ended it already.
func composeTask(doc *types.VApp, created VApp) Task {
	if doc.Tasks != nil && len(doc.Tasks.Task) > 0 {
		return taskFrom(doc.Tasks.Task[0])
	}
	return Task{Owner: created.ID, State: TaskSucceeded}
}

// AddVMs starts adding VMs to a vApp, by one task for all. Their networks must be connected to the vApp: see
// [VApps.ConnectNetworks].
func (v *VApps) AddVMs(ctx context.Context, vAppID string, vms []VMSpec) (Task, error) {
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VApp, vAppID)+"/action/recomposeVApp", mimeRecompose,
		v.composition("RecomposeVAppParams", vms))
}

func (v *VApps) composition(root string, vms []VMSpec) composition {
	c := composition{XMLName: xml.Name{Local: root}, Xmlns: namespaceVCloud, XmlnsOVF: namespaceOVF, EULAs: true}
	for _, vm := range vms {
		c.Items = append(c.Items, v.sourcedItem(vm))
	}
	return c
}

func (v *VApps) sourcedItem(vm VMSpec) sourcedItem {
	item := sourcedItem{
		Source: xmlRef{
			HRef: v.client.base + "/api/vAppTemplate/vm-" + urn.UUID(vm.Template.VM.ID),
			ID:   vm.Template.VM.ID,
			Name: vm.Template.VM.Name,
			Type: mimeVM,
		},
		General: generalParams{Name: vm.Name, Description: vm.Description, RegenerateBIOSUUID: true},
		Params: &instantiation{
			Connections:   connections(vm.NICs),
			Customization: &customizationSection{Info: "Guest customization", ComputerName: vm.ComputerName},
		},
	}
	if profile := vm.StorageProfile; profile != nil {
		item.StorageProfile = &xmlRef{HRef: v.client.href(urn.StorageProfile, profile.ID), ID: profile.ID, Name: profile.Name}
	}
	if vm.SizingPolicy != nil || vm.PlacementPolicy != nil {
		item.Policies = &policyRefs{Placement: v.policyRef(vm.PlacementPolicy), Sizing: v.policyRef(vm.SizingPolicy)}
	}
	return item
}

func (v *VApps) policyRef(p *Policy) *xmlRef {
	if p == nil {
		return nil
	}
	return &xmlRef{HRef: v.client.policyHRef(p.ID), ID: p.ID, Name: p.Name}
}

// connections returns the network connections of a VM. A VM without NICs gets an empty section, so that those of the
// template do not come along.
func connections(nics []NIC) *connectionSection {
	section := &connectionSection{Info: "Network connections"}
	for _, nic := range nics {
		c := connection{Network: nic.Network, Index: nic.Index, Connected: true, Mode: nic.Mode, Adapter: nic.Adapter}
		if nic.Mode == ModeManual {
			c.Address = nic.Address
		}
		switch {
		case nic.Mode == ModeManual && nic.Secondary != "":
			c.Type = "IPV4"
			c.Secondary = nic.Secondary
			c.SecondaryType = "IPV6"
			c.SecondaryMode = ModeManual
		case nic.SecondaryMode == ModePool:
			c.Type = "IPV4"
			c.SecondaryType = "IPV6"
			c.SecondaryMode = ModePool
		}
		if c.Mode == "" {
			c.Mode = ModePool
		}
		if c.Adapter == "" {
			c.Adapter = defaultAdapter
		}
		if nic.Primary {
			section.Primary = nic.Index
		}
		section.Connections = append(section.Connections, c)
	}
	slices.SortFunc(section.Connections, func(a, b connection) int { return a.Index - b.Index })
	return section
}

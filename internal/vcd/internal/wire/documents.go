// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/xml"
	"time"
)

// MIME types of request bodies.
const (
	MIMECompose       = "application/vnd.vmware.vcloud.composeVAppParams+xml"
	MIMERecompose     = "application/vnd.vmware.vcloud.recomposeVAppParams+xml"
	MIMEUndeploy      = "application/vnd.vmware.vcloud.undeployVAppParams+xml"
	MIMENetworkConfig = "application/vnd.vmware.vcloud.networkConfigSection+xml"
	MIMELease         = "application/vnd.vmware.vcloud.leaseSettingsSection+xml"
	MIMEVM            = "application/vnd.vmware.vcloud.vm+xml"
	MIMEAffinityRule  = "application/vnd.vmware.vcloud.vmaffinityrule+xml"
	MIMEMetadata      = "application/vnd.vmware.vcloud.metadata+xml"
	MIMEDiskParams    = "application/vnd.vmware.vcloud.diskAttachOrDetachParams+xml"
)

// Namespaces in request bodies. The types of the SDK do not write them as the schema requires, nor more than one VM per
// request.
const (
	NamespaceVCloud = "http://www.vmware.com/vcloud/v1.5"
	NamespaceVMW    = "http://www.vmware.com/schema/ovf"
	NamespaceXSI    = "http://www.w3.org/2001/XMLSchema-instance"
	NamespaceOVF    = "http://schemas.dmtf.org/ovf/envelope/1"
)

// Composition is ComposeVAppParams and RecomposeVAppParams, in the order of the schema.
type Composition struct {
	XMLName     xml.Name
	Xmlns       string         `xml:"xmlns,attr"`
	XmlnsOVF    string         `xml:"xmlns:ovf,attr"`
	Name        string         `xml:"name,attr,omitempty"`
	Deploy      bool           `xml:"deploy,attr"`
	PowerOn     bool           `xml:"powerOn,attr"`
	Description string         `xml:"Description,omitempty"`
	Params      *Instantiation `xml:"InstantiationParams,omitempty"`
	Items       []SourcedItem  `xml:"SourcedItem"`
	EULAs       bool           `xml:"AllEULAsAccepted"`
}

// Instantiation is InstantiationParams of a vApp or VM.
type Instantiation struct {
	Lease         *LeaseSection
	NetworkConfig *NetworkConfigSection
	Connections   *ConnectionSection
	Customization *CustomizationSection
}

// LeaseSection is LeaseSettingsSection.
type LeaseSection struct {
	XMLName  xml.Name `xml:"LeaseSettingsSection"`
	Xmlns    string   `xml:"xmlns,attr,omitempty"`
	XmlnsOVF string   `xml:"xmlns:ovf,attr,omitempty"`
	Info     string   `xml:"ovf:Info"`
	Runtime  int64    `xml:"DeploymentLeaseInSeconds"`
	Storage  int64    `xml:"StorageLeaseInSeconds"`
}

// NewLeaseSection returns the leases of a vApp; 0 means that a lease never expires.
func NewLeaseSection(runtime, storage time.Duration) *LeaseSection {
	return &LeaseSection{Info: "Lease settings", Runtime: int64(runtime.Seconds()), Storage: int64(storage.Seconds())}
}

// NetworkConfigSection lists the networks of a vApp.
type NetworkConfigSection struct {
	XMLName  xml.Name        `xml:"NetworkConfigSection"`
	Info     string          `xml:"ovf:Info"`
	Networks []NetworkConfig `xml:"NetworkConfig"`
}

// NetworkConfig connects a vApp to an organization network.
type NetworkConfig struct {
	XMLName   xml.Name `xml:"NetworkConfig"`
	Xmlns     string   `xml:"xmlns,attr,omitempty"`
	Name      string   `xml:"networkName,attr"`
	Parent    XMLRef   `xml:"Configuration>ParentNetwork"`
	FenceMode string   `xml:"Configuration>FenceMode"`
}

// XMLRef is a reference in the XML API.
type XMLRef struct {
	HRef string `xml:"href,attr"`
	ID   string `xml:"id,attr,omitempty"`
	Name string `xml:"name,attr,omitempty"`
	Type string `xml:"type,attr,omitempty"`
}

// SourcedItem is a new VM in a composition.
type SourcedItem struct {
	Source         XMLRef         `xml:"Source"`
	General        GeneralParams  `xml:"VmGeneralParams"`
	Params         *Instantiation `xml:"InstantiationParams"`
	StorageProfile *XMLRef        `xml:"StorageProfile,omitempty"`
	Policies       *PolicyRefs    `xml:"ComputePolicy,omitempty"`
}

// GeneralParams is VmGeneralParams.
type GeneralParams struct {
	Name               string `xml:"Name"`
	Description        string `xml:"Description"`
	NeedsCustomization bool   `xml:"NeedsCustomization"`
	RegenerateBIOSUUID bool   `xml:"RegenerateBiosUuid"`
}

// PolicyRefs is ComputePolicy of a VM.
type PolicyRefs struct {
	Placement *XMLRef `xml:"VmPlacementPolicy,omitempty"`
	Sizing    *XMLRef `xml:"VmSizingPolicy,omitempty"`
}

// ConnectionSection is NetworkConnectionSection.
type ConnectionSection struct {
	XMLName     xml.Name     `xml:"NetworkConnectionSection"`
	Info        string       `xml:"ovf:Info"`
	Primary     int          `xml:"PrimaryNetworkConnectionIndex"`
	Connections []Connection `xml:"NetworkConnection"`
}

// Connection is NetworkConnection: a NIC.
type Connection struct {
	Network       string `xml:"network,attr"`
	Index         int    `xml:"NetworkConnectionIndex"`
	Address       string `xml:"IpAddress,omitempty"`
	Type          string `xml:"IpType,omitempty"`
	Secondary     string `xml:"SecondaryIpAddress,omitempty"`
	SecondaryType string `xml:"SecondaryIpType,omitempty"`
	Connected     bool   `xml:"IsConnected"`
	Mode          string `xml:"IpAddressAllocationMode"`
	SecondaryMode string `xml:"SecondaryIpAddressAllocationMode,omitempty"`
	Adapter       string `xml:"NetworkAdapterType"`
}

// CustomizationSection disables VCD's guest customization, which cloud-init replaces, and the generation of a password.
type CustomizationSection struct {
	XMLName      xml.Name `xml:"GuestCustomizationSection"`
	Info         string   `xml:"ovf:Info"`
	Enabled      bool     `xml:"Enabled"`
	Password     bool     `xml:"AdminPasswordEnabled"`
	ComputerName string   `xml:"ComputerName,omitempty"`
}

// UndeployParams is UndeployVAppParams.
type UndeployParams struct {
	XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 UndeployVAppParams"`
	Action  string   `xml:"UndeployPowerAction"`
}

// DiskParams is DiskAttachOrDetachParams.
type DiskParams struct {
	XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 DiskAttachOrDetachParams"`
	Disk    XMLRef   `xml:"Disk"`
}

// ExtraConfig is an entry of the extra configuration of a VM.
type ExtraConfig struct {
	XMLName  xml.Name `xml:"vmw:ExtraConfig"`
	XmlnsVMW string   `xml:"xmlns:vmw,attr"`
	XmlnsOVF string   `xml:"xmlns:ovf,attr"`
	Required bool     `xml:"ovf:required,attr"`
	Key      string   `xml:"vmw:key,attr"`
	Value    string   `xml:"vmw:value,attr"`
}

// DiskSettings is a new disk, in the order of the schema.
type DiskSettings struct {
	XMLName  xml.Name `xml:"DiskSettings"`
	SizeMiB  int64    `xml:"SizeMb"`
	Unit     int      `xml:"UnitNumber"`
	Bus      int      `xml:"BusNumber"`
	Adapter  string   `xml:"AdapterType"`
	Thin     bool     `xml:"ThinProvisioned"`
	Profile  *XMLRef  `xml:"StorageProfile,omitempty"`
	Override bool     `xml:"overrideVmDefault"`
	IOPS     *IOPSAllocation
}

// IOPSAllocation is IopsAllocation of a disk, as far as it is written.
type IOPSAllocation struct {
	XMLName     xml.Name `xml:"IopsAllocation"`
	Reservation int64    `xml:"Reservation"`
}

// MetadataDocument is the part of Metadata that requests contain.
type MetadataDocument struct {
	XMLName  xml.Name        `xml:"Metadata"`
	Xmlns    string          `xml:"xmlns,attr"`
	XmlnsXSI string          `xml:"xmlns:xsi,attr"`
	Entries  []MetadataEntry `xml:"MetadataEntry"`
}

// MetadataEntry is a metadata key with its value.
type MetadataEntry struct {
	Domain MetadataDomain `xml:"Domain"`
	Key    string         `xml:"Key"`
	Value  TypedValue     `xml:"TypedValue"`
}

// MetadataDomain is the domain of a metadata entry, with the access of tenants to the entry.
type MetadataDomain struct {
	Visibility string `xml:"visibility,attr"`
	Name       string `xml:",chardata"`
}

// TypedValue is the value of a metadata entry.
type TypedValue struct {
	Type  string `xml:"xsi:type,attr"`
	Value string `xml:"Value"`
}

// AffinityRule is an affinity rule in the XML API.
type AffinityRule struct {
	XMLName   xml.Name `xml:"VmAffinityRule"`
	Xmlns     string   `xml:"xmlns,attr,omitempty"`
	HREF      string   `xml:"href,attr,omitempty"`
	ID        string   `xml:"id,attr,omitempty"`
	Name      string   `xml:"Name"`
	Enabled   bool     `xml:"IsEnabled"`
	Mandatory bool     `xml:"IsMandatory"`
	Polarity  string   `xml:"Polarity"`
	VMs       *RuleVMs `xml:"VmReferences"`
}

// RuleVMs is VmReferences of an affinity rule.
type RuleVMs struct {
	VMs []XMLRef `xml:"VmReference"`
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/xml"
	"time"
)

// MIME types of what is sent.
const (
	mimeCompose       = "application/vnd.vmware.vcloud.composeVAppParams+xml"
	mimeRecompose     = "application/vnd.vmware.vcloud.recomposeVAppParams+xml"
	mimeUndeploy      = "application/vnd.vmware.vcloud.undeployVAppParams+xml"
	mimeNetworkConfig = "application/vnd.vmware.vcloud.networkConfigSection+xml"
	mimeLease         = "application/vnd.vmware.vcloud.leaseSettingsSection+xml"
	mimeVM            = "application/vnd.vmware.vcloud.vm+xml"
	mimeAffinityRule  = "application/vnd.vmware.vcloud.vmaffinityrule+xml"
	mimeMetadata      = "application/vnd.vmware.vcloud.metadata+xml"
	mimeDiskParams    = "application/vnd.vmware.vcloud.diskAttachOrDetachParams+xml"
)

// Namespaces of what is sent. The SDK's types do not write them as the schema wants, nor more than one VM per request.
const (
	namespaceVCloud = "http://www.vmware.com/vcloud/v1.5"
	namespaceVMW    = "http://www.vmware.com/schema/ovf"
	namespaceXSI    = "http://www.w3.org/2001/XMLSchema-instance"
	namespaceOVF    = "http://schemas.dmtf.org/ovf/envelope/1"
)

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

// customizationSection switches VCD's guest customization off: cloud-init does its work, and no password is made up.
type customizationSection struct {
	XMLName      xml.Name `xml:"GuestCustomizationSection"`
	Info         string   `xml:"ovf:Info"`
	Enabled      bool     `xml:"Enabled"`
	Password     bool     `xml:"AdminPasswordEnabled"`
	ComputerName string   `xml:"ComputerName,omitempty"`
}

type undeployParams struct {
	XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 UndeployVAppParams"`
	Action  string   `xml:"UndeployPowerAction"`
}

type diskParams struct {
	XMLName xml.Name `xml:"http://www.vmware.com/vcloud/v1.5 DiskAttachOrDetachParams"`
	Disk    xmlRef   `xml:"Disk"`
}

type extraConfig struct {
	XMLName  xml.Name `xml:"vmw:ExtraConfig"`
	XmlnsVMW string   `xml:"xmlns:vmw,attr"`
	XmlnsOVF string   `xml:"xmlns:ovf,attr"`
	Required bool     `xml:"ovf:required,attr"`
	Key      string   `xml:"vmw:key,attr"`
	Value    string   `xml:"vmw:value,attr"`
}

// diskSettings is a new disk, in the order of the schema.
type diskSettings struct {
	XMLName  xml.Name `xml:"DiskSettings"`
	SizeMiB  int64    `xml:"SizeMb"`
	Unit     int      `xml:"UnitNumber"`
	Bus      int      `xml:"BusNumber"`
	Adapter  string   `xml:"AdapterType"`
	Thin     bool     `xml:"ThinProvisioned"`
	Profile  *xmlRef  `xml:"StorageProfile,omitempty"`
	Override bool     `xml:"overrideVmDefault"`
}

// metadataDocument is Metadata, as far as it is written: general metadata that hold text.
type metadataDocument struct {
	XMLName  xml.Name        `xml:"Metadata"`
	Xmlns    string          `xml:"xmlns,attr"`
	XmlnsXSI string          `xml:"xmlns:xsi,attr"`
	Entries  []metadataEntry `xml:"MetadataEntry"`
}

type metadataEntry struct {
	Key   string     `xml:"Key"`
	Value typedValue `xml:"TypedValue"`
}

type typedValue struct {
	Type  string `xml:"xsi:type,attr"`
	Value string `xml:"Value"`
}

// wireAffinityRule is a rule as VCD writes it.
type wireAffinityRule struct {
	XMLName   xml.Name `xml:"VmAffinityRule"`
	Xmlns     string   `xml:"xmlns,attr,omitempty"`
	HREF      string   `xml:"href,attr,omitempty"`
	ID        string   `xml:"id,attr,omitempty"`
	Name      string   `xml:"Name"`
	Enabled   bool     `xml:"IsEnabled"`
	Mandatory bool     `xml:"IsMandatory"`
	Polarity  string   `xml:"Polarity"`
	VMs       *ruleVMs `xml:"VmReferences"`
}

type ruleVMs struct {
	VMs []xmlRef `xml:"VmReference"`
}

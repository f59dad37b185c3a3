// SPDX-License-Identifier: Apache-2.0

// Package guestinfo converts bootstrap data and the network configuration of a VM into extra configuration ("guestinfo"
// keys), from which guests on VMware read both. Bootstrap data of any provider is passed on unchanged: cloud-init's
// DataSourceVMware, or Ignition, receives every byte. The identity of the machine and the configuration of its NICs are
// in guestinfo.metadata, which contains no secrets and remains for the life of the machine. Without it, cloud-init
// would treat the next boot as the first boot of another instance, without network. User data is a secret and is
// removed: the metadata makes cloud-init redact it after reading it.
//
// Ignition does not read metadata. It receives a configuration that writes the same content to files and merges the
// bootstrap data, which the configuration contains as a data URL. Ignition removes the configuration from guestinfo
// after reading it.
//
// The package is pure: equal input results in equal output, byte for byte. It does not know VCD or Kubernetes.
//
// The output relies on these facts, observed with the cloud-init of Debian 12 (22.4.2). The tests read the output with
// the installed version, and also pass with upstream's 26.2:
//   - Metadata is JSON, which cloud-init tries before YAML. The output therefore does not depend on YAML's rules for
//     plain scalars (a MAC address with only digits is a base 60 number in YAML 1.1).
//   - That version refuses a route "to: default", because it parses every version 2 configuration into its own model,
//     independent of the renderer. All versions support 0.0.0.0/0 and ::/0; gateway4 is deprecated.
//   - With renderers other than netplan (the default of Debian and Ubuntu), that version converts ::/0 to ::/64. Guests
//     with such a renderer need router advertisements or a newer cloud-init for IPv6 default routes.
//   - wait-on-network has no timeout and waits for an address on the device of the default route. It is set only if
//     that address is assigned by DHCP.
package guestinfo

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Extra configuration keys.
const (
	KeyMetadata         = "guestinfo.metadata"
	KeyMetadataEncoding = "guestinfo.metadata.encoding"
	KeyUserdata         = "guestinfo.userdata"
	KeyUserdataEncoding = "guestinfo.userdata.encoding"
	KeyIgnition         = "guestinfo.ignition.config.data"
	KeyIgnitionEncoding = "guestinfo.ignition.config.data.encoding"

	// KeyDiskUUID exposes the serial numbers of the VM's disks to the guest. CSI drivers use them to find volumes.
	KeyDiskUUID = "disk.enableUUID"
)

// Format is the format of bootstrap data, named as in the bootstrap contract of Cluster API.
type Format string

// Formats of bootstrap data. The contract makes the format optional; the default is cloud-config.
const (
	FormatCloudConfig Format = "cloud-config"
	FormatIgnition    Format = "ignition"
)

// Mode is the address allocation mode of a NIC, named as in VCD.
type Mode string

// Address allocation modes. The guest configures addresses of VCD's static pool like manual ones.
const (
	ModePool   Mode = "POOL"
	ModeManual Mode = "MANUAL"
	ModeDHCP   Mode = "DHCP"
	ModeNone   Mode = "NONE" // connected, but not configured in the guest
)

// A NIC is a network interface as the guest configures it.
type NIC struct {
	MAC  string // identifies the NIC in the guest; any common notation
	Name string // name in the guest; empty keeps the kernel's name
	Mode Mode

	// Addresses have the prefix lengths of their subnets, and at most one per IP family. Only for modes Pool and
	// Manual.
	Addresses []netip.Prefix
	Gateways  []netip.Addr // for default routes, at most one per IP family
	DNS       []netip.Addr

	SearchDomains []string
	MTU           int // 0 keeps the default

	// Primary marks the only NIC that always has the default routes.
	Primary bool
	// Metric is the metric of the default routes; 0 means the guest's default. NICs other than the primary one have
	// default routes only if Metric is set.
	Metric int
	Routes []Route
	// DHCP configures the use of DHCP options; mode DHCP only.
	DHCP DHCP
	// IPv6Only is set in mode DHCP if the network has no IPv4 subnet: the router's advertisements determine whether the
	// guest forms its address (SLAAC) or requests one (DHCPv6).
	IPv6Only bool
}

// A Route is a route through a NIC.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Metric int // 0 means the guest's default
}

// DHCP configures which DHCP options a guest uses in addition to the address, named as in netplan. Nil means the
// guest's default, except that NICs other than the primary one ignore routes by default.
type DHCP struct {
	UseDNS     *bool
	UseDomains string // true, false or route; empty means the guest's default
	UseMTU     *bool
	UseNTP     *bool
	UseRoutes  *bool
	Metric     int // metric of the routes; 0 means the guest's default

	UseHostname  *bool
	SendHostname *bool
	Hostname     string // hostname to send; empty means the machine's
}

// An Input contains everything that the guest configuration depends on.
type Input struct {
	// InstanceID is the instance ID for cloud-init. It must never change, because cloud-init treats a new ID as a first
	// boot.
	InstanceID string
	Hostname   string
	ProviderID string
	Region     string // value of topology.kubernetes.io/region, for templates; empty: none
	Zone       string // value of topology.kubernetes.io/zone, for templates; empty: none

	Format        Format // empty means FormatCloudConfig
	BootstrapData []byte
	NICs          []NIC // if empty, the guest uses its fallback network
}

// Render returns the extra configuration for in. It contains all keys that this package owns; callers must keep the
// other keys of the VM. Render returns a TooLargeError if a value does not fit.
func Render(in Input) (map[string]string, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	metadata, err := renderMetadata(in)
	if err != nil {
		return nil, err
	}

	values := map[string]string{
		KeyDiskUUID:         "1",
		KeyMetadata:         encode(metadata),
		KeyMetadataEncoding: encodingCloudInit,
	}
	dataKey := KeyUserdata
	if in.Format == FormatIgnition {
		dataKey = KeyIgnition
		config, err := renderIgnition(in)
		if err != nil {
			return nil, err
		}
		values[KeyIgnition] = encode(config)
		values[KeyIgnitionEncoding] = encodingIgnition
		values[keyCAPVCDName] = in.Hostname
		values[keyCAPVCDNetwork] = capvcdNetwork
	} else {
		values[KeyUserdata] = encode(in.BootstrapData)
		values[KeyUserdataEncoding] = encodingCloudInit
	}
	for _, key := range []string{KeyMetadata, dataKey} {
		if err := checkValue(key, values[key]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (in Input) validate() error {
	if in.InstanceID == "" {
		return errors.New("instance ID is empty")
	}
	if in.ProviderID == "" {
		return errors.New("provider ID is empty")
	}
	if err := validateHostname(in.Hostname); err != nil {
		return err
	}
	if err := validateBootstrapData(in.Format, in.BootstrapData); err != nil {
		return err
	}
	return validateNICs(in.NICs)
}

// ignitionReserve is the space in a value, in bytes, that Check reserves for the files of a machine with ten NICs. The
// bootstrap data gets the rest.
const ignitionReserve = 4 * 1024

// Check validates bootstrap data and returns a TooLargeError if it does not fit. It does not require a VM, so callers
// can run it as a preflight check.
func Check(format Format, data []byte) error {
	if err := validateBootstrapData(format, data); err != nil {
		return err
	}
	if format != FormatIgnition {
		return checkValue("", encode(data))
	}
	config, err := renderIgnition(Input{BootstrapData: data})
	if err != nil {
		return err
	}
	return checkValue("", encode(config)+strings.Repeat("=", ignitionReserve))
}

func validateBootstrapData(format Format, data []byte) error {
	if len(data) == 0 {
		return errors.New("bootstrap data is empty")
	}
	switch format {
	case FormatIgnition:
		_, err := versionOf(data)
		return err
	case FormatCloudConfig, "":
		// cloud-init decodes user data as UTF-8 and fails otherwise.
		if !utf8.Valid(data) {
			return errors.New("bootstrap data of format cloud-config is not UTF-8")
		}
		return nil
	default:
		return fmt.Errorf("bootstrap data has format %q, but only %s and %s are supported", format, FormatCloudConfig,
			FormatIgnition)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package guestinfo converts bootstrap data and the network of a VM into the extra configuration
// ("guestinfo" keys) from which a guest on VMware reads both. Bootstrap data of any provider goes through
// untouched: cloud-init's DataSourceVMware, or Ignition, gets every byte back. Who the machine is and
// how its NICs are set up goes into guestinfo.metadata, which holds no secret and stays for the life of the
// machine: without it cloud-init would treat the next boot as the first boot of another instance, without
// network. User data is a secret and does not stay: the metadata makes cloud-init blank it once read.
//
// Ignition reads no metadata. It gets a configuration that writes the same into files and merges the bootstrap data,
// which is in it as a data URL. Ignition removes it from guestinfo when it has read it.
//
// The package is pure: same input, same output, byte for byte. It knows neither VCD nor Kubernetes.
//
// Facts it rests on, as seen with the cloud-init of Debian 12 (22.4.2); the tests let whichever version is
// installed read the output, and pass with upstream's 26.2 too:
//   - Metadata is JSON, which cloud-init tries before YAML, so that nothing depends on YAML's rules for plain
//     scalars (a MAC address of digits alone is a base 60 number in YAML 1.1).
//   - A route "to: default" is refused by that version, which reads every version 2 configuration into its own
//     model whatever renders it. 0.0.0.0/0 and ::/0 are understood by all versions; gateway4 is deprecated.
//   - With its renderers other than netplan (Debian's and Ubuntu's default), that version makes ::/64 of
//     ::/0. Guests that need them for IPv6 want router advertisements or a newer cloud-init.
//   - wait-on-network has no timeout and waits for an address on the device of the default route: it is set
//     only if that address comes by DHCP.
package guestinfo

import (
	"errors"
	"fmt"
	"net/netip"
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

	// KeyDiskUUID makes the disks of the VM show their serial numbers to the guest. CSI drivers find volumes
	// by them.
	KeyDiskUUID = "disk.enableUUID"
)

// Format is the format of bootstrap data, in the words of the bootstrap contract of Cluster API.
type Format string

// Formats. The contract lets providers leave it out, which means cloud-config.
const (
	FormatCloudConfig Format = "cloud-config"
	FormatIgnition    Format = "ignition"
)

// Mode is how a NIC gets its address, in VCD's words.
type Mode string

// Modes. Addresses of VCD's static pool are configured in the guest like manual ones.
const (
	ModePool   Mode = "POOL"
	ModeManual Mode = "MANUAL"
	ModeDHCP   Mode = "DHCP"
	ModeNone   Mode = "NONE" // connected, and left alone in the guest
)

// A NIC is one network interface as the guest shall see it.
type NIC struct {
	MAC  string // by which the guest finds it; any common notation
	Name string // what the guest shall call it; empty leaves the kernel's name
	Mode Mode

	// Addresses have the lengths of their subnets' prefixes, and at most one is of each family; modes Pool and Manual.
	Addresses []netip.Prefix
	Gateways  []netip.Addr // of default routes, at most one of each family
	DNS       []netip.Addr

	SearchDomains []string
	MTU           int // 0 leaves the default

	// Primary marks the one NIC that always has the default routes.
	Primary bool
	// Metric of the default routes; 0 leaves it to the guest. Another NIC than the primary one has them only with it.
	Metric int
	Routes []Route
	// DHCP is what the guest takes from the DHCP server; mode DHCP.
	DHCP DHCP
}

// A Route is a route through a NIC.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Metric int // 0 leaves it to the guest
}

// DHCP is what a guest takes from a DHCP server beside the address, in netplan's words. Nil leaves it to the guest, but
// for the routes of a NIC that is not the primary one, which are not taken.
type DHCP struct {
	UseDNS     *bool
	UseDomains string // true, false or route; empty leaves it to the guest
	UseMTU     *bool
	UseNTP     *bool
	UseRoutes  *bool
	Metric     int // of its routes; 0 leaves it to the guest

	UseHostname  *bool
	SendHostname *bool
	Hostname     string // sent instead of that of the machine; empty: that of the machine
}

// An Input is everything that a guest receives.
type Input struct {
	// InstanceID is cloud-init's notion of identity. It must never change: another ID is another first boot.
	InstanceID string
	Hostname   string
	ProviderID string
	Region     string // value of topology.kubernetes.io/region, for templates; empty: none
	Zone       string // value of topology.kubernetes.io/zone, for templates; empty: none

	Format        Format // empty means FormatCloudConfig
	BootstrapData []byte
	NICs          []NIC // none leaves the network to the guest's fallback
}

// Render returns the extra configuration for in. It is the whole of what this package owns: other keys of the
// VM must stay. The error is a TooLargeError if a value would not fit.
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

func validateBootstrapData(format Format, data []byte) error {
	if len(data) == 0 {
		return errors.New("bootstrap data is empty")
	}
	switch format {
	case FormatIgnition:
		_, err := versionOf(data)
		return err
	case FormatCloudConfig, "":
		// cloud-init decodes what it gets as UTF-8 and gives up on anything else.
		if !utf8.Valid(data) {
			return errors.New("bootstrap data of format cloud-config is not UTF-8")
		}
		return nil
	default:
		return fmt.Errorf("bootstrap data has format %q, but only %s and %s are supported", format, FormatCloudConfig,
			FormatIgnition)
	}
}

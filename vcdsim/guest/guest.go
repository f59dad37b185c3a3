// SPDX-License-Identifier: Apache-2.0

// Package guest simulates how the operating system of a VM processes its guestinfo. It reads the keys as cloud-init's
// VMware datasource (or Ignition) does, and explains why a real guest would fail to boot. It knows the network cards of
// the VM, but not VCD, Kubernetes or the simulator that calls it.
package guest

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// maxGuestinfo is the maximum total size of the guestinfo keys and values of one VM, in bytes. It is the default of
// ESXi's tools.setInfo.sizeLimit.
const maxGuestinfo = 1 << 20

// MaxValue is the maximum size of one value, in bytes: the size of a message on the channel between a guest and its
// hypervisor (GUESTMSG_MAX_IN_SIZE of open-vm-tools).
const MaxValue = 64 << 10

// Mode is the way VCD assigns an address to a network card.
type Mode string

// The address modes of a network card, as VCD names them.
const (
	ModePool   Mode = "POOL"
	ModeDHCP   Mode = "DHCP"
	ModeManual Mode = "MANUAL"
	ModeNone   Mode = "NONE"
)

// NIC is a network card of the VM, as configured in VCD.
type NIC struct {
	MAC     string
	Network string
	Mode    Mode
	// Address is the address that VCD assigned (POOL, MANUAL) or that the network's DHCP server would lease (DHCP).
	// It is invalid if there is no address.
	Address netip.Prefix
	// Secondary is the address that VCD assigned from the network's second subnet. It is invalid if there is no
	// address.
	Secondary netip.Prefix
}

// Machine describes a guest without guestinfo.
type Machine struct {
	// UUID is the product UUID of the firmware (DMI). It is the instance ID unless the metadata sets one.
	UUID string
	// Hostname is the name from guest customization or from the image.
	Hostname string
	// Customized means that guest customization configured the network as in VCD. Otherwise the first card uses DHCP.
	Customized bool
}

// Identity is what the guest learned from its guestinfo.
type Identity struct {
	InstanceID string
	Hostname   string
	// ProviderID is the metadata key provider_id, for display only. The kubelet's provider ID is in the user data.
	ProviderID string
	// Addresses are the addresses that the guest configures, by MAC in lower case.
	Addresses map[string][]netip.Prefix
	// Primary is the MAC of the card with the default route, or of the first card with an address.
	Primary string
	// Metadata is the decoded metadata without its network part.
	Metadata map[string]any
	// Userdata is nil if there is none, for example because an earlier boot redacted it.
	Userdata *Userdata
	// Redact lists the keys that the guest clears after reading them.
	Redact []string
	// IsIgnition means that Ignition, not cloud-init, read the configuration.
	IsIgnition bool
}

// Read decodes extraConfig as the guest's first boot stage does. An error names the key and the reason why a real
// guest would boot incorrectly or not at all. It never quotes user data.
func Read(extraConfig map[string]string, nics []NIC, m Machine) (Identity, error) {
	if err := checkSize(extraConfig); err != nil {
		return Identity{}, err
	}
	info := guestinfo(extraConfig)
	meta, err := readMetadata(info)
	if err != nil {
		return Identity{}, err
	}
	if config, err := info.ignition(); err != nil || config != "" {
		if err != nil {
			return Identity{}, err
		}
		return readIgnition(config, meta, nics, m)
	}
	id, err := meta.identity(m)
	if err != nil {
		return Identity{}, err
	}
	net, err := meta.interfaces(nics, m)
	if err != nil {
		return Identity{}, fmt.Errorf("guestinfo.metadata: network: %w", err)
	}
	id.Addresses = net.addresses
	id.Primary = net.primary
	if err := meta.checkWait(id); err != nil {
		return Identity{}, err
	}
	if _, err := info.decode("vendordata"); err != nil {
		return Identity{}, err
	}
	if id.Userdata, err = readUserdata(info, id); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// Address returns the address of the primary card, preferring IPv4. It is invalid if the guest has none.
func (i Identity) Address() netip.Addr {
	var found netip.Addr
	for _, p := range i.Addresses[i.Primary] {
		if p.Addr().Is4() {
			return p.Addr()
		}
		if !found.IsValid() {
			found = p.Addr()
		}
	}
	return found
}

// Published returns the guestinfo keys that cloud-init writes during boot. Redacted keys become "---" and their
// encoding a single space, because a guestinfo key cannot be emptied. The addresses of the card with the default route
// are advertised. Ignition deletes its configuration.
func (i Identity) Published() map[string]string {
	if i.IsIgnition {
		return map[string]string{
			"guestinfo." + ignitionKey:               deletedIgnition,
			"guestinfo." + ignitionKey + ".encoding": "base64",
		}
	}
	keys := map[string]string{}
	for _, key := range i.Redact {
		keys["guestinfo."+key] = emptyYAML
		keys["guestinfo."+key+".encoding"] = " "
	}
	for _, p := range i.Addresses[i.Primary] {
		key := "guestinfo.local-ipv6"
		if p.Addr().Is4() {
			key = "guestinfo.local-ipv4"
		}
		if _, set := keys[key]; !set {
			keys[key] = p.Addr().String()
		}
	}
	return keys
}

func checkSize(extraConfig map[string]string) error {
	total := 0
	for key, value := range extraConfig {
		if strings.HasPrefix(key, "guestinfo.") {
			total += len(key) + len(value)
			if len(value) > MaxValue {
				return fmt.Errorf("%s: %d bytes are more than the %d a guest can read at once", key, len(value),
					MaxValue)
			}
		}
	}
	if total > maxGuestinfo {
		return fmt.Errorf("guestinfo: %d bytes are more than the %d a guest can read", total, maxGuestinfo)
	}
	return nil
}

// identity returns the identity from the metadata or, without metadata, from the machine.
func (m metadata) identity(from Machine) (Identity, error) {
	if m.values == nil {
		return Identity{
			InstanceID: strings.ToLower(from.UUID),
			Hostname:   from.Hostname,
			Metadata:   map[string]any{},
		}, nil
	}
	id := Identity{Metadata: m.values, Redact: m.redact()}
	if id.InstanceID = m.text("instance-id"); id.InstanceID == "" {
		return Identity{}, errors.New(
			"guestinfo.metadata: instance-id is missing, so a copied or re-registered VM would be configured again")
	}
	id.Hostname = m.text("local-hostname")
	switch {
	case id.Hostname == "" && m.text("hostname") != "":
		return Identity{}, errors.New(
			"guestinfo.metadata: hostname is set but the guest takes its name from local-hostname, which is missing")
	case id.Hostname == "":
		return Identity{}, errors.New(
			"guestinfo.metadata: local-hostname is missing, so the guest would keep the template's name")
	case !validHostname(id.Hostname):
		return Identity{}, fmt.Errorf("guestinfo.metadata: local-hostname %q is not a host name", id.Hostname)
	}
	id.ProviderID = m.text("provider_id")
	if id.ProviderID == "" {
		id.ProviderID = m.text("provider-id")
	}
	return id, nil
}

var hostnameLabel = regexp.MustCompile(`\A[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\z`)

func validHostname(name string) bool {
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), func(label string) bool {
		return !hostnameLabel.MatchString(label)
	})
}

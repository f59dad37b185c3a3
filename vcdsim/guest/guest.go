// SPDX-License-Identifier: Apache-2.0

// Package guest is what the operating system of a simulated VM makes of its guestinfo: it reads the keys as
// cloud-init's VMware datasource (or ignition) does, and says in words why a real guest would not come up. It knows the
// VM's network cards, nothing of VCD, of Kubernetes or of the simulator that calls it.
package guest

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// maxGuestinfo is how many bytes all guestinfo keys and values of one VM may have together. It is the default of ESXi's
// tools.setInfo.sizeLimit.
const maxGuestinfo = 1 << 20

// MaxValue is how many bytes one value may have: what the channel between a guest and its hypervisor carries in a
// message (GUESTMSG_MAX_IN_SIZE of open-vm-tools).
const MaxValue = 64 << 10

// Mode says how VCD gives a network card its address.
type Mode string

// The address modes of a network card, in VCD's words.
const (
	ModePool   Mode = "POOL"
	ModeDHCP   Mode = "DHCP"
	ModeManual Mode = "MANUAL"
	ModeNone   Mode = "NONE"
)

// NIC is a network card of the VM as VCD knows it.
type NIC struct {
	MAC     string
	Network string
	Mode    Mode
	// Address is what VCD assigned (POOL, MANUAL) or what the network's DHCP server would lease (DHCP); invalid when
	// there is none.
	Address netip.Prefix
	// Secondary is what VCD assigned of the network's second subnet; invalid when there is none.
	Secondary netip.Prefix
}

// Machine is what a guest has without guestinfo.
type Machine struct {
	// UUID is the product UUID of the firmware (DMI), the instance id where no metadata gives one.
	UUID string
	// Hostname is the name that guest customization gave it, or that of its image.
	Hostname string
	// Customized means that guest customization configured the network as VCD knows it; else the first card asks DHCP.
	Customized bool
}

// Identity is what the guest knows about itself once it has read its guestinfo.
type Identity struct {
	InstanceID string
	Hostname   string
	// ProviderID is metadata key provider_id, for display; what kubelet uses is in the user data.
	ProviderID string
	// Addresses are the addresses the guest configures, by lower case MAC.
	Addresses map[string][]netip.Prefix
	// Primary is the MAC of the card that holds the default route, or of the first card that has an address.
	Primary string
	// Metadata is the decoded metadata without its network part.
	Metadata map[string]any
	// Userdata is nil when there is none, for instance because an earlier boot redacted it.
	Userdata *Userdata
	// Redact lists the keys that the guest blanks after reading them.
	Redact []string
	// IsIgnition means that Ignition read its configuration, and not cloud-init.
	IsIgnition bool
}

// Read decodes extraConfig as the guest's first boot stage does. An error names the key and the reason for which a real
// guest would come up wrongly or not at all; it never quotes user data.
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

// Address returns the address of the primary card, preferring IPv4; it is invalid when the guest has none.
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

// Published returns the guestinfo keys that cloud-init writes while booting: redacted ones become "---", their encoding
// a single space (a guestinfo key cannot be emptied), and the addresses that hold the default route are advertised.
// Ignition deletes its configuration.
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

// identity takes what the metadata says of the guest itself; without metadata, what the machine has.
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
			"guestinfo.metadata: instance-id is missing, so a copied or re-registered VM would be configured " +
				"again")
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

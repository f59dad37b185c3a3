// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

const nodeUnit = "[Match]\nPermanentMACAddress=00:50:56:01:00:0A\n\n[Network]\nAddress=192.168.100.10/24\nDNS=192.168.100.1\n\n" +
	"[Route]\nDestination=0.0.0.0/0\nGateway=192.168.100.1\n"

func dataURL(text string) string { return "data:," + url.PathEscape(text) }

// ignitionFiles returns a configuration with files, optionally followed by more JSON.
func ignitionFiles(files map[string]string, more ...string) string {
	var entries []string
	for path, content := range files {
		entries = append(entries, fmt.Sprintf(`{"path": %q, "contents": {"source": %q}}`, path, dataURL(content)))
	}
	return fmt.Sprintf(`{"ignition": {"version": "3.3.0"}, "storage": {"files": [%s]}%s}`, strings.Join(entries, ","),
		strings.Join(more, ""))
}

func readIgnition(config string, nics ...guest.NIC) (guest.Identity, error) {
	return guest.Read(info(map[string]string{
		"guestinfo.userdata":                      "",
		"guestinfo.ignition.config.data":          gz(config),
		"guestinfo.ignition.config.data.encoding": "gz+base64",
	}), nics, guest.Machine{Hostname: "image"})
}

func TestIgnitionWritesFilesUsersAndCommands(t *testing.T) {
	g := NewWithT(t)
	config := `{"ignition": {"version": "3.3.0"}, "passwd": {"users": [{"name": "core"}]},
"storage": {"files": [{"path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,set%20-e%0Akubeadm%20init"}},
 {"path": "/etc/systemd/network/10.network", "contents": {"source": "` + dataURL(nodeUnit) + `"}},
 {"path": "/etc/kubeadm.yml", "contents": {"source": "data:;base64,` + gz("kind: x") + `", "compression": "gzip"}}]},
"systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nExecStart=/bin/bash /etc/kubeadm.sh\n"},
 {"name": "kubeadm.service", "dropins": [{"name": "a.conf"}]},
 {"name": "off.service", "enabled": false, "contents": "[Service]\nExecStart=/bin/false\n"}]}}`

	id, err := readIgnition(config, nodeNIC())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id.Userdata.Commands).To(Equal([]string{"/bin/bash /etc/kubeadm.sh", "set -e", "kubeadm init"}))
	g.Expect(id.Userdata.Users).To(Equal([]string{"core"}))
	f, _ := id.Userdata.File("/etc/kubeadm.yml")
	g.Expect(f.Content).To(Equal("kind: x"))
}

func TestIgnitionIgnoresTheMetadata(t *testing.T) {
	g := NewWithT(t)

	id, err := readIgnition(ignitionFiles(map[string]string{"/etc/systemd/network/10.network": nodeUnit}), nodeNIC())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id.Hostname).To(Equal("image"), "there is no /etc/hostname")
	g.Expect(id.Addresses).To(Equal(map[string][]netip.Prefix{
		"00:50:56:01:00:0a": {netip.MustParsePrefix("192.168.100.10/24")},
	}))

	_, err = readIgnition(ignitionFiles(nil), nodeNIC())

	g.Expect(err).To(MatchError(ContainSubstring("no file in /etc/systemd/network/ matches the card")))
}

func TestIgnitionMergesConfigurations(t *testing.T) {
	child := ignitionFiles(map[string]string{"/etc/hostname": "child\n", "/etc/child": "x"})
	files := `"storage": {"files": [
{"path": "/etc/hostname", "contents": {"source": "data:,parent"}},
{"path": "/etc/parent", "contents": {"source": "data:,x"}},
{"path": "/etc/systemd/network/10.network", "contents": {"source": "` + dataURL(nodeUnit) + `"}}]}`
	tests := []struct {
		name, version, key string
		source             string
		hostname           string
	}{
		{"version 3 calls it merge", "3.3.0", "merge", `[{"source": "` + dataURL(child) + `"}]`, "child"},
		{"version 2 calls it append", "2.3.0", "append", `[{"source": "` + dataURL(child) + `"}]`, "child"},
		{"version 2 has no merge", "2.3.0", "merge", `[{"source": "` + dataURL(child) + `"}]`, "parent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			id, err := readIgnition(fmt.Sprintf(`{"ignition": {"version": %q, "config": {%q: %s}}, %s}`, tt.version, tt.key,
				tt.source, files), nodeNIC())

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(id.Hostname).To(Equal(tt.hostname))
			_, hasChild := id.Userdata.File("/etc/child")
			g.Expect(hasChild).To(Equal(tt.hostname == "child"))
			_, hasParent := id.Userdata.File("/etc/parent")
			g.Expect(hasParent).To(BeTrue())
		})
	}
}

func TestInvalidIgnitionIsRejected(t *testing.T) {
	endless := `{"ignition": {"version": "3.3.0"}}`
	for range 9 {
		endless = `{"ignition": {"version": "3.3.0", "config": {"merge": [{"source": "` + dataURL(endless) + `"}]}}}`
	}
	unit := func(text string) string {
		return ignitionFiles(map[string]string{"/etc/systemd/network/10.network": text})
	}
	tests := []struct {
		name, config, want string
	}{
		{"no version", "{}", "guestinfo.ignition.config.data: ignition.version"},
		{"a configuration from another site", `{"ignition": {"version": "3.3.0", "config": {"replace": {"source": "https://x"}}}}`, "not a data URL"},
		{"too many configurations that include each other", endless, "too deeply"},
		{"an invalid host name", ignitionFiles(map[string]string{"/etc/hostname": "a_b"}), `"a_b" is not a host name`},
		{"a setting that does not exist", unit("[Network]\nAddr=192.168.100.10/24\n"), "unknown setting Addr"},
		{"a section that does not exist", unit("[Nets]\n"), "section Nets"},
		{"an address without a length", unit("[Network]\nAddress=192.168.100.10\n"), "prefix length"},
		{"another address than VCD's", unit("[Network]\nAddress=192.168.100.11/24\n"), "but VCD assigned 192.168.100.10/24"},
		{"a gateway outside the subnet", unit(strings.ReplaceAll(nodeUnit, "Gateway=192.168.100.1", "Gateway=10.0.0.1")), "outside the subnets"},
		{"a route without a destination", unit(nodeUnit + "[Route]\nDestination=a\nGateway=192.168.100.1\n"), "is not a subnet"},
		{"a unit of another interface", unit(strings.ReplaceAll(nodeUnit, ":0A", ":0b")), "no file in"},
		{"DHCP although VCD uses a pool", unit("[Network]\nDHCP=yes\n"), "asks DHCP but VCD's address mode is POOL"},
		{"an unconfigured interface", unit("[Link]\nUnmanaged=yes\n"), "the guest does not configure it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readIgnition(tt.config, nodeNIC())

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestTheFirstMatchingUnitConfiguresAnInterface(t *testing.T) {
	g := NewWithT(t)
	lease := guest.NIC{MAC: "00:50:56:01:00:0B", Mode: guest.ModeDHCP, Address: netip.MustParsePrefix("10.20.0.5/24")}
	none := guest.NIC{MAC: "00:50:56:01:00:0c", Mode: guest.ModeNone}

	id, err := readIgnition(ignitionFiles(map[string]string{
		"/etc/systemd/network/20-node.network": nodeUnit,
		"/etc/systemd/network/30-all.network":  "[Match]\nName=en*\n[Network]\nDHCP=ipv4\n[DHCPv4]\nUseRoutes=no\n",
		"/etc/systemd/network/README":          "no unit",
	}), lease, nodeNIC(), none)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id.Addresses).To(HaveKeyWithValue("00:50:56:01:00:0b", []netip.Prefix{lease.Address}))
	g.Expect(id.Address()).To(Equal(nodeNIC().Address.Addr()), "the other has no default route")
}

func TestIgnitionDeletesItsConfigurationAndTheNextBootSucceeds(t *testing.T) {
	g := NewWithT(t)
	id, err := readIgnition(ignitionFiles(map[string]string{"/etc/systemd/network/10.network": nodeUnit}), nodeNIC())
	g.Expect(err).NotTo(HaveOccurred())
	keys := info(map[string]string{"guestinfo.userdata": ""})
	for key, value := range id.Published() {
		keys[key] = value
	}

	again, err := guest.Read(keys, []guest.NIC{nodeNIC()}, guest.Machine{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keys).To(HaveKeyWithValue("guestinfo.ignition.config.data", "e30K"))
	g.Expect(again.Userdata).To(BeNil())
	g.Expect(again.InstanceID).To(Equal(id.InstanceID))
	g.Expect(again.Addresses).To(Equal(id.Addresses))
}

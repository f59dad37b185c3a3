// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"sort"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
)

// ignitionConfig is the output of a bootstrap provider, with bytes that a URL cannot contain.
const ignitionConfig = `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/größe","contents":{"source":"data:,50%25"}}]}}`

func withIgnition(config string) func(*guestinfo.Input) {
	return func(in *guestinfo.Input) {
		in.Format = guestinfo.FormatIgnition
		in.BootstrapData = []byte(config)
	}
}

// A rendered is the data for a guest with Ignition.
type rendered struct {
	Ignition struct {
		Version string
		Config  struct{ Append, Merge []struct{ Source string } }
	}
	Storage struct {
		Files []struct {
			Filesystem, Path string
			Overwrite        *bool
			Mode             int
			Contents         struct{ Source string }
		}
	}
}

func render(t *testing.T, in guestinfo.Input) rendered {
	t.Helper()
	g := NewWithT(t)
	values, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(values).To(HaveKeyWithValue("guestinfo.ignition.config.data.encoding", "gz+base64"))
	g.Expect(values).NotTo(HaveKey("guestinfo.userdata"))
	var config rendered
	g.Expect(json.Unmarshal(decode(t, values["guestinfo.ignition.config.data"]), &config)).To(Succeed())
	return config
}

func (r rendered) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, f := range r.Storage.Files {
		files[f.Path] = content(t, f.Contents.Source)
	}
	return files
}

func content(t *testing.T, source string) string {
	t.Helper()
	g := NewWithT(t)
	text, isData := strings.CutPrefix(source, "data:,")
	g.Expect(isData).To(BeTrue(), source)
	text, err := url.PathUnescape(text)
	g.Expect(err).NotTo(HaveOccurred())
	return text
}

func TestIgnitionReceivesTheBootstrapDataUnchanged(t *testing.T) {
	tests := []struct {
		name, config string
		fileSystem   string
		merged       func(rendered) []struct{ Source string }
		overwrite    any
	}{
		{
			name:       "version 2 appends",
			config:     strings.Replace(ignitionConfig, "3.4.0", "2.3.0", 1),
			fileSystem: "root",
			merged:     func(r rendered) []struct{ Source string } { return r.Ignition.Config.Append },
			overwrite:  BeNil(),
		},
		{
			name:      "version 3 merges",
			config:    ignitionConfig,
			merged:    func(r rendered) []struct{ Source string } { return r.Ignition.Config.Merge },
			overwrite: HaveValue(BeTrue()),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got := render(t, input(withIgnition(tt.config)))

			g.Expect(tt.config).To(ContainSubstring(got.Ignition.Version), "guests accept both formats")
			merged := tt.merged(got)
			g.Expect(merged).To(HaveLen(1))
			g.Expect(content(t, merged[0].Source)).To(Equal(tt.config))
			g.Expect(len(got.Ignition.Config.Append) + len(got.Ignition.Config.Merge)).To(Equal(1))
			g.Expect(got.Storage.Files).To(HaveEach(And(
				HaveField("Filesystem", tt.fileSystem), HaveField("Overwrite", tt.overwrite), HaveField("Mode", 0o644))))
		})
	}
}

func TestIgnitionWritesTheMachineIdentity(t *testing.T) {
	g := NewWithT(t)

	files := render(t, input(withIgnition(ignitionConfig), func(in *guestinfo.Input) { in.Zone = "it's" })).files(t)

	g.Expect(files).To(HaveKeyWithValue("/etc/hostname", "acme-control-plane-x7k2p\n"))
	g.Expect(files).To(HaveKeyWithValue("/etc/vcd/metadata.env", `INSTANCE_ID='0f3c5a0e-6f0e-4b3c-8f57-6d0f7c1f4a11'
LOCAL_HOSTNAME='acme-control-plane-x7k2p'
PROVIDER_ID='vmware-cloud-director://urn:vcloud:vm:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11'
TOPOLOGY_REGION=''
TOPOLOGY_ZONE='it'\''s'
`))
}

// CAPVCD's users have units that read these keys.
func TestIgnitionUnitsForCAPVCDFindTheirKeys(t *testing.T) {
	g := NewWithT(t)

	values, err := guestinfo.Render(input(withIgnition(ignitionConfig)))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(values).To(HaveKeyWithValue("guestinfo.ignition.vmname", "acme-control-plane-x7k2p"))
	g.Expect(values).To(HaveKeyWithValue("guestinfo.ignition.network", "#!/bin/sh"))
	g.Expect(metadataOf(t, values)).To(HaveKey("provider_id"))
}

func TestIgnitionConfiguresEachNIC(t *testing.T) {
	yes := true
	no := false
	tests := []struct {
		name string
		nic  guestinfo.NIC
		want string
	}{
		{
			name: "an address of each family, gateways, name servers and the MTU",
			nic: guestinfo.NIC{
				Mode:          guestinfo.ModePool,
				Primary:       true,
				Addresses:     []netip.Prefix{netip.MustParsePrefix("192.168.100.10/24"), netip.MustParsePrefix("fd00::a/64")},
				Gateways:      []netip.Addr{netip.MustParseAddr("192.168.100.1"), netip.MustParseAddr("fd00::1")},
				DNS:           []netip.Addr{netip.MustParseAddr("192.168.100.53"), netip.MustParseAddr("fd00::53")},
				SearchDomains: []string{"acme.example", "example.com"},
				MTU:           1450,
			},
			want: `
[Link]
MTUBytes=1450

[Network]
Address=192.168.100.10/24
Address=fd00::a/64
DNS=192.168.100.53
DNS=fd00::53
Domains=acme.example example.com

[Route]
Destination=0.0.0.0/0
Gateway=192.168.100.1

[Route]
Destination=::/0
Gateway=fd00::1
`,
		},
		{
			name: "a further NIC has routes and no gateway",
			nic: guestinfo.NIC{
				Mode:      guestinfo.ModeManual,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.20.0.10/24")},
				Gateways:  []netip.Addr{netip.MustParseAddr("10.20.0.1")},
				Routes: []guestinfo.Route{
					{To: netip.MustParsePrefix("10.0.0.0/8"), Via: netip.MustParseAddr("10.20.0.1"), Metric: 50},
				},
			},
			want: `
[Network]
Address=10.20.0.10/24

[Route]
Destination=10.0.0.0/8
Gateway=10.20.0.1
Metric=50
`,
		},
		{
			name: "a further NIC with a metric has its gateway",
			nic: guestinfo.NIC{
				Mode:      guestinfo.ModeManual,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.20.0.10/24")},
				Gateways:  []netip.Addr{netip.MustParseAddr("10.20.0.1")},
				Metric:    200,
			},
			want: `
[Network]
Address=10.20.0.10/24

[Route]
Destination=0.0.0.0/0
Gateway=10.20.0.1
Metric=200
`,
		},
		{
			name: "the primary NIC uses all settings of the DHCP server",
			nic:  guestinfo.NIC{Mode: guestinfo.ModeDHCP, Primary: true},
			want: `
[Network]
DHCP=ipv4

[DHCPv4]
ClientIdentifier=mac
`,
		},
		{
			name: "boot does not wait for DHCP on a further NIC, whose routes are ignored",
			nic:  guestinfo.NIC{Mode: guestinfo.ModeDHCP},
			want: `
[Link]
RequiredForOnline=no

[Network]
DHCP=ipv4

[DHCPv4]
ClientIdentifier=mac
UseRoutes=no
`,
		},
		{
			name: "the router determines the source of addresses on a network with IPv6 only",
			nic: guestinfo.NIC{
				Mode:     guestinfo.ModeDHCP,
				Primary:  true,
				IPv6Only: true,
				DHCP:     guestinfo.DHCP{UseDNS: &no, UseHostname: &no},
			},
			want: `
[Network]
DHCP=ipv6

[IPv6AcceptRA]
UseDNS=no

[DHCPv6]
UseDNS=no
UseHostname=no
`,
		},
		{
			name: "a further NIC on a network with IPv6 only has no default route",
			nic:  guestinfo.NIC{Mode: guestinfo.ModeDHCP, IPv6Only: true},
			want: `
[Link]
RequiredForOnline=no

[Network]
DHCP=ipv6

[IPv6AcceptRA]
UseGateway=no

[DHCPv6]
`,
		},
		{
			name: "the used settings of the DHCP server",
			nic: guestinfo.NIC{
				Mode:    guestinfo.ModeDHCP,
				Primary: true,
				DHCP: guestinfo.DHCP{
					UseDNS:     &no,
					UseDomains: "route",
					UseMTU:     &yes,
					UseNTP:     &no,
					UseRoutes:  &yes,
					Metric:     7,

					UseHostname:  &no,
					SendHostname: &yes,
					Hostname:     "node.example.com",
				},
			},
			want: `
[Network]
DHCP=ipv4

[DHCPv4]
ClientIdentifier=mac
UseDNS=no
UseDomains=route
UseMTU=yes
UseNTP=no
UseHostname=no
SendHostname=yes
Hostname=node.example.com
UseRoutes=yes
RouteMetric=7
`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			tt.nic.MAC = "00:50:56:AB:CD:01"
			nics := []guestinfo.NIC{tt.nic}
			if !tt.nic.Primary {
				nics = append(nics, guestinfo.NIC{MAC: "00:50:56:ab:cd:02", Mode: guestinfo.ModeDHCP, Primary: true})
			}

			files := render(t, input(withIgnition(ignitionConfig), func(in *guestinfo.Input) { in.NICs = nics })).files(t)

			g.Expect(files).To(HaveKeyWithValue("/etc/systemd/network/20-vcd-nic0.network",
				"[Match]\nPermanentMACAddress=00:50:56:ab:cd:01\n"+tt.want))
		})
	}
}

func TestIgnitionNamesOneNICAndIgnoresAnother(t *testing.T) {
	g := NewWithT(t)

	files := render(t, input(withIgnition(ignitionConfig))).files(t)

	g.Expect(files).To(HaveKeyWithValue("/etc/systemd/network/20-vcd-nic0.link",
		"[Match]\nPermanentMACAddress=00:50:56:ab:cd:01\n\n[Link]\nName=eth0\n"))
	g.Expect(files).NotTo(HaveKey("/etc/systemd/network/20-vcd-nic3.link"))
	g.Expect(files).To(HaveKeyWithValue("/etc/systemd/network/20-vcd-nic3.network",
		"[Match]\nPermanentMACAddress=00:50:56:ab:cd:04\n\n[Link]\nUnmanaged=yes\n"), "otherwise images request an address by DHCP")
}

func TestUnmergeableIgnitionIsRejected(t *testing.T) {
	tests := []struct {
		name, data, want string
	}{
		{"a configuration that needs to be transpiled", "variant: flatcar\nversion: 1.0.0\n", "transpile Butane"},
		{"a configuration without a version", `{"storage":{}}`, "no ignition.version"},
		{"version 1", `{"ignitionVersion":1}`, "no ignition.version"},
		{"a future version", `{"ignition":{"version":"4.0.0"}}`, "2.x.y or 3.x.y"},
		{"a version with a suffix", `{"ignition":{"version":"3.0.0\",\"a\":\""}}`, "2.x.y or 3.x.y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			early := guestinfo.Check(guestinfo.FormatIgnition, []byte(tt.data))
			_, late := guestinfo.Render(input(withIgnition(tt.data)))

			g.Expect(early).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(late).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

// Data that is found to fit before a VM is created also fits with ten NICs.
func TestAcceptedIgnitionFits(t *testing.T) {
	g := NewWithT(t)
	in := input(withIgnition(ignitionConfig), func(in *guestinfo.Input) {
		in.NICs = nil
		for i := range byte(10) {
			in.NICs = append(in.NICs, guestinfo.NIC{
				MAC:           net.HardwareAddr{0, 0x50, 0x56, i, byte(rand.IntN(256)), byte(rand.IntN(256))}.String(),
				Mode:          guestinfo.ModeManual,
				Primary:       i == 0,
				Addresses:     []netip.Prefix{netip.PrefixFrom(randomAddress(), 8), netip.PrefixFrom(randomAddress6(), 8)},
				DNS:           []netip.Addr{randomAddress(), randomAddress()},
				SearchDomains: []string{randomText(20) + ".example.com"},
				Routes:        []guestinfo.Route{{To: netip.PrefixFrom(randomAddress(), 24), Via: randomAddress()}},
			})
		}
	})
	size := sort.Search(len(incompressible), func(size int) bool {
		return guestinfo.Check(in.Format, sized(size)) != nil
	})
	g.Expect(size).To(BeNumerically(">", 30_000))
	in.BootstrapData = sized(size - 1)

	_, err := guestinfo.Render(in)

	g.Expect(err).NotTo(HaveOccurred())
	in.BootstrapData = sized(2 * size)
	_, err = guestinfo.Render(in)
	tooLarge, ok := errors.AsType[*guestinfo.TooLargeError](err)
	g.Expect(ok).To(BeTrue())
	g.Expect(tooLarge.Key).To(Equal(guestinfo.KeyIgnition))
}

var incompressible = randomText(200_000)

// sized returns an Ignition configuration of a size that compression hardly changes.
func sized(size int) []byte {
	return []byte(`{"ignition":{"version":"3.4.0"},"note":"` + incompressible[:size] + `"}`)
}

func randomText(length int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	text := make([]byte, length)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return string(text)
}

func randomAddress() netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(rand.IntN(256)), byte(rand.IntN(256)), byte(1 + rand.IntN(250))})
}

func randomAddress6() netip.Addr {
	address := [16]byte{0: 0xfd}
	for i := 1; i < len(address); i++ {
		address[i] = byte(rand.IntN(256))
	}
	return netip.AddrFrom16(address)
}

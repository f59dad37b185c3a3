// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
)

// jinjaCloudConfig is a short version of a kubeadm bootstrap provider's output.
var jinjaCloudConfig = []byte(`## template: jinja
#cloud-config

write_files:
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
    content: |
      nodeRegistration:
        name: "{{ ds.meta_data.local_hostname }}"
        kubeletExtraArgs:
          provider-id: "{{ ds.meta_data.provider_id }}"
runcmd:
  - 'echo "größer" > /etc/greeting'
`)

var cloudConfigWithoutJinja = []byte(`#cloud-config
write_files:
-   path: /etc/greeting
    owner: root:root
    permissions: '0640'
    content: |
      größer
runcmd:
  - 'kubeadm init --config /run/kubeadm/kubeadm.yaml'
ntp:
  enabled: true
  servers: [ntp.example.com]
`)

func input(mods ...func(*guestinfo.Input)) guestinfo.Input {
	in := guestinfo.Input{
		InstanceID:    "0f3c5a0e-6f0e-4b3c-8f57-6d0f7c1f4a11",
		Hostname:      "acme-control-plane-x7k2p",
		ProviderID:    "vmware-cloud-director://urn:vcloud:vm:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11",
		BootstrapData: jinjaCloudConfig,
		NICs: []guestinfo.NIC{
			{
				MAC:           "00:50:56:AB:CD:01",
				Name:          "eth0",
				Mode:          guestinfo.ModePool,
				Primary:       true,
				Addresses:     []netip.Prefix{netip.MustParsePrefix("192.168.100.10/24")},
				Gateways:      []netip.Addr{netip.MustParseAddr("192.168.100.1")},
				DNS:           []netip.Addr{netip.MustParseAddr("192.168.100.53")},
				SearchDomains: []string{"acme.example"},
				MTU:           1450,
			},
			{
				MAC:       "00:50:56:AB:CD:02",
				Name:      "eth1",
				Mode:      guestinfo.ModeManual,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.20.0.10/24")},
				Gateways:  []netip.Addr{netip.MustParseAddr("10.20.0.1")},
			},
			{MAC: "00:50:56:AB:CD:03", Name: "eth2", Mode: guestinfo.ModeDHCP},
			{MAC: "00:50:56:AB:CD:04", Mode: guestinfo.ModeNone},
		},
	}
	for _, mod := range mods {
		mod(&in)
	}
	return in
}

func decode(t *testing.T, value string) []byte {
	t.Helper()
	g := NewWithT(t)
	raw, err := base64.StdEncoding.DecodeString(value)
	g.Expect(err).NotTo(HaveOccurred())
	r, err := gzip.NewReader(bytes.NewReader(raw))
	g.Expect(err).NotTo(HaveOccurred())
	data, err := io.ReadAll(r)
	g.Expect(err).NotTo(HaveOccurred())
	return data
}

func metadataOf(t *testing.T, values map[string]string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	metadata := map[string]any{}
	g.Expect(json.Unmarshal(decode(t, values[guestinfo.KeyMetadata]), &metadata)).To(Succeed())
	return metadata
}

func TestRenderCloudConfig(t *testing.T) {
	g := NewWithT(t)
	in := input()

	values, err := guestinfo.Render(in)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(values).To(HaveLen(5))
	g.Expect(values).To(HaveKeyWithValue("disk.enableUUID", "1"))
	g.Expect(values).To(HaveKeyWithValue("guestinfo.userdata.encoding", "gzip+base64"))
	g.Expect(values).To(HaveKeyWithValue("guestinfo.metadata.encoding", "gzip+base64"))
	g.Expect(decode(t, values["guestinfo.userdata"])).To(Equal(in.BootstrapData))
	g.Expect(decode(t, values["guestinfo.metadata"])).To(MatchJSON(`{
		"instance-id": "0f3c5a0e-6f0e-4b3c-8f57-6d0f7c1f4a11",
		"local-hostname": "acme-control-plane-x7k2p",
		"hostname": "acme-control-plane-x7k2p",
		"provider_id": "vmware-cloud-director://urn:vcloud:vm:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11",
		"redact": ["userdata", "vendordata"],
		"network": {"version": 2, "ethernets": {
			"id0": {
				"match": {"macaddress": "00:50:56:ab:cd:01"}, "set-name": "eth0", "mtu": 1450, "dhcp4": false,
				"addresses": ["192.168.100.10/24"], "routes": [{"to": "0.0.0.0/0", "via": "192.168.100.1"}],
				"nameservers": {"addresses": ["192.168.100.53"], "search": ["acme.example"]}
			},
			"id1": {
				"match": {"macaddress": "00:50:56:ab:cd:02"}, "set-name": "eth1", "dhcp4": false,
				"addresses": ["10.20.0.10/24"]
			},
			"id2": {
				"match": {"macaddress": "00:50:56:ab:cd:03"}, "set-name": "eth2", "dhcp4": true,
				"dhcp-identifier": "mac", "dhcp4-overrides": {"use-routes": false}, "optional": true
			}
		}}
	}`))
}

func TestRenderNetworks(t *testing.T) {
	tests := []struct {
		name string
		nics []guestinfo.NIC
		want string
	}{
		{name: "without NICs the guest configures the network", want: `null`},
		{
			name: "a primary NIC with DHCP uses routes of the server, and boot waits for it",
			nics: []guestinfo.NIC{{MAC: "00-50-56-01-02-03", Mode: guestinfo.ModeDHCP, Primary: true}},
			want: `{"version": 2, "ethernets": {"id0": {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": true, "dhcp-identifier": "mac"}}}`,
		},
		{
			name: "IPv6 has its own default route",
			nics: []guestinfo.NIC{{
				MAC:       "00:50:56:01:02:03",
				Mode:      guestinfo.ModeManual,
				Primary:   true,
				Addresses: []netip.Prefix{netip.MustParsePrefix("2001:db8::10/64")},
				Gateways:  []netip.Addr{netip.MustParseAddr("fe80::1")},
			}},
			want: `{"version": 2, "ethernets": {"id0": {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": false,
				"addresses": ["2001:db8::10/64"], "routes": [{"to": "::/0", "via": "fe80::1"}]}}}`,
		},
		{
			name: "an isolated network has no default route",
			nics: []guestinfo.NIC{{
				MAC:       "00:50:56:01:02:03",
				Mode:      guestinfo.ModePool,
				Primary:   true,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
			}},
			want: `{"version": 2, "ethernets": {"id0": {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": false, "addresses": ["10.0.0.2/24"]}}}`,
		},
		{
			name: "both families have default routes, followed by more routes",
			nics: []guestinfo.NIC{{
				MAC:       "00:50:56:01:02:03",
				Mode:      guestinfo.ModeManual,
				Primary:   true,
				Metric:    50,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24"), netip.MustParsePrefix("fd00::2/64")},
				Gateways:  []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")},
				Routes: []guestinfo.Route{{
					To:     netip.MustParsePrefix("172.16.0.0/12"),
					Via:    netip.MustParseAddr("10.0.0.254"),
					Metric: 7,
				}},
			}},
			want: `{"version": 2, "ethernets": {"id0": {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": false,
				"addresses": ["10.0.0.2/24", "fd00::2/64"], "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1", "metric": 50},
				{"to": "::/0", "via": "fd00::1", "metric": 50}, {"to": "172.16.0.0/12", "via": "10.0.0.254", "metric": 7}]}}}`,
		},
		{
			name: "a further NIC has a default route if it has a metric, and uses the requested DHCP options",
			nics: []guestinfo.NIC{
				{
					MAC:     "00:50:56:01:02:03",
					Mode:    guestinfo.ModeDHCP,
					Primary: true,
					DHCP:    guestinfo.DHCP{UseDNS: new(bool), UseDomains: "route", Metric: 9},
				},
				{
					MAC:       "00:50:56:01:02:04",
					Mode:      guestinfo.ModeManual,
					Metric:    200,
					Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
					Gateways:  []netip.Addr{netip.MustParseAddr("10.0.0.1")},
				},
				{
					MAC:  "00:50:56:01:02:05",
					Mode: guestinfo.ModeDHCP,
					DHCP: guestinfo.DHCP{UseDomains: "false", UseHostname: new(bool), SendHostname: new(true), Hostname: "a.b"},
				},
			},
			want: `{"version": 2, "ethernets": {
				"id0": {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": true, "dhcp-identifier": "mac",
					"dhcp4-overrides": {"use-dns": false, "use-domains": "route", "route-metric": 9}},
				"id1": {"match": {"macaddress": "00:50:56:01:02:04"}, "dhcp4": false, "addresses": ["10.0.0.2/24"],
					"routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1", "metric": 200}]},
				"id2": {"match": {"macaddress": "00:50:56:01:02:05"}, "dhcp4": true, "dhcp-identifier": "mac", "optional": true,
					"dhcp4-overrides": {"use-domains": false, "use-routes": false, "use-hostname": false,
						"send-hostname": true, "hostname": "a.b"}}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			values, err := guestinfo.Render(input(func(in *guestinfo.Input) { in.NICs = tt.nics }))

			g.Expect(err).NotTo(HaveOccurred())
			got, err := json.Marshal(metadataOf(t, values)["network"])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(MatchJSON(tt.want))
		})
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	g := NewWithT(t)

	first, err := guestinfo.Render(input())
	g.Expect(err).NotTo(HaveOccurred())
	second, err := guestinfo.Render(input())
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(second).To(Equal(first))
}

func TestMetadataHoldsNoBootstrapData(t *testing.T) {
	g := NewWithT(t)

	values, err := guestinfo.Render(input(func(in *guestinfo.Input) {
		in.BootstrapData = []byte("#cloud-config\n# canary-7d1f\n")
	}))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(decode(t, values[guestinfo.KeyMetadata]))).NotTo(ContainSubstring("canary-7d1f"))
}

func TestRenderRejectsInvalidInput(t *testing.T) {
	nic := func(mod func(*guestinfo.NIC)) func(*guestinfo.Input) {
		return func(in *guestinfo.Input) { mod(&in.NICs[0]) }
	}
	tests := []struct {
		name string
		mod  func(*guestinfo.Input)
		want string
	}{
		{name: "no instance ID", mod: func(in *guestinfo.Input) { in.InstanceID = "" }, want: "instance ID is empty"},
		{name: "no provider ID", mod: func(in *guestinfo.Input) { in.ProviderID = "" }, want: "provider ID is empty"},
		{name: "no bootstrap data", mod: func(in *guestinfo.Input) { in.BootstrapData = nil }, want: "bootstrap data is empty"},
		{name: "an unknown format", mod: func(in *guestinfo.Input) { in.Format = "sysprep" }, want: `format "sysprep"`},
		{
			name: "cloud-config that cloud-init cannot decode",
			mod:  func(in *guestinfo.Input) { in.BootstrapData = []byte("#cloud-config\xff") },
			want: "not UTF-8",
		},
		{name: "an empty host name", mod: func(in *guestinfo.Input) { in.Hostname = "" }, want: `host name ""`},
		{name: "an upper-case host name", mod: func(in *guestinfo.Input) { in.Hostname = "Node" }, want: `host name "Node"`},
		{
			name: "a host name that starts with a hyphen",
			mod:  func(in *guestinfo.Input) { in.Hostname = "-node" },
			want: `host name "-node"`,
		},
		{
			name: "a host name with an underscore",
			mod:  func(in *guestinfo.Input) { in.Hostname = "my_node" },
			want: `host name "my_node"`,
		},
		{
			name: "a host name with an empty label",
			mod:  func(in *guestinfo.Input) { in.Hostname = "node..example" },
			want: `host name "node..example"`,
		},
		{name: "a host name with a line break", mod: func(in *guestinfo.Input) { in.Hostname = "node\n" }, want: "host name"},
		{name: "a long label", mod: func(in *guestinfo.Input) { in.Hostname = strings.Repeat("a", 64) }, want: "up to 63"},
		{
			name: "a long host name",
			mod:  func(in *guestinfo.Input) { in.Hostname = strings.Repeat("a.", 127) + "a" },
			want: "the limit is 253",
		},
		{
			name: "an invalid MAC address",
			mod:  nic(func(n *guestinfo.NIC) { n.MAC = "00:50" }),
			want: "NIC 0: \"00:50\" is not a MAC address",
		},
		{
			name: "a MAC address of another length",
			mod:  nic(func(n *guestinfo.NIC) { n.MAC = "00:50:56:01:02:03:04:05" }),
			want: "is not a MAC address",
		},
		{
			name: "a duplicate MAC address",
			mod:  nic(func(n *guestinfo.NIC) { n.MAC = "00:50:56:ab:cd:02" }),
			want: "NIC 1: MAC address 00:50:56:ab:cd:02 is used by two NICs",
		},
		{name: "a duplicate name", mod: nic(func(n *guestinfo.NIC) { n.Name = "eth1" }), want: "NIC 1: name eth1 is used by two NICs"},
		{name: "a name with a slash", mod: nic(func(n *guestinfo.NIC) { n.Name = "../x" }), want: "not an interface name"},
		{
			name: "a long name",
			mod:  nic(func(n *guestinfo.NIC) { n.Name = "abcdefghijklmnop" }),
			want: "not an interface name",
		},
		{name: "no address", mod: nic(func(n *guestinfo.NIC) { n.Addresses = nil }), want: "mode POOL needs an address"},
		{
			name: "a multicast address",
			mod:  nic(func(n *guestinfo.NIC) { n.Addresses[0] = netip.MustParsePrefix("224.0.0.1/24") }),
			want: "not a valid address for a machine",
		},
		{
			name: "a gateway outside the subnet",
			mod:  nic(func(n *guestinfo.NIC) { n.Gateways[0] = netip.MustParseAddr("10.0.0.1") }),
			want: "gateway 10.0.0.1 is not in the subnet 192.168.100.0/24",
		},
		{
			name: "the gateway's address",
			mod:  nic(func(n *guestinfo.NIC) { n.Gateways[0] = netip.MustParseAddr("192.168.100.10") }),
			want: "is also the gateway",
		},
		{
			name: "a gateway with a zone",
			mod:  nic(func(n *guestinfo.NIC) { n.Gateways[0] = netip.MustParseAddr("fe80::1%eth0") }),
			want: "is not a valid address for a gateway",
		},
		{name: "an invalid name server", mod: nic(func(n *guestinfo.NIC) { n.DNS = []netip.Addr{{}} }), want: "name server"},
		{
			name: "a search domain with a space",
			mod:  nic(func(n *guestinfo.NIC) { n.SearchDomains = []string{"a b"} }),
			want: `search domain "a b"`,
		},
		{
			name: "two addresses of one family",
			mod: nic(func(n *guestinfo.NIC) {
				n.Addresses = append(n.Addresses, netip.MustParsePrefix("192.168.100.11/24"))
			}),
			want: "second address of its family",
		},
		{
			name: "a route between families",
			mod: nic(func(n *guestinfo.NIC) {
				n.Routes = []guestinfo.Route{{To: netip.MustParsePrefix("fd00::/8"), Via: netip.MustParseAddr("192.168.100.1")}}
			}),
			want: "of the same family",
		},
		{name: "an MTU that is too small", mod: nic(func(n *guestinfo.NIC) { n.MTU = 68 }), want: "MTU 68"},
		{name: "an unknown mode", mod: nic(func(n *guestinfo.NIC) { n.Mode = "STATIC" }), want: `mode "STATIC"`},
		{name: "a primary NIC that is not configured", mod: nic(func(n *guestinfo.NIC) { n.Mode = guestinfo.ModeNone }), want: "mode NONE"},
		{name: "no primary NIC", mod: nic(func(n *guestinfo.NIC) { n.Primary = false }), want: "0 NICs are primary"},
		{name: "two primary NICs", mod: func(in *guestinfo.Input) { in.NICs[2].Primary = true }, want: "2 NICs are primary"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			values, err := guestinfo.Render(input(tt.mod))

			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(values).To(BeNil())
		})
	}
}

// noise returns incompressible data.
func noise(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, size)
	for i := range data {
		data[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[r.IntN(64)]
	}
	return data
}

func TestSizeLimit(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		fits bool
	}{
		{"large compressible data fits", bytes.Repeat([]byte("a"), 1<<20), true},
		{"data just below the limit after encoding fits", noise(62_000), true},
		{"incompressible data counts with base64", noise(65_000), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			err := guestinfo.Check(guestinfo.FormatCloudConfig, tt.data)
			values, renderErr := guestinfo.Render(input(func(in *guestinfo.Input) { in.BootstrapData = tt.data }))

			if tt.fits {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(renderErr).NotTo(HaveOccurred())
				g.Expect(len(values[guestinfo.KeyUserdata])).To(BeNumerically("<=", guestinfo.MaxValueSize))
				return
			}
			var early, late *guestinfo.TooLargeError
			g.Expect(errors.As(err, &early)).To(BeTrue())
			g.Expect(errors.As(renderErr, &late)).To(BeTrue())
			g.Expect(early.Limit).To(Equal(guestinfo.MaxValueSize))
			g.Expect(early.Size).To(BeNumerically(">", early.Limit))
			g.Expect(late.Size).To(Equal(early.Size))
			g.Expect(late.Key).To(Equal(guestinfo.KeyUserdata))
			g.Expect(early).To(MatchError(ContainSubstring("bootstrap data has")))
			g.Expect(late).To(MatchError(ContainSubstring("guestinfo.userdata has")))
		})
	}
}

func TestRedacted(t *testing.T) {
	tests := []struct {
		name   string
		values map[string]string
		want   bool
	}{
		{name: "nothing was ever written", want: true},
		{
			name:   "cloud-init has redacted",
			values: map[string]string{"guestinfo.userdata": "---", "guestinfo.userdata.encoding": " "},
			want:   true,
		},
		{name: "the controller has cleared it", values: guestinfo.ClearUserdata(), want: true},
		{name: "a space is as empty as a guest can make it", values: map[string]string{"guestinfo.userdata": " "}, want: true},
		{name: "user data exists", values: map[string]string{"guestinfo.userdata": "H4sI"}},
		{name: "an Ignition configuration exists", values: map[string]string{"guestinfo.ignition.config.data": "H4sI"}},
		{
			name: "Ignition has deleted it",
			values: map[string]string{
				"guestinfo.ignition.config.data":          "e30K",
				"guestinfo.ignition.config.data.encoding": "base64",
			},
			want: true,
		},
		{
			name:   "foreign keys and metadata do not matter",
			values: map[string]string{"guestinfo.metadata": "H4sI", "guestinfo.foo": "bar"},
			want:   true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(guestinfo.Redacted(tt.values)).To(Equal(tt.want))
		})
	}
}

func TestClearUserdataLeavesMetadata(t *testing.T) {
	g := NewWithT(t)

	g.Expect(guestinfo.ClearUserdata()).NotTo(HaveKey(ContainSubstring("metadata")))
}

func FuzzRender(f *testing.F) {
	f.Add("id", "node", "provider", []byte("#cloud-config"), "00:50:56:ab:cd:01", "eth0")
	f.Add("é\x00\"", "a.b", "<&>{{", jinjaCloudConfig, "0050.56ab.cd01", "")
	f.Fuzz(func(t *testing.T, instanceID, hostname, providerID string, data []byte, mac, name string) {
		g := NewWithT(t)

		values, err := guestinfo.Render(guestinfo.Input{
			InstanceID:    instanceID,
			Hostname:      hostname,
			ProviderID:    providerID,
			BootstrapData: data,
			NICs:          []guestinfo.NIC{{MAC: mac, Name: name, Mode: guestinfo.ModeDHCP, Primary: true}},
		})
		if err != nil {
			return
		}

		g.Expect(decode(t, values[guestinfo.KeyUserdata])).To(Equal(data))
		metadata := metadataOf(t, values)
		g.Expect(metadata["hostname"]).To(Equal(hostname))
		if utf8.ValidString(instanceID) {
			g.Expect(metadata["instance-id"]).To(Equal(instanceID))
		}
	})
}

func TestMetadataContainsTheTopologyOfAZone(t *testing.T) {
	g := NewWithT(t)
	in := input()
	in.Region = "eu"
	in.Zone = "eu-a"

	values, err := guestinfo.Render(in)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(metadataOf(t, values)).To(And(HaveKeyWithValue("topology_region", "eu"),
		HaveKeyWithValue("topology_zone", "eu-a")))
}

func TestMetadataBelongsToTheMachineOnlyWithItsInstanceID(t *testing.T) {
	ours, err := guestinfo.Render(input())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	another := input()
	another.InstanceID = "another"
	others, err := guestinfo.Render(another)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	tests := []struct {
		name        string
		extraConfig map[string]string
		want        bool
	}{
		{name: "rendered for it", extraConfig: ours, want: true},
		{name: "rendered for another machine", extraConfig: others},
		{name: "none"},
		{name: "the image's own, as plain YAML", extraConfig: map[string]string{guestinfo.KeyMetadata: "instance-id: image\n"}},
		{
			name: "data that cannot be decoded",
			extraConfig: map[string]string{
				guestinfo.KeyMetadata:         "{}",
				guestinfo.KeyMetadataEncoding: "gzip+base64",
			},
		},
		{
			name: "data with an unknown encoding",
			extraConfig: map[string]string{
				guestinfo.KeyMetadata:         ours[guestinfo.KeyMetadata],
				guestinfo.KeyMetadataEncoding: "rot13",
			},
		},
		{
			name: "its own data, in plain JSON",
			extraConfig: map[string]string{
				guestinfo.KeyMetadata: `{"instance-id":"` + input().InstanceID + `"}`,
			},
			want: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(guestinfo.IsFor(tt.extraConfig, input().InstanceID)).To(Equal(tt.want))
		})
	}
}

func TestBootstrapDataInTheOtherFormatIsRemoved(t *testing.T) {
	g := NewWithT(t)
	values, err := guestinfo.Render(input())
	g.Expect(err).NotTo(HaveOccurred())

	left := guestinfo.Leftovers(map[string]string{
		guestinfo.KeyUserdata: "of the image",
		guestinfo.KeyIgnition: "of the image",
		"other":               "stays",
	}, values)

	g.Expect(left).To(Equal(map[string]string{guestinfo.KeyIgnition: ""}))
}

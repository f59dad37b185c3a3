// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

const metadata = `
instance-id: 0b6e2a3c-6d0f-4a57-a8e7-0d9e8a3c1f10
local-hostname: demo-cp-abcde
hostname: demo-cp-abcde
provider_id: vmware-cloud-director://urn:vcloud:vm:11111111-2222-3333-4444-555555555555
redact: [userdata, vendordata]
wait-on-network: {ipv4: true}
network:
  version: 2
  ethernets:
    nodes:
      match: {macaddress: "00:50:56:01:00:0A"}
      set-name: eth0
      addresses: [192.168.100.10/24]
      routes: [{to: default, via: 192.168.100.1}]
      nameservers: {addresses: [192.168.100.1], search: [acme.example]}
`

const userdata = `## template: jinja
#cloud-config

write_files:
-   path: /run/kubeadm/kubeadm.yaml
    owner: root:root
    permissions: '0640'
    content: |
      name: "{{ ds.meta_data.local_hostname }}"
      provider-id: {{ ds.meta_data['provider_id'] | default("none") }}
-   path: /etc/plain
    encoding: gz+b64
    content: GZB64
-   path: /etc/plain
    append: true
    content: more
runcmd:
  - 'hostnamectl set-hostname {{ v1.local_hostname }}'
  - [kubeadm, init]
users:
  - name: capv
`

func gz(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func nodeNIC() guest.NIC {
	return guest.NIC{
		MAC:     "00:50:56:01:00:0a",
		Network: "nodes",
		Mode:    guest.ModePool,
		Address: netip.MustParsePrefix("192.168.100.10/24"),
	}
}

// info returns guestinfo as written by the provider, with changes.
func info(changes ...map[string]string) map[string]string {
	m := map[string]string{
		"disk.enableUUID":             "1",
		"guestinfo.metadata":          gz(metadata),
		"guestinfo.metadata.encoding": "gzip+base64",
		"guestinfo.userdata":          gz(strings.Replace(userdata, "GZB64", gz("plain "), 1)),
		"guestinfo.userdata.encoding": "gzip+base64",
	}
	for _, c := range changes {
		maps.Copy(m, c)
	}
	return m
}

func plainMeta(old, replacement string) map[string]string {
	return map[string]string{
		"guestinfo.metadata":          strings.Replace(metadata, old, replacement, 1),
		"guestinfo.metadata.encoding": "",
	}
}

func plainUser(old, replacement string) map[string]string {
	text := strings.Replace(userdata, "GZB64", gz("plain "), 1)
	return map[string]string{
		"guestinfo.userdata":          strings.Replace(text, old, replacement, 1),
		"guestinfo.userdata.encoding": " ",
	}
}

func many(count, size int) map[string]string {
	m := map[string]string{}
	for i := range count {
		m[fmt.Sprintf("guestinfo.x%d", i)] = strings.Repeat("x", size)
	}
	return m
}

func TestReadFirstBoot(t *testing.T) {
	g := NewWithT(t)

	id, err := guest.Read(info(), []guest.NIC{nodeNIC()}, guest.Machine{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id.InstanceID).To(Equal("0b6e2a3c-6d0f-4a57-a8e7-0d9e8a3c1f10"))
	g.Expect(id.Hostname).To(Equal("demo-cp-abcde"))
	g.Expect(id.ProviderID).To(HaveSuffix("555555555555"))
	g.Expect(id.Addresses).To(
		Equal(map[string][]netip.Prefix{"00:50:56:01:00:0a": {netip.MustParsePrefix("192.168.100.10/24")}}))
	g.Expect(id.Address()).To(Equal(netip.MustParseAddr("192.168.100.10")))
	g.Expect(id.Userdata.Users).To(Equal([]string{"capv"}))
	g.Expect(id.Userdata.Commands).To(Equal([]string{"hostnamectl set-hostname demo-cp-abcde", "kubeadm init"}))
	kubeadm, found := id.Userdata.File("/run/kubeadm/kubeadm.yaml")
	g.Expect(found).To(BeTrue())
	g.Expect(kubeadm.Content).To(Equal("name: \"demo-cp-abcde\"\nprovider-id: " + id.ProviderID + "\n"))
	joined, _ := id.Userdata.File("/etc/plain")
	g.Expect(joined.Content).To(Equal("plain more"))
}

func TestReadAfterRedaction(t *testing.T) {
	g := NewWithT(t)
	keys := info()
	first, err := guest.Read(keys, []guest.NIC{nodeNIC()}, guest.Machine{})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(first.Published()).To(Equal(map[string]string{
		"guestinfo.userdata":            "---",
		"guestinfo.userdata.encoding":   " ",
		"guestinfo.vendordata":          "---",
		"guestinfo.vendordata.encoding": " ",
		"guestinfo.local-ipv4":          "192.168.100.10",
	}))
	maps.Copy(keys, first.Published())
	second, err := guest.Read(keys, []guest.NIC{nodeNIC()}, guest.Machine{})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Userdata).To(BeNil())
	second.Userdata = first.Userdata
	g.Expect(second).To(Equal(first))
}

func TestReadAccepts(t *testing.T) {
	encodedNetwork := `
instance-id: 12345
local-hostname: a
network: ` + b64(`{"version": 2, "ethernets": {"a": {"match": {"name": "e*"}, "dhcp4": true}}}`) + `
network.encoding: base64
`
	dhcp := guest.NIC{
		MAC:     "00:50:56:01:00:0b",
		Network: "lab",
		Mode:    guest.ModeDHCP,
		Address: netip.MustParsePrefix("192.168.100.150/24"),
	}
	tests := []struct {
		name string
		keys map[string]string
		nic  guest.NIC
		want string
	}{
		{
			name: "metadata may be JSON, and without a network the first interface uses DHCP",
			nic:  dhcp,
			want: "192.168.100.150",
			keys: map[string]string{
				"guestinfo.metadata":          `{"instance-id": "i", "local-hostname": "a"}`,
				"guestinfo.metadata.encoding": "none",
			},
		},
		{
			name: "the network may be an encoded document",
			nic:  dhcp,
			want: "192.168.100.150",
			keys: map[string]string{
				"guestinfo.metadata":          b64(encodedNetwork),
				"guestinfo.metadata.encoding": "b64",
			},
		},
		{
			name: "gateway4 and an address with options are still supported",
			nic:  nodeNIC(),
			want: "192.168.100.10",
			keys: plainMeta(
				"addresses: [192.168.100.10/24]",
				"gateway4: 192.168.100.1\n      addresses: [192.168.100.10/24: {label: x}]"),
		},
		{
			name: "a jinja comment and a raw block are not expressions",
			nic:  nodeNIC(),
			want: "192.168.100.10",
			keys: plainUser(
				"[kubeadm, init]", "'{# note #}{% raw %}{{ .Go }}{% endraw %}'"),
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)

			id, err := guest.Read(info(tc.keys), []guest.NIC{tc.nic}, guest.Machine{})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(id.Address().String()).To(Equal(tc.want))
		})
	}
}

func TestUserDataAloneBootsAGuest(t *testing.T) {
	second := guest.NIC{MAC: "00:50:56:01:00:0b", Network: "storage", Mode: guest.ModeNone}
	leased := guest.NIC{
		MAC:     "00:50:56:01:00:0c",
		Network: "dhcp",
		Mode:    guest.ModeDHCP,
		Address: netip.MustParsePrefix("10.9.0.7/24"),
	}
	machine := guest.Machine{UUID: "4206D9C1-0000-4000-8000-000000000001", Hostname: "cp-0", Customized: true}
	for _, tc := range []struct {
		name    string
		nics    []guest.NIC
		machine guest.Machine
		want    string // address
	}{
		{
			name:    "guest customization assigns name and address",
			nics:    []guest.NIC{nodeNIC(), second, leased},
			machine: machine,
			want:    "192.168.100.10",
		},
		{
			name:    "without customization the first interface uses DHCP",
			nics:    []guest.NIC{leased},
			machine: guest.Machine{UUID: machine.UUID, Hostname: "localhost"},
			want:    "10.9.0.7",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			for _, metadata := range []string{"", "---"} {
				id, err := guest.Read(info(map[string]string{
					"guestinfo.metadata":          metadata,
					"guestinfo.metadata.encoding": "",
					"guestinfo.userdata":          "#cloud-config\nruncmd: [echo]\n",
					"guestinfo.userdata.encoding": "",
				}), tc.nics, tc.machine)

				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(id.InstanceID).To(Equal("4206d9c1-0000-4000-8000-000000000001"), "of the firmware")
				g.Expect(id.Hostname).To(Equal(tc.machine.Hostname))
				g.Expect(id.Address().String()).To(Equal(tc.want))
				g.Expect(id.Userdata.Commands).To(Equal([]string{"echo"}))
			}
		})
	}
	t.Run("without customization an interface with a static address has none", func(t *testing.T) {
		_, err := guest.Read(map[string]string{"guestinfo.userdata": "#cloud-config\n{}"}, []guest.NIC{nodeNIC()},
			guest.Machine{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("uses DHCP on its first NIC")))
	})
}

func TestReadRejectsInvalidInput(t *testing.T) {
	tests := []struct {
		name string
		keys map[string]string
		want string
	}{
		{
			name: "no data",
			keys: map[string]string{"guestinfo.metadata": "", "guestinfo.userdata": ""},
			want: "the guest finds no data at all",
		},
		{
			name: "fully redacted data",
			keys: map[string]string{"guestinfo.metadata": "---", "guestinfo.userdata": "---"},
			want: "the guest finds no data at all",
		},
		{
			name: "an encoding that cloud-init does not support",
			keys: map[string]string{"guestinfo.metadata.encoding": "gz+base64"},
			want: `encoding "gz+base64" is not one of`,
		},
		{
			name: "gzip data encoded as base64 only",
			keys: map[string]string{"guestinfo.userdata.encoding": "base64"},
			want: "guestinfo.userdata: decoded value is not UTF-8",
		},
		{
			name: "invalid gzip data",
			keys: map[string]string{"guestinfo.userdata": b64("#cloud-config")},
			want: "guestinfo.userdata: value is not gzip data",
		},
		{name: "damaged base64", keys: map[string]string{"guestinfo.userdata": "%"}, want: "guestinfo.userdata: value is not base64"},
		{
			name: "damaged vendor data",
			keys: map[string]string{"guestinfo.vendordata": "%", "guestinfo.vendordata.encoding": "b64"},
			want: "guestinfo.vendordata",
		},
		{
			name: "a decompression bomb",
			keys: map[string]string{"guestinfo.userdata": gz(strings.Repeat(" ", 17<<20))},
			want: "larger than",
		},
		{
			name: "an oversized value",
			keys: map[string]string{"guestinfo.userdata": strings.Repeat("x", guest.MaxValue+1)},
			want: "guestinfo.userdata: 65537 bytes are more than the 65536",
		},
		{name: "too many values", keys: many(20, guest.MaxValue), want: "more than the 1048576"},
		{
			name: "metadata that is a list",
			keys: map[string]string{"guestinfo.metadata": b64("[]"), "guestinfo.metadata.encoding": "b64"},
			want: "not a YAML mapping",
		},
		{name: "no instance ID", keys: plainMeta("instance-id", "instanceid"), want: "instance-id is missing"},
		{name: "no host name", keys: plainMeta("local-hostname", "local-host"), want: "takes its name from local-hostname"},
		{name: "a bad host name", keys: plainMeta("local-hostname: demo", "local-hostname: demo_"), want: "is not a host name"},
		{name: "network version 1", keys: plainMeta("version: 2", "version: 1"), want: `version is "1"`},
		{
			name: "a nonexistent interface",
			keys: plainMeta("00:50:56:01:00:0A", "00:50:56:01:00:0F"),
			want: "is not a NIC of this VM (it has 00:50:56:01:00:0a)",
		},
		{
			name: "another address than VCD's",
			keys: plainMeta("192.168.100.10/24", "192.168.100.11/24"),
			want: "would get 192.168.100.11/24, but VCD assigned 192.168.100.10/24",
		},
		{
			name: "another prefix than VCD's",
			keys: plainMeta("192.168.100.10/24", "192.168.100.10/16"),
			want: "VCD assigned 192.168.100.10/24",
		},
		{
			name: "an address without prefix",
			keys: plainMeta("192.168.100.10/24", "192.168.100.10"),
			want: "not an address with a prefix length",
		},
		{
			name: "DHCP on an interface with a pool address",
			keys: plainMeta("addresses: [192.168.100.10/24]", "dhcp4: true"),
			want: "asks DHCP but VCD's address mode is POOL",
		},
		{name: "an unknown netplan key", keys: plainMeta("set-name", "setname"), want: "unknown key setname"},
		{
			name: "an unknown netplan override",
			keys: plainMeta("addresses: [192.168.100.10/24]", "dhcp4: true\n      dhcp4-overrides: {use-hostnames: false}"),
			want: "unknown key use-hostnames in dhcp4-overrides",
		},
		{name: "a gateway outside the subnet", keys: plainMeta("via: 192.168.100.1", "via: 10.0.0.1"), want: "gateway 10.0.0.1 is outside"},
		{name: "a route without gateway", keys: plainMeta(", via: 192.168.100.1", ""), want: "via is missing"},
		{name: "an invalid name server", keys: plainMeta("[192.168.100.1]", "[dns.example]"), want: `"dns.example" is not an address`},
		{name: "an address family without addresses", keys: plainMeta("ipv4: true", "ipv6: true"), want: "wait-on-network.ipv6"},
		{name: "user data without header", keys: plainUser("#cloud-config", "#!/bin/sh"), want: "does not begin with #cloud-config"},
		{name: "another template language", keys: plainUser("jinja", "basic"), want: `template "basic" is not jinja`},
		{
			name: "an unknown variable",
			keys: plainUser("ds.meta_data.local_hostname", "ds.meta_data.nope"),
			want: `line 8: variable "ds.meta_data.nope" does not exist`,
		},
		{name: "a jinja statement", keys: plainUser("{{ v1.local_hostname }}", "{% if x %}"), want: "statements other than raw"},
		{name: "an unclosed expression", keys: plainUser("{{ v1.local_hostname }}", "{{ x"), want: "is not closed"},
		{name: "a mapping as a variable", keys: plainUser("ds.meta_data.local_hostname", "ds.meta_data"), want: "is not a simple value"},
		{name: "a file without a path", keys: plainUser("path: /run/kubeadm/kubeadm.yaml", "file: x"), want: "write_files[0]: no path"},
		{name: "an unknown file encoding", keys: plainUser("gz+b64", "gz+b65"), want: `encoding "gz+b65" is unknown`},
		{name: "a command that is a mapping", keys: plainUser("[kubeadm, init]", "a: b"), want: "entry 1 is neither a string nor a list"},
		{name: "broken YAML", keys: plainUser("runcmd:", "\truncmd:"), want: "not YAML"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := guest.Read(info(tc.keys), []guest.NIC{nodeNIC()}, guest.Machine{})

			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestReadRejectsADownInterface(t *testing.T) {
	g := NewWithT(t)
	storage := guest.NIC{
		MAC:     "00:50:56:01:00:0b",
		Network: "storage",
		Mode:    guest.ModePool,
		Address: netip.MustParsePrefix("10.20.0.10/24"),
	}

	_, err := guest.Read(info(), []guest.NIC{nodeNIC(), storage}, guest.Machine{})

	g.Expect(err).To(MatchError(
		ContainSubstring("on network storage has address 10.20.0.10/24 in VCD but the guest does not configure it")))
}

func FuzzRead(f *testing.F) {
	f.Add(metadata, "", userdata, "", "")
	f.Add(gz(metadata), "gz+b64", gz(userdata), "gz+b64", "")
	f.Add(`{"instance-id":"a","local-hostname":"b","network":{"version":2,"ethernets":{"a":{"match":{}}}}}`, "none",
		"#cloud-config\n{}", "", "{}")
	f.Add(metadata, "", "## template: jinja\n#cloud-config\na: {{ a.b[0]|default('x') }}{%raw%}{{{%endraw%}{#", "", "")
	f.Fuzz(func(_ *testing.T, meta, metaEncoding, user, userEncoding, ignition string) {
		id, err := guest.Read(map[string]string{
			"guestinfo.metadata":             meta,
			"guestinfo.metadata.encoding":    metaEncoding,
			"guestinfo.userdata":             user,
			"guestinfo.userdata.encoding":    userEncoding,
			"guestinfo.ignition.config.data": ignition,
		}, []guest.NIC{nodeNIC()}, guest.Machine{})
		if err == nil {
			id.Published()
			id.Address()
		}
	})
}

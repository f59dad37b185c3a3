// SPDX-License-Identifier: Apache-2.0

package siteexport_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteexport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Texts that are allowed in a file.
var (
	aliases = regexp.MustCompile(`^(System( Default| Administrator)?|org-1|Exported User|Organization Administrator|` +
		`admin|administrator|capvcd|(vdc|group|policy|storage|external|gateway|engines|space|uplink|network|catalog|vm)-[0-9]+|` +
		`template-[0-9]+(-kube-v1\.[0-9]{1,2}\.[0-9]{1,2})?)$`)
	constants = regexp.MustCompile(`^(password|capvcd-api-token|example\.com|Flex|AllocationVApp|AllocationPool|ReservationPool|` +
		`NSXT_VRF_TIER0|IMPORTED_T_LOGICAL_SWITCH|STANDARD|PREMIUM|NAT_ROUTED|ISOLATED|OPAQUE|PUBLIC|SHARED_SERVICES|EDGE|` +
		`NETWORK|RELAY|v1\.[0-9]{1,2}\.[0-9]{1,2}|vmx-[0-9]{1,2}|[0-9hms]+|(ubuntu|other3xLinux|vmwarePhoton|rhel[0-9])(_?64)?Guest)$`)
	comments = regexp.MustCompile(`^# An organization of a site without its names and addresses, exported by vcdctl export-site\.
# VMware Cloud Director: 10\.6\.0\.24056521
# API versions: [0-9]{2}\.[0-9] to [0-9]{2}\.[0-9]
# Start it with: vcdsim --model FILE
# Log in to the organization org-1 as admin or capvcd, with the password "password"\.
$`)
	moved = []netip.Prefix{
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("2001:db8::/32"),
	}
)

// expectClosed compares each text of a file with the allowed texts, regardless of the site.
func expectClosed(g *WithT, file string) {
	document := strings.Index(file, "\nexternalNetworks:")
	if first := strings.Index(file, "\norgs:"); document < 0 || first < document {
		document = first
	}
	g.Expect(file[:document+1]).To(MatchRegexp(comments.String()))
	var root any
	g.Expect(yaml.Unmarshal([]byte(file), &root)).To(Succeed())
	for _, text := range textsOf(root) {
		g.Expect(isClosed(text)).To(BeTrue(), "%q", text)
	}
}

// textsOf returns all texts below a value, without field names.
func textsOf(value any) []string {
	var all []string
	switch x := value.(type) {
	case map[string]any:
		for _, below := range x {
			all = append(all, textsOf(below)...)
		}
	case []any:
		for _, below := range x {
			all = append(all, textsOf(below)...)
		}
	case string:
		all = append(all, x)
	}
	return all
}

func isClosed(text string) bool {
	if text == "0.0.0.0/0" || text == "::/0" {
		return true
	}
	address, _, _ := strings.Cut(text, "/")
	if a, err := netip.ParseAddr(address); err == nil {
		return slices.ContainsFunc(moved, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return aliases.MatchString(text) || constants.MatchString(text) || slices.Contains(siteexport.KnownRights(), text)
}

// named returns the tenant of a preset with a given text in all of its names and free texts.
func named(preset func() vcdsim.Model, text string) vcdsim.Model {
	m := preset()
	org := &m.Orgs[1]
	org.FullName = text
	org.Description = text
	org.RuntimeLease = vcdsim.Duration(36 * time.Hour)
	for i := range m.Policies {
		m.Policies[i].Description = text
	}
	rename(&m.ExternalNetworks[0].Name, text)
	gateway := &org.VDCs[0].EdgeGateways[0]
	gateway.Uplinks[0].Network = m.ExternalNetworks[0].Name
	rename(&gateway.Name, text)
	gateway.Description = text
	for i := range m.IPSpaces {
		rename(&m.IPSpaces[i].Name, text)
		m.IPSpaces[i].Description = text
		m.IPSpaces[i].Uplinks[0].Network = m.ExternalNetworks[0].Name
	}
	vdc := &org.VDCs[0]
	rename(&vdc.Name, text)
	vdc.Description = text
	for i := range vdc.Networks {
		rename(&vdc.Networks[i].Name, text)
		vdc.Networks[i].Description = text
		vdc.Networks[i].DNSSuffix = text
	}
	for i := range vdc.StorageProfiles {
		rename(&vdc.StorageProfiles[i].Name, text)
	}
	catalog := &org.Catalogs[0]
	rename(&catalog.Name, text)
	catalog.Description = text
	for i := range catalog.Templates {
		rename(&catalog.Templates[i].Name, text)
		catalog.Templates[i].Description = text
	}
	vm := &catalog.Templates[0].VMs[0]
	rename(&vm.Name, text)
	vm.OS = text
	vm.Properties = map[string]string{text: text}
	vm.ExtraConfig = map[string]string{"guestinfo." + text: text}
	return m
}

func rename(name *string, text string) { *name = text + *name }

// printable removes characters that XML cannot contain.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > 0xd7ff || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

func FuzzAFileHasNothingOfTheSite(f *testing.F) {
	f.Add("zztelling", "10.77.3.1/24", "172.31.255.53")
	f.Add("acme v1.33.1 of https://vcd.example.com", "192.168.1.1/16", "9.9.9.9")
	f.Add("urn:vcloud:vm:7a0e0d4c-1111-4222-8333-444455556666 ", "10.0.0.1/8", "fd77::53")
	f.Add("eyJhbGciOi.token <&\"'", "100.64.0.1/30", "none")
	f.Add("windows9acmeGuest", "10.1.2.3/32", "10.1.2.3")
	f.Fuzz(func(t *testing.T, text, subnet, dns string) {
		g := NewWithT(t)
		model := named(vcdsim.IPSpaces, printable(text))
		network := &model.Orgs[1].VDCs[0].Networks[0]
		if p, err := netip.ParsePrefix(subnet); err == nil && p.Addr().Zone() == "" {
			network.Gateway = p
			network.StaticPool = nil
			network.DHCPPool = nil
		}
		if a, err := netip.ParseAddr(dns); err == nil && a.Zone() == "" {
			network.DNS = []netip.Addr{a}
		}

		file, _ := export(t, newSite(t, model), "acme", "admin")

		expectClosed(g, file)
		load(t, file)
	})
}

func TestAFileContainsNoNamesOfTheSite(t *testing.T) {
	g := NewWithT(t)
	site := newSite(t, named(vcdsim.K8sTenant, "zztelling"))

	file, notes := export(t, site, "acme", "capvcd")

	expectClosed(g, file)
	g.Expect(fmt.Sprint(notes)).NotTo(ContainSubstring("zztelling"))
	for _, ours := range []string{"zztelling", "acme", "203.0.113", "192.168.100", site.URL()} {
		g.Expect(file).NotTo(ContainSubstring(ours))
	}
	for _, kept := range []string{
		"name: template-2-kube-v1.36.3", "kubernetesVersion: v1.36.3", "runtimeLease: 36h0m0s", "memoryMiB: 16384",
	} {
		g.Expect(file).To(ContainSubstring(kept))
	}
}

// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// startFlavor starts a site with three VDCs, and uses the manifest of a flavor.
func startFlavor(t *testing.T, flavor string, with map[string]string, f fault) *site {
	t.Helper()
	edit := f.model
	f.model = func(m *vcdsim.Model) {
		*m = vcdsim.ThreeZones()
		if edit != nil {
			edit(m)
		}
	}
	s := start(t, f)
	data, err := os.ReadFile(filepath.Join("..", "..", "templates", "cluster-template"+flavor+".yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	variables := testflavors.Rendered()
	nested := strings.ReplaceAll(string(data), "${CLUSTER_NAME}", cmp.Or(with["CLUSTER_NAME"], variables["CLUSTER_NAME"]))
	text := os.Expand(nested, func(variable string) string {
		name, fallback, _ := strings.Cut(variable, ":=")
		return cmp.Or(with[name], variables[name], fallback)
	})
	s.manifest = strings.NewReplacer(f.text...).Replace(text)
	return s
}

func TestFlavorManifestsHaveNoFindings(t *testing.T) {
	for flavor, with := range map[string]map[string]string{
		"":       nil,
		"-bgp":   {"CONTROL_PLANE_ENDPOINT_IP": "203.0.113.250"},
		"-zones": nil,
	} {
		t.Run("cluster-template"+flavor, func(t *testing.T) {
			s := startFlavor(t, flavor, with, fault{})

			report := s.run(t)

			s.Expect(report.Findings).To(BeEmpty())
			s.Expect(report.Skipped).To(BeEmpty())
		})
	}
}

// A problem in one of three zones is reported once, with the object to correct.
func TestEachZoneFaultIsReportedOnce(t *testing.T) {
	const inB = "  failureDomain: \"demo-b\"\n  site"
	for _, f := range []fault{
		{
			name:   "a nonexistent VDC",
			text:   []string{`ovdc: "acme-vdc-b"`, `ovdc: "acme-vdc-x"`},
			check:  "vdc",
			says:   "acme-vdc-x",
			remedy: "spec.ovdc of VCDFailureDomain demo-b",
		},
		{
			name:   "a full VDC",
			model:  func(m *vcdsim.Model) { m.Orgs[1].VDCs[1].VMQuota = 1 },
			check:  "capacity",
			says:   "VDC acme-vdc-b has capacity for 1 more VMs of 1, but 3 are planned",
			remedy: "VM quota",
		},
		{
			name:   "a network that one zone does not have",
			text:   []string{inB, "  placementConstraint: {networks: [none]}\n" + inB},
			check:  "network",
			says:   `"none"`,
			remedy: "spec.ovdcNetwork",
		},
		{
			name:   "a virtual IP in the static pools of all zones",
			text:   []string{"192.168.100.200", "192.168.100.20"},
			check:  "endpoint",
			says:   "static pool",
			remedy: "set another address",
		},
		{
			name:   "a zone without a failure domain",
			text:   []string{inB, "  failureDomain: demo-x\n  site"},
			check:  "manifest",
			says:   `VCDFailureDomain "demo-x"`,
			remedy: "correct the manifest",
		},
		{
			name:   "workers without a failure domain",
			text:   []string{"      failureDomain: \"demo-b\"\n", ""},
			check:  "manifest",
			says:   "cannot be placed: set their failureDomain to a zone",
			remedy: "correct the manifest",
		},
		{
			name:   "workers in a zone that the cluster does not have",
			text:   []string{"      failureDomain: \"demo-b\"\n", "      failureDomain: demo-x\n"},
			check:  "manifest",
			says:   `failure domain "demo-x"`,
			remedy: "correct the manifest",
		},
		{
			name: "a zone with another identity",
			text: []string{
				inB + ": \"https://vcd.example.com\"\n  org: \"acme\"\n  identityRef:\n    kind: VCDIdentity\n    name: \"demo\"",
				inB + ": \"https://vcd.example.com\"\n  org: \"acme\"\n  identityRef:\n    kind: VCDIdentity\n    name: other",
			},
			check:  "manifest",
			says:   "demo-b has another identity",
			remedy: "--vdc",
		},
		{
			name: "a zone in another organization",
			text: []string{
				inB + ": \"https://vcd.example.com\"\n  org: \"acme\"",
				inB + ": \"https://vcd.example.com\"\n  org: other",
			},
			check:  "manifest",
			says:   "demo-b is \"other\", spec.org of the VCDCluster",
			remedy: "use a zone of the same organization",
		},
		{
			name: "zones that are not in the manifest",
			text: []string{
				"failureDomainSelector:\n    matchLabels:", "failureDomainSelector:\n    matchLabels:\n      region: x",
			},
			check:  "vdc",
			says:   "no zone that",
			remedy: "--vdc",
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := startFlavor(t, "-zones", nil, f)

			s.expectOnly(f, s.run(t))
		})
	}
}

func TestOneVDCOfAClusterWithZonesCanBeSelected(t *testing.T) {
	s := startFlavor(t, "-zones", nil, fault{text: []string{`ovdc: "acme-vdc-b"`, `ovdc: "acme-vdc-x"`}})
	plan, err := readPlan(t, s.manifest)
	s.Expect(err).NotTo(HaveOccurred())

	report := s.check(t, plan.InVDC("acme-vdc-c"))

	s.Expect(report.Findings).To(BeEmpty())
	s.Expect(report.Facts).To(ContainElement(HavePrefix("vdc: acme-vdc-c ")))
}

func TestCapabilitiesOfOneVDCAreNotAppliedToAnother(t *testing.T) {
	s := startFlavor(t, "-zones", nil, fault{
		model: func(m *vcdsim.Model) { imageOf(m).HardwareVersion = "vmx-99" },
		text:  []string{`ovdc: "acme-vdc-b"`, `ovdc: "acme-vdc-x"`},
	})

	report := s.run(t)

	s.Expect(report.Findings).To(ConsistOf(
		HaveField("Message", ContainSubstring("acme-vdc-x")),
		HaveField("Message", ContainSubstring("VDC acme-vdc supports vmx")),
		HaveField("Message", ContainSubstring("VDC acme-vdc-c supports vmx")),
	))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// doctor checks a VDC, a network and a template, and returns the findings.
func (s *shell) doctor(t *testing.T, vdc, network, template string) doctor.Report {
	t.Helper()
	s.run(t, "doctor", "-o", "json", "--vdc", vdc, "--network", network, "--template", template)
	var report doctor.Report
	s.Expect(json.Unmarshal(s.out.Bytes(), &report)).To(Succeed(), s.errors.String())
	return report
}

// exported returns a shell with a simulator that was started from the export of another simulated site.
func (s *shell) exported(t *testing.T) *shell {
	t.Helper()
	path := filepath.Join(t.TempDir(), "site.yaml")
	s.Expect(s.run(t, "export-site", "--file", path)).To(Equal(exitOK), s.errors.String())
	file, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred())
	model, err := vcdsim.ReadModel(bytes.NewReader(file))
	s.Expect(err).NotTo(HaveOccurred())
	again := newShell(t, func(m *vcdsim.Model) {
		*m = model
		m.Orgs[1].Users[1].Password = password
	})
	again.useEnvironment(t)
	again.env["VCD_ORGANIZATION"] = "org-1"
	return again
}

func TestDoctorReportsTheSameFindingsForAnExportedSite(t *testing.T) {
	for name, mod := range map[string]func(*vcdsim.Model){
		"without problems": func(*vcdsim.Model) {},
		"with leases and a quota": func(m *vcdsim.Model) {
			m.Orgs[1].RuntimeLease = vcdsim.Duration(3600e9)
			m.Orgs[1].VDCs[0].VMQuota = 1
		},
		"without load balancing": func(m *vcdsim.Model) { m.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer = nil },
		"without rights":         func(m *vcdsim.Model) { m.Orgs[1].Roles[0].Rights = m.Orgs[1].Roles[1].Rights },
		"without a static pool":  func(m *vcdsim.Model) { m.Orgs[1].VDCs[0].Networks[0].StaticPool = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, mod)
			s.useEnvironment(t)
			before := s.doctor(t, "acme-vdc", "nodes", "kubernetes/ubuntu-2404-kube-v1.36.3")

			after := s.exported(t).doctor(t, "vdc-1", "network-1", "catalog-1/template-2-kube-v1.36.3")

			s.Expect(after.Passed).To(Equal(before.Passed))
			s.Expect(after.Skipped).To(Equal(before.Skipped))
			s.Expect(after.Facts).To(HaveLen(len(before.Facts)))
			s.Expect(after.Findings).To(HaveLen(len(before.Findings)))
			for i, f := range before.Findings {
				s.Expect(after.Findings[i].Check).To(Equal(f.Check))
				s.Expect(after.Findings[i].Severity).To(Equal(f.Severity))
			}
		})
	}
}

func TestAnExportIsPrinted(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()

	s.Expect(s.run(t, "export-site", "--identity", "tenant", "--org", "acme", "-n", "team-a")).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(And(HavePrefix("# An organization of a site"), ContainSubstring("name: vdc-1")))
	s.Expect(s.errors.String()).To(BeEmpty())

	s.Expect(s.run(t, "export-site", "--identity", "tenant", "--org", "acme", "-n", "team-a", "-o", "json")).To(Equal(exitOK))
	model, err := vcdsim.ReadModel(&s.out)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(model.Orgs[1].VDCs).To(HaveLen(1))
}

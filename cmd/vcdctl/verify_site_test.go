// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// verifying returns the arguments for a run of one quick probe that writes.
func verifying(more ...string) []string {
	return append([]string{
		"verify-site", "--only", "TenantProfilesNeedOrg", "--identity", "tenant", "--org", "acme", "-n", "team-a",
	}, more...)
}

func TestNothingIsCreatedWithoutConsent(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()

	s.Expect(s.run(t, verifying()...)).To(Equal(exitError))
	s.Expect(s.errors.String()).To(And(ContainSubstring("Limits of the whole run"), ContainSubstring("set --yes")))

	s.in = "no\n"
	s.Expect(s.run(t, verifying()...)).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("not confirmed"))

	for _, r := range s.sim.Requests() {
		s.Expect(r.Changes()).To(BeFalse(), r.Operation)
	}
}

func TestVerifySiteComparesTheSiteWithTheSimulator(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()
	report := filepath.Join(t.TempDir(), "site.yaml")

	code := s.run(t, verifying("--yes", "--report", report)...)

	s.Expect(code).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(MatchRegexp(`(?m)^TenantProfilesNeedOrg +true +true +the request was rejected`))
	s.Expect(s.out.String()).To(MatchRegexp(`(?m)^MaxVMsPerVApp +128 +not probed +it would require`))
	written, err := os.ReadFile(report)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(string(written)).To(And(ContainSubstring("TenantProfilesNeedOrg: true"), Not(ContainSubstring("acme"))))

	s.in = "yes\n"
	s.Expect(s.run(t, verifying("-o", "json")...)).To(Equal(exitOK), s.errors.String())
	var result verifysite.Result
	s.Expect(json.Unmarshal(s.out.Bytes(), &result)).To(Succeed())
	s.Expect(result.Findings).To(HaveLen(len(verifysite.Table())))
}

func TestADifferenceIsAFinding(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()
	s.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().EmptyPageBeyondEnd = false })

	code := s.run(t, "verify-site", "--read-only", "--identity", "tenant", "--org", "acme", "-n", "team-a")

	s.Expect(code).To(Equal(exitFindings), s.errors.String())
	s.Expect(s.out.String()).To(MatchRegexp(`(?m)^EmptyPageBeyondEnd +true +false +a page after the last`))
}

// leaveProfiles adds an object of each run.
func (s *shell) leaveProfiles(runs ...string) {
	s.sim.Edit(func(e *vcdsim.Editor) {
		for _, run := range runs {
			e.AddDocument("1.0.0/applicationPortProfiles", "applicationPortProfile", e.Model.Orgs[1].ID, "", map[string]any{
				"name":            "capvcd-verify-" + run + "-profile",
				"description":     "vcdctl verify-site " + run + ": vcdctl verify-site --clean-up removes it",
				"scope":           "TENANT",
				"contextEntityId": "urn:vcloud:vdc:" + e.VDC("acme-vdc").ID,
			})
		}
	})
}

func TestCleanUpWithoutAQuestionRemovesOnlyNamedRuns(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()
	s.leaveProfiles("11111111", "22222222")
	cleaning := []string{"verify-site", "--clean-up", "--yes", "--identity", "tenant", "--org", "acme", "-n", "team-a"}

	s.Expect(s.run(t, cleaning...)).NotTo(Equal(exitOK))
	s.Expect(s.out.String()).To(And(ContainSubstring("11111111"), ContainSubstring("22222222")))
	s.Expect(s.errors.String()).To(ContainSubstring("set --run to the runs that have ended"))

	s.Expect(s.run(t, append(cleaning, "--run", "11111111")...)).To(Equal(exitOK), s.errors.String())
	s.Expect(s.run(t, cleaning...)).NotTo(Equal(exitOK))
	s.Expect(s.out.String()).To(And(Not(ContainSubstring("11111111")), ContainSubstring("22222222")))
}

func TestCleanUpOfASiteWithoutOrphanedResources(t *testing.T) {
	s := newShell(t)
	s.objects = s.identity()

	code := s.run(t, "verify-site", "--clean-up", "--identity", "tenant", "--org", "acme", "-n", "team-a")

	s.Expect(code).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(Equal("No orphaned resources found.\n"))
}

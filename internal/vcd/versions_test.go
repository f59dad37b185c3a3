// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Versions of two releases whose oldest versions differ.
var (
	oldCell = []string{"36.3", "37.2", "37.3", "38.0", "38.1"}
	newCell = []string{"38.0", "38.1", "39.0"}
)

func TestCellsOfTwoReleasesUseACommonVersion(t *testing.T) {
	for name, cells := range map[string][][]string{
		"if the old cell is first": {oldCell, newCell},
		"if the new cell is first": {newCell, oldCell},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.on(opVM, answerVM)
			f.setCells(cells...)
			s := session(t, f)

			for range 4 {
				_, err := s.VMs.VM(t.Context(), testVM)
				g.Expect(err).NotTo(HaveOccurred())
			}

			g.Expect(s.transport.Site.AgreedVersion()).To(Equal("38.0"))
			g.Expect(f.count(opLogin)).To(BeNumerically("<=", 4))
			g.Expect(f.count("GET /api/versions")).To(BeNumerically("<=", 4))
			g.Expect(f.issued).To(Equal(1), "one login succeeds")
		})
	}
}

func TestOfferedVersionsAreSortedByNumber(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	s := session(t, f)
	f.setCells([]string{"100.0", "38.1", "39.10", "39.2", "40.0.0-alpha"})

	offered, err := s.OfferedVersions(t.Context())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(offered).To(Equal([]string{"38.1", "39.2", "39.10", "100.0"}))
}

func TestAWriteIsSentOnceToCellsOfTwoReleases(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	s := session(t, f)
	f.setCells(newCell, oldCell)
	done := 0
	f.on("POST /api/vApp/vm-{id}/power/action/powerOn", func(w http.ResponseWriter, _ *http.Request) {
		done++
		xmlTask(w, "running")
	})

	_, err := s.VMs.PowerOn(t.Context(), testVM)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(Equal(1))
}

func TestAnUpgradeThatEndsSessions(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.setVersions(newCell...)
	f.expire()

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.issued).To(Equal(2), "one more login")
}

func TestCellsWithoutACommonVersionAreUnavailable(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.on("GET /api/versions", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<SupportedVersions><VersionInfo><Version>37.2</Version></VersionInfo></SupportedVersions>`)
	})
	f.setVersions(newCell...)

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).To(MatchError(ErrUnavailable), "the request is not at fault")
	g.Expect(f.count(opVM)).To(Equal(5), "it does not continue forever")
	f.setVersions(oldCell...)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"),
		"a rejected version is used if there is no other")
}

func TestARejectedVersionIsRetriedLater(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	f.setVersions(newCell...)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("38.0"))

	f.setVersions("37.2", "37.3") // the upgrade was rolled back
	clock.Advance(10*time.Minute + time.Second)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))

	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("37.2"))
}

const opRules = "GET /cloudapi/2.0.0/edgeGateways/{id}/firewall/rules"

// answerRules responds with the requested version as the name of a rule.
func answerRules(w http.ResponseWriter, r *http.Request) {
	_, version, _ := strings.Cut(r.Header.Get("Accept"), "version=")
	reply(w, `{"userDefinedRules":[{"id":"1","name":%q}]}`, version)
}

func TestACallRequestsTheVersionThatIntroducedIt(t *testing.T) {
	tests := []struct {
		name     string
		versions []string
		asks     string // empty: it does not exist
		agreed   string
	}{
		{"if older ones are offered, too", []string{"37.2", "37.3", "38.0", "38.1", "39.0"}, "38.1", "37.2"},
		{"if that version is no longer offered", []string{"37.2", "39.0", "39.1"}, "39.0", "37.2"},
		{"if all cells have it", []string{"39.0", "39.1"}, "39.0", "39.0"},
		{"if no cell has it", []string{"37.2", "38.0"}, "", "37.2"},
		{"if the only common version is not supported here", []string{"37.3", "40.0"}, "", "37.3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.on(opVM, answerVM)
			f.on(opRules, answerRules)
			f.setVersions(tt.versions...)
			s := session(t, f)

			features, err := s.Features(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			rules, err := s.Firewall.Rules(t.Context(), testGateway)

			g.Expect(features.SingleFirewallRule).To(Equal(tt.asks != ""))
			if tt.asks == "" {
				g.Expect(err).To(MatchError(ErrInvalid))
				g.Expect(f.count(opRules)).To(BeZero())
			} else {
				g.Expect(rules).To(ConsistOf(HaveField("Name", tt.asks)))
			}
			g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
			g.Expect(s.transport.Site.AgreedVersion()).To(Equal(tt.agreed), "all other calls keep the agreed version")
			g.Expect(f.count("GET /api/versions")).To(Equal(1))
		})
	}
}

func TestACallOfALaterVersionWithCellsOfTwoReleases(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opRules, answerRules)
	s := session(t, f) // the cell supports 38.1
	f.setCells([]string{"37.2", "37.3"}, []string{"37.2", "38.1"})

	for range 6 {
		g.Expect(s.Firewall.Rules(t.Context(), testGateway)).To(ConsistOf(HaveField("Name", "38.1")),
			"the other cell is called")
	}
	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("37.2"))

	f.setCells([]string{"37.2", "37.3"})
	_, err := s.Firewall.Rules(t.Context(), testGateway)
	g.Expect(err).To(MatchError(ErrUnavailable), "no cell has it any longer")
}

func TestAnUpgradeIsNoticedWithinAnHour(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.setVersions("37.2", "37.3")
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	g.Expect(s.Features(t.Context())).To(HaveField("SingleFirewallRule", false))

	f.setVersions("37.2", "38.1")
	g.Expect(s.Features(t.Context())).To(HaveField("SingleFirewallRule", false))
	clock.Advance(time.Hour + time.Second)
	g.Expect(s.Features(t.Context())).To(HaveField("SingleFirewallRule", true))
	g.Expect(f.count("GET /api/versions")).To(Equal(2))
}

func TestAListWithoutUserRulesIsNotFromVCD(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opRules, func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"systemRules":[]}`) })
	s := session(t, f)

	_, err := s.Firewall.Rules(t.Context(), testGateway)
	g.Expect(err).To(MatchError(ErrUnavailable), "an incomplete list is an error")

	f.on(opRules, func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"userDefinedRules":null}`) })
	g.Expect(s.Firewall.Rules(t.Context(), testGateway)).To(BeEmpty())
}

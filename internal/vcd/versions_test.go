// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Versions of two releases whose oldest version is not the same.
var (
	oldCell = []string{"36.3", "37.2", "37.3", "38.0", "38.1"}
	newCell = []string{"38.0", "38.1", "39.0"}
)

func TestCellsOfTwoReleasesAgreeOnWhatBothSpeak(t *testing.T) {
	for name, cells := range map[string][][]string{
		"where the old one is asked first": {oldCell, newCell},
		"where the new one is asked first": {newCell, oldCell},
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
			g.Expect(f.issued).To(Equal(1), "one login is let in")
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

func TestAnUpgradeThatEndsSessionsToo(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.setVersions(newCell...)
	f.expire()

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.issued).To(Equal(2), "one login more")
}

func TestCellsThatAgreeOnNothingAreUnavailable(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.on("GET /api/versions", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<SupportedVersions><VersionInfo><Version>37.2</Version></VersionInfo></SupportedVersions>`)
	})
	f.setVersions(newCell...)

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).To(MatchError(ErrUnavailable), "it is no fault of the request")
	g.Expect(f.count(opVM)).To(Equal(5), "it does not go on for ever")
	f.setVersions(oldCell...)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"),
		"a version that was refused is taken if there is no other")
}

func TestAVersionThatWasRefusedIsTakenAgainLater(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	f.setVersions(newCell...)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("38.0"))

	f.setVersions("37.2", "37.3") // the upgrade was taken back
	clock.Advance(10*time.Minute + time.Second)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))

	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("37.2"))
}

const opRules = "GET /cloudapi/2.0.0/edgeGateways/{id}/firewall/rules"

// answerRules answers with the version that was asked for as the name of a rule.
func answerRules(w http.ResponseWriter, r *http.Request) {
	_, version, _ := strings.Cut(r.Header.Get("Accept"), "version=")
	reply(w, `{"userDefinedRules":[{"id":"1","name":%q}]}`, version)
}

func TestACallAsksForTheVersionThatHasIt(t *testing.T) {
	tests := []struct {
		name     string
		versions []string
		asks     string // empty: it is not there
		agreed   string
	}{
		{"where older ones are offered, too", []string{"37.2", "37.3", "38.0", "38.1", "39.0"}, "38.1", "37.2"},
		{"where that one is not offered any more", []string{"37.2", "39.0", "39.1"}, "39.0", "37.2"},
		{"where all have it", []string{"39.0", "39.1"}, "39.0", "39.0"},
		{"where none has it", []string{"37.2", "38.0"}, "", "37.2"},
		{"where only one has it that is not known here", []string{"37.3", "40.0"}, "", "37.3"},
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
			g.Expect(s.transport.Site.AgreedVersion()).To(Equal(tt.agreed), "all else stays at the agreed version")
			g.Expect(f.count("GET /api/versions")).To(Equal(1))
		})
	}
}

func TestACallForALaterVersionAtCellsOfTwoReleases(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opRules, answerRules)
	s := session(t, f) // the cell knows 38.1
	f.setCells([]string{"37.2", "37.3"}, []string{"37.2", "38.1"})

	for range 6 {
		g.Expect(s.Firewall.Rules(t.Context(), testGateway)).To(ConsistOf(HaveField("Name", "38.1")),
			"the other cell is asked")
	}
	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("37.2"))

	f.setCells([]string{"37.2", "37.3"})
	_, err := s.Firewall.Rules(t.Context(), testGateway)
	g.Expect(err).To(MatchError(ErrUnavailable), "no cell has it by now")
}

func TestAnUpgradeIsSeenWithinAnHour(t *testing.T) {
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

func TestAListWithoutTheRulesOfUsersIsNoneOfVCD(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opRules, func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"systemRules":[]}`) })
	s := session(t, f)

	_, err := s.Firewall.Rules(t.Context(), testGateway)
	g.Expect(err).To(MatchError(ErrUnavailable), "what is not complete is no list")

	f.on(opRules, func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"userDefinedRules":null}`) })
	g.Expect(s.Firewall.Rules(t.Context(), testGateway)).To(BeEmpty())
}

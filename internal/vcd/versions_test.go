package vcd

import (
	"net/http"
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
				_, err := s.VM(t.Context(), testVM)
				g.Expect(err).NotTo(HaveOccurred())
			}

			g.Expect(s.site.agreedVersion()).To(Equal("38.0"))
			g.Expect(f.count(opLogin)).To(BeNumerically("<=", maxAgreements))
			g.Expect(f.count("GET /api/versions")).To(BeNumerically("<=", maxAgreements))
			g.Expect(f.issued).To(Equal(1), "one login is let in")
		})
	}
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

	_, err := s.PowerOn(t.Context(), testVM)

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

	_, err := s.VM(t.Context(), testVM)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.issued).To(Equal(2), "one login more")
}

func TestCellsThatAgreeOnNothingAreUnavailable(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.on("GET /api/versions", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, `<SupportedVersions><VersionInfo><Version>37.2</Version></VersionInfo></SupportedVersions>`)
	})
	f.setVersions(newCell...)

	_, err := s.VM(t.Context(), testVM)

	g.Expect(err).To(MatchError(ErrUnavailable), "it is no fault of the request")
	g.Expect(f.count(opVM)).To(Equal(1+maxAgreements), "it does not go on for ever")
	f.setVersions(oldCell...)
	g.Expect(s.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"), "a version that was refused is taken if there is no other")
}

func TestAVersionThatWasRefusedIsTakenAgainLater(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	f.setVersions(newCell...)
	g.Expect(s.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
	g.Expect(s.site.agreedVersion()).To(Equal("38.0"))

	f.setVersions("37.2", "37.3") // the upgrade was taken back
	clock.Advance(versionRefusal + time.Second)
	g.Expect(s.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))

	g.Expect(s.site.agreedVersion()).To(Equal("37.2"))
}

// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAssumptionsSurviveARoundTrip(t *testing.T) {
	g := NewWithT(t)
	a := vcdsim.DefaultAssumptions()
	a.VAppsArePrivate = false
	a.RecomposeExtraItem = 0.5
	a.MaxNetworkName = 0
	a.EdgeRuleCreateSince = "39.0"
	var file bytes.Buffer
	g.Expect(vcdsim.WriteAssumptions(&file, a)).To(Succeed())
	g.Expect(vcdsim.ReadAssumptions(&file)).To(Equal(a))
}

func TestOmittedAssumptionsKeepTheirDefaults(t *testing.T) {
	g := NewWithT(t)
	want := vcdsim.DefaultAssumptions()
	want.SharedVIPStays = true
	g.Expect(vcdsim.ReadAssumptions(strings.NewReader("assumptions:\n  SharedVIPStays: true\n"))).To(Equal(want))
	g.Expect(vcdsim.ReadAssumptions(strings.NewReader(""))).To(Equal(vcdsim.DefaultAssumptions()))
}

func TestInvalidAssumptionFilesAreRejected(t *testing.T) {
	for name, tt := range map[string]struct{ file, message string }{
		"an unknown assumption":       {"assumptions: {VAppsArePublic: true}", `unknown assumption "VAppsArePublic"`},
		"another spelling":            {"assumptions: {vappsareprivate: true}", `unknown assumption "vappsareprivate"`},
		"an unknown section":          {"assumption: {VAppsArePrivate: true}", `unknown field "assumption"`},
		"an unknown name of a reason": {"notProbed: {X: it is not}", `unknown assumption "X"`},
		"a value of another type":     {"assumptions: {VAppsArePrivate: 7}", "VAppsArePrivate"},
		"a version that is a number":  {"assumptions: {EdgeRuleTopSince: 38.1}", "EdgeRuleTopSince"},
		"a version in another format": {"assumptions: {EdgeRuleTopSince: latest}", "quote it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := vcdsim.ReadAssumptions(strings.NewReader(tt.file))
			g.Expect(err).To(MatchError(ContainSubstring(tt.message)))
		})
	}
}

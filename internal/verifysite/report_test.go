// SPDX-License-Identifier: Apache-2.0

package verifysite_test

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// allowed are the values in a report that are not sentences.
var allowed = map[string]*regexp.Regexp{
	"apiVersions": regexp.MustCompile(`^[0-9]{2}\.[0-9]$`),
	"release":     regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,2}){2,3}\.[0-9]{7,9}$`),
	"assumptions": regexp.MustCompile(`^(true|false|[0-9]{1,4}|[0-9]{2}\.[0-9])$`),
}

// expectClosed compares each leaf of a report with the allowed values.
func expectClosed(g *WithT, report []byte) {
	var doc struct {
		APIVersions []string          `json:"apiVersions"`
		Release     string            `json:"release"`
		Assumptions map[string]any    `json:"assumptions"`
		How         map[string]string `json:"how"`
		NotProbed   map[string]string `json:"notProbed"`
	}
	g.Expect(yaml.UnmarshalStrict(report, &doc)).To(Succeed())
	for _, v := range doc.APIVersions {
		g.Expect(v).To(MatchRegexp(allowed["apiVersions"].String()))
	}
	if doc.Release != "" {
		g.Expect(doc.Release).To(MatchRegexp(allowed["release"].String()))
	}
	rows := map[string]bool{}
	for _, row := range verifysite.Table() {
		rows[row.Name] = true
	}
	for name, value := range doc.Assumptions {
		g.Expect(rows).To(HaveKey(name))
		g.Expect(text(value)).To(MatchRegexp(allowed["assumptions"].String()))
	}
	for _, texts := range []map[string]string{doc.How, doc.NotProbed} {
		for name, sentence := range texts {
			g.Expect(rows).To(HaveKey(name))
			g.Expect(verifysite.Texts()).To(ContainElement(verifysite.Text(sentence)))
		}
	}
}

func FuzzAReportHasNothingOfTheSite(f *testing.F) {
	f.Add("SharedVIPStays", "true", "acme-vdc of https://vcd.example.com", "10.1.2.3", "39.0")
	f.Add("MaxNetworkName", "127", "urn:vcloud:vm:7a0e0d4c-1111-4222-8333-444455556666", "10.6.0.24056521", "10.6")
	f.Add("EdgeRuleTopSince", "39.0", "eyJhbGciOi.token", "10.6.0.24056521 at vcd.example.com", "")
	f.Fuzz(func(t *testing.T, name, value, words, release, version string) {
		g := NewWithT(t)
		result := verifysite.Result{APIVersions: []string{version, words}, Release: release}
		for _, row := range verifysite.Table() {
			result.Findings = append(result.Findings, verifysite.Finding{
				Assumption: row.Name,
				Site:       value,
				Reason:     verifysite.Text(words),
				How:        verifysite.Text(words),
				Detail:     words,
			})
		}
		result.Findings = append(result.Findings, verifysite.Finding{Assumption: name, Site: words})

		report, err := result.Report()

		g.Expect(err).NotTo(HaveOccurred())
		expectClosed(g, report)
		_, err = vcdsim.ReadAssumptions(bytes.NewReader(report))
		g.Expect(err).NotTo(HaveOccurred())
	})
}

// recognizable returns the tenant with names that are recognizable everywhere.
func recognizable() vcdsim.Model {
	m := vcdsim.K8sTenant()
	org := &m.Orgs[1]
	org.FullName = "zztelling"
	vdc := &org.VDCs[0]
	vdc.Name = "zztelling-vdc"
	vdc.EdgeGateways[0].Name = "zztelling-gateway"
	vdc.Networks = vdc.Networks[:1]
	vdc.Networks[0].Name = "zztelling-network"
	vdc.StorageProfiles[0].Name = "zztelling-storage"
	org.Catalogs[0].Name = "zztelling-catalog"
	org.Catalogs[0].Templates = org.Catalogs[0].Templates[:1]
	org.Catalogs[0].Templates[0].Name = "zztelling-template"
	return m
}

func TestAReportContainsNoSiteNamesAndTheSimulatorReadsIt(t *testing.T) {
	to := newTarget(t, recognizable(), "capvcd", instant)
	secrets := `zztelling https://vcd.example.com 203.0.113.77 urn:vcloud:vm:7a0e0d4c-1111-4222-8333-444455556666 eyJhbGci.x.y`
	o := options()
	// There is one object of each kind.
	o.VDC = ""
	o.Network = ""
	o.Template = ""
	o.EdgeGateway = ""
	v, err := verifysite.Prepare(t.Context(), to.session, o)
	to.Expect(err).NotTo(HaveOccurred())
	to.Expect(strings.Join(v.Plan(), "\n")).To(ContainSubstring("zztelling-template"), "users see the selected objects")
	for _, operation := range []string{
		"POST /cloudapi/1.0.0/loadBalancer/pools",
		"GET /api/query?type=orgVdcStorageProfile",
		"POST /cloudapi/1.0.0/applicationPortProfiles",
	} {
		to.sim.Faults().Add(vcdsim.Fault{
			Operation: operation,
			Status:    http.StatusInternalServerError,
			Message:   secrets,
		})
	}
	result, err := v.Run(t.Context())
	to.Expect(err).NotTo(HaveOccurred())
	to.Expect(result.Findings).To(ContainElement(HaveField("Detail", ContainSubstring("zztelling"))), "users see details")

	report, err := result.Report()

	to.Expect(err).NotTo(HaveOccurred())
	expectClosed(to.WithT, report)
	for _, secret := range strings.Fields(secrets) {
		to.Expect(string(report)).NotTo(ContainSubstring(secret))
	}
	to.Expect(string(report)).To(ContainSubstring("release: 10.6.0.24056521"))
	read, err := vcdsim.ReadAssumptions(bytes.NewReader(report))
	to.Expect(err).NotTo(HaveOccurred())
	to.Expect(read).To(Equal(vcdsim.DefaultAssumptions()), "the simulator matches")
	to.Expect(to.left()).To(BeEmpty())
}

func TestAReadOnlyRunWritesNothing(t *testing.T) {
	to := newTarget(t, withVMs(vcdsim.IPSpaces()), "capvcd")
	found := to.verify(t, verifysite.Options{ReadOnly: true})
	to.Expect(to.written()).To(BeEmpty())
	for _, row := range verifysite.Table() {
		f := found[row.Name]
		switch {
		case row.Without != "":
			to.Expect(f.Reason).To(Equal(row.Without))
		case row.Writes():
			to.Expect(string(f.Reason)).To(Equal("it creates objects, but the run is read-only"), row.Name)
		default:
			to.Expect(f.Site).To(Equal(row.Default), "%+v", f)
		}
	}
}

func TestARunStaysWithinItsLimits(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", instant) // in which every second write is repeated
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.Assumptions().MaxNetworkName = 120
		e.Assumptions().MaxNetworkDescription = 2000
	})
	for name, f := range to.verify(t, options()) {
		to.Expect(string(f.Reason)).NotTo(ContainSubstring("limit of objects of a run"), name)
	}
	to.Expect(to.left()).To(BeEmpty())
}

func TestAmbiguousObjectsAreNamed(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd")
	for name, tt := range map[string]struct {
		change  func(*verifysite.Options)
		message string
	}{
		"two networks":       {func(o *verifysite.Options) { o.Network = "" }, "--network: nodes, storage"},
		"two templates":      {func(o *verifysite.Options) { o.Template = "" }, "--template: kubernetes/"},
		"no catalog":         {func(o *verifysite.Options) { o.Template = "ubuntu" }, "catalog/template"},
		"another VDC":        {func(o *verifysite.Options) { o.VDC = "other" }, `VDC "other"`},
		"unknown assumption": {func(o *verifysite.Options) { o.Only = []string{"Other"} }, `unknown assumption "Other"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			tt.change(&o)
			_, err := verifysite.Prepare(t.Context(), to.session, o)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.message)))
		})
	}
}

func TestAUserWithFewRightsGetsReasons(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "ccm")
	found := to.verify(t, options())
	to.Expect(string(found["VMWaitsForVApp"].Reason)).To(Equal("VCD rejects a request because of missing rights"), "%+v",
		found["VMWaitsForVApp"])
	to.Expect(found["TenantProfilesNeedOrg"].Site).To(Equal("true"))
	to.Expect(to.left()).To(BeEmpty())
}

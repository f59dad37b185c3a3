// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestSelectingATemplateCostsOneQuery(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	s := to.session(t)
	query := vcd.TemplateQuery{
		Catalog: "kubernetes",
		Pattern: "ubuntu-????-kube-*",
		Name:    regexp.MustCompile(`^ubuntu-....-kube-.*$`),
	}
	to.sim.ResetCounters()

	found, err := s.Templates.SelectTemplate(t.Context(), query)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Templates.SelectTemplate(t.Context(), query)).To(Equal(found))

	byName, err := s.Templates.FindTemplate(t.Context(), "kubernetes", "ubuntu-2404-kube-v1.36.3")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(byName))
	total, counts := to.calls()
	g.Expect(total).To(Equal(4), "a query and the template, each way: %v", counts)
}

func TestTemplatesThatAreNotSelected(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	s := to.session(t)
	every := regexp.MustCompile(`.*`)
	for _, tt := range []struct {
		name  string
		query vcd.TemplateQuery
		err   error
		says  string
	}{
		{
			name:  "no template with that name",
			query: vcd.TemplateQuery{Catalog: "kubernetes", Pattern: "flatcar-*", Name: every},
			err:   vcd.ErrNotFound,
			says:  `a template that matches "name flatcar-*" in catalog kubernetes does not exist`,
		},
		{
			name:  "no template with that metadata",
			query: vcd.TemplateQuery{Catalog: "kubernetes", Name: every, Metadata: []vcd.TextMetadata{{Key: "role", Value: "node"}}},
			err:   vcd.ErrNotFound,
			says:  `"metadata role=node"`,
		},
		{
			name:  "no such catalog",
			query: vcd.TemplateQuery{Catalog: "none", Pattern: "ubuntu-*", Name: every},
			err:   vcd.ErrNotFound,
			says:  `catalog "none" in organization acme does not exist`,
		},
		{
			name:  "a value that a filter cannot contain",
			query: vcd.TemplateQuery{Catalog: "kubernetes", Name: every, Metadata: []vcd.TextMetadata{{Key: "role", Value: "a;b"}}},
			err:   vcd.ErrInvalid,
			says:  "cannot be looked up",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := s.Templates.SelectTemplate(t.Context(), tt.query)

			g.Expect(err).To(MatchError(tt.err))
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestAnIncompleteTemplateIsNotSelected(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.Model.Orgs[1].Catalogs[0].Templates[0].Status = int(vcdsim.FailedCreation)
	})

	_, err := to.session(t).Templates.SelectTemplate(t.Context(), vcd.TemplateQuery{
		Catalog: "kubernetes",
		Pattern: "ubuntu-*",
		Name:    regexp.MustCompile(`.*`),
	})

	g.Expect(err).To(MatchError(vcd.ErrNotFound))
}

// SPDX-License-Identifier: Apache-2.0

package fiql_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
)

var row = map[string]string{
	"name":    "node-1",
	"status":  "POWERED_ON",
	"cpus":    "4",
	"busy":    "false",
	"created": "2026-03-01T10:00:00.000Z",
	"vdc":     "https://vcd.example/api/vdc/0946827a-1a9e-4b9f-8ea3-732b3afe47c6",
	"odd":     "a(b)c",
	"date":    "2026-03-01",
}

func TestFilters(t *testing.T) {
	for _, tc := range []struct {
		name   string
		filter string
		want   bool
	}{
		{"the empty filter matches all", "", true},
		{"equality", "name==node-1", true},
		{"inequality", "name!=node-1", false},
		{"a missing attribute is empty", "nothing==x", false},
		{"and", "name==node-1;status==POWERED_ON", true},
		{"and with one false", "name==node-1;status==POWERED_OFF", false},
		{"or", "name==node-2,name==node-1", true},
		{"and binds tighter than or", "name==node-1,name==x;status==y", true},
		{"parentheses", "(name==node-1,name==x);status==y", false},
		{"nested parentheses", "((name==node-1;(cpus==4,cpus==5)))", true},
		{"a trailing separator is ignored", "name==node-1;", true},
		{"a trailing separator inside parentheses", "(name==node-1;)", true},
		{"a wildcard at the end", "name==node*", true},
		{"a wildcard at both ends", "name==*ode*", true},
		{"a wildcard in the middle", "name==n*1", true},
		{"a wildcard that does not fit", "name==x*", false},
		{"numbers compare as numbers", "cpus=gt=3;cpus=lt=10", true},
		{"at least and at most", "cpus=ge=4;cpus=le=4", true},
		{"dates compare as dates", "created=gt=2026-02-28T23:00:00.000+01:00", true},
		{"booleans in any case", "busy==FALSE", true},
		{"a reference by href", "vdc==https://other.example/api/vdc/0946827a-1a9e-4b9f-8ea3-732b3afe47c6", true},
		{"a reference by URN", "vdc==urn:vcloud:vdc:0946827a-1a9e-4b9f-8ea3-732b3afe47c6", true},
		{"a reference by id", "vdc==0946827a-1a9e-4b9f-8ea3-732b3afe47c6", true},
		{"another reference", "vdc!=0946827a-1a9e-4b9f-8ea3-732b3afe47c7", true},
		{"a value with parentheses", "(odd==a(b)c)", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			e, err := fiql.Parse(tc.filter)
			g.Expect(err).NotTo(HaveOccurred())
			matches := fiql.Compile(e, func(term fiql.Term) func(map[string]string) bool {
				return func(row map[string]string) bool { return fiql.Compare(term, row[term.Attr]) }
			})
			g.Expect(matches(row)).To(Equal(tc.want))
		})
	}
}

func TestBadFilters(t *testing.T) {
	for _, filter := range []string{
		"name", "name=x", "==x", "(name==x", "name==x)", "name==x;;name==y", "((((",
		"name=foo=x",
	} {
		t.Run(filter, func(t *testing.T) {
			_, err := fiql.Parse(filter)
			NewWithT(t).Expect(err).To(MatchError(fiql.ErrSyntax))
		})
	}
}

func TestTerms(t *testing.T) {
	g := NewWithT(t)
	e, err := fiql.Parse("(a==1,b!=2);c=gt=3")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Terms()).To(Equal([]fiql.Term{{Attr: "a", Op: "==", Value: "1"}, {Attr: "b", Op: "!=", Value: "2"}, {Attr: "c", Op: "=gt=", Value: "3"}}))
}

func FuzzParse(f *testing.F) {
	f.Add("a==1;(b==2,c!=3)")
	f.Fuzz(func(_ *testing.T, s string) {
		if e, err := fiql.Parse(s); err == nil {
			fiql.Compile(e, fiql.Term.Test)("x")
		}
	})
}

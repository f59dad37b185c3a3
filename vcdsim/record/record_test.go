// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

func TestShape(t *testing.T) {
	xml := func(body string) vcdsim.Exchange {
		return vcdsim.Exchange{Operation: "GET /api/org", Status: 200, URI: "/api/org", Response: []byte(body)}
	}
	json := func(body string) vcdsim.Exchange {
		return vcdsim.Exchange{
			Operation: "GET /cloudapi/x",
			Status:    200,
			URI:       "/cloudapi/x?page=1",
			Response:  []byte(body),
		}
	}
	for _, tc := range []struct {
		name string
		a, b vcdsim.Exchange
		same bool
	}{
		{"other values are the same shape", xml(`<a b="1"><c>x</c></a>`), xml(`<a b="2"><c>y</c></a>`), true},
		{"more of a kind are the same shape", xml(`<a><c/></a>`), xml(`<a><c/><c/></a>`), true},
		{"another order is another shape", xml(`<a><c/><d/></a>`), xml(`<a><d/><c/></a>`), false},
		{"another attribute is another shape", xml(`<a b="1"/>`), xml(`<a c="1"/>`), false},
		{"other texts are the same shape", json(`{"name":"a","n":1}`), json(`{"name":"b","n":2}`), true},
		{"another word is another shape", json(`{"status":"PENDING"}`), json(`{"status":"REALIZED"}`), false},
		{"another type is another shape", json(`{"n":1}`), json(`{"n":"1"}`), false},
		{"more items of a kind are the same shape", json(`[{"a":"x"}]`), json(`[{"a":"x"},{"a":"y"}]`), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			same := Equal(record.Shape(tc.b))
			if !tc.same {
				same = Not(same)
			}
			NewWithT(t).Expect(record.Shape(tc.a)).To(same)
		})
	}
}

func TestToKeepsOneExchangeOfEachShape(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	observe, err := record.To(dir)
	g.Expect(err).NotTo(HaveOccurred())
	for _, body := range []string{`{"name":"a"}`, `{"name":"b"}`, `{"id":"c"}`} {
		observe(vcdsim.Exchange{Operation: "GET /cloudapi/x", Status: 200, URI: "/cloudapi/x", Response: []byte(body)})
	}
	g.Expect(record.Read(dir)).To(HaveLen(2))

	observe, err = record.To("")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(observe).To(BeNil())
}

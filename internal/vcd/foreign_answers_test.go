// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestForeignResponsesAreNotEmptyLists(t *testing.T) {
	const page = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>We are back soon.</body></html>`
	tests := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{
			"a well-formed page of a load balancer",
			func(w http.ResponseWriter, _ *http.Request) { reply(w, page) },
		},
		{
			"an error document with status 200",
			func(w http.ResponseWriter, _ *http.Request) {
				reply(w, `<Error xmlns="http://www.vmware.com/vcloud/v1.5" majorErrorCode="500" message="out of order"/>`)
			},
		},
		{
			"a gateway in front of VCD without such a route",
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				reply(w, `{"message":"no Route matched with those values"}`)
			},
		},
		{"an empty 404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.on(opQueryVM, tt.answer)
			s := session(t, f)

			_, err := s.Inventory.QueryVM(t.Context(), testVM)
			g.Expect(err).To(MatchError(ErrUnavailable))
			_, err = s.Inventory.VMs(t.Context(), VDC{Ref: Ref{ID: testVDC}}, "c1", 0)
			g.Expect(err).To(MatchError(ErrUnavailable))
		})
	}
}

func TestForeignDocumentsAreNotVMs(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, func(w http.ResponseWriter, _ *http.Request) { reply(w, `<html><body/></html>`) })
	s := session(t, f)

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).To(MatchError(ErrUnavailable))
}

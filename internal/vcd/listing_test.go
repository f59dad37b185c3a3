// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const testGateway = "urn:vcloud:gateway:55555555-5555-4555-8555-555555555555"

func TestOperationsNameNoObjects(t *testing.T) {
	g := NewWithT(t)
	for path, want := range map[string]string{
		natPath(testGateway,
			"66666666-6666-4666-8666-666666666666"): "GET /cloudapi/1.0.0/edgeGateways/{id}/nat/rules/{id}",
		entitiesPath + url.PathEscape(
			"urn:vcloud:entity:vmware:capvcdCluster:66666666-6666-4666-8666-666666666666"): "GET /cloudapi/1.0.0/entities/{id}",
	} {
		u, err := url.Parse("https://vcd" + path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(transport.Operation(http.MethodGet, u)).To(Equal(want))
	}
}

// pages serves a list page by page, as specified by a test.
func pages(answers ...string) http.HandlerFunc {
	next := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		reply(w, "%s", answers[min(next, len(answers)-1)])
		next++
	}
}

// page returns a page of pools with a range of IDs.
func page(total, from, to int) string {
	out := fmt.Sprintf(`{"resultTotal":%d,"values":[`, total)
	for i := from; i <= to; i++ {
		if i > from {
			out += ","
		}
		out += fmt.Sprintf(`{"id":"%d"}`, i)
	}
	return out + "]}"
}

func TestListsAreCompleteOrAnError(t *testing.T) {
	tests := []struct {
		name    string
		answers []string
		items   int
		calls   int
		kind    error
	}{
		{"one page", []string{page(2, 1, 2)}, 2, 1, nil},
		{"no items", []string{page(0, 1, 0)}, 0, 1, nil},
		{"two pages", []string{page(3, 1, 2), page(3, 3, 3)}, 3, 2, nil},
		{"a duplicate item causes a retry", []string{page(4, 1, 2), page(4, 2, 3), page(3, 1, 3)}, 3, 3, nil},
		{"another total causes a retry", []string{page(3, 1, 2), page(4, 3, 3), page(3, 1, 3)}, 3, 3, nil},
		{"a missing page causes a retry", []string{page(3, 1, 2), page(3, 1, 0), page(2, 1, 2)}, 2, 3, nil},
		{"more items than the total", []string{page(1, 1, 2)}, 0, 2, ErrUnavailable},
		{"always the same page", []string{page(4, 1, 2)}, 0, 4, ErrUnavailable},
		{"no total", []string{`{"values":[{"id":"1"}]}`}, 0, 1, ErrUnavailable},
		{"not JSON", []string{`<html>`}, 0, 1, ErrUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			const op = "GET /cloudapi/1.0.0/edgeGateways/{id}/loadBalancer/poolSummaries"
			f.on(op, pages(tt.answers...))

			pools, err := session(t, f).Balancers.Pools(t.Context(), testGateway)

			g.Expect(f.count(op)).To(Equal(tt.calls))
			if tt.kind != nil {
				g.Expect(err).To(MatchError(tt.kind))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pools).To(HaveLen(tt.items))
		})
	}
}

func TestCursorsPageThroughAList(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	const op = "GET /cloudapi/1.0.0/edgeGateways/{id}/nat/rules"
	var cursors []string
	f.on(op, func(w http.ResponseWriter, r *http.Request) {
		cursors = append(cursors, r.URL.Query().Get("cursor"))
		if len(cursors) < 3 {
			w.Header().Add("Link", `<https://elsewhere/x>;rel="first"`)
			w.Header().Add("Link",
				fmt.Sprintf(`<https://elsewhere/cloudapi/x?cursor=a%%2B%d&pageSize=1>;rel="nextPage";type="application/json"`, len(cursors)))
		}
		reply(w, `{"values":[{"id":"%d","type":"DNAT"}]}`, len(cursors))
	})

	rules, err := session(t, f).NAT.Rules(t.Context(), testGateway)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules).To(HaveLen(3))
	g.Expect(cursors).To(Equal([]string{"", "a+1", "a+2"}), "only the cursor of a link is used")
	f.on(op, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Link", `<https://x/?cursor=1>;rel="nextPage"`)
		reply(w, `{"values":[{"id":"1"}]}`)
	})
	_, err = session(t, f).NAT.Rules(t.Context(), testGateway)
	g.Expect(err).To(MatchError(ErrUnavailable), "a circular list is invalid")
}

func TestAChangeKeepsOtherFields(t *testing.T) {
	g := NewWithT(t)
	var o wire.Object
	g.Expect(json.Unmarshal(
		[]byte(`{"id":"x","big":12345678901234567890.10,"text":"<&>","members":null,"description":"a"}`),
		&o)).To(Succeed())

	g.Expect(o.Set("description", "a")).To(BeFalse())
	g.Expect(o.Set("members", []string{})).To(BeFalse(), "a missing and an empty list are the same")
	g.Expect(o.Set("description", "b")).To(BeTrue())

	body, err := wire.EncodeJSON(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(
		Equal(`{"big":12345678901234567890.10,"description":"b","id":"x","members":null,"text":"<&>"}` + "\n"))
}

func TestATaskThatFinishedAtOnce(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on("POST /cloudapi/1.0.0/loadBalancer/pools", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		reply(w, `{"id":"urn:vcloud:loadBalancerPool:x"}`)
	})

	task, err := session(t, f).Balancers.CreatePool(t.Context(), ServerPool{Ref: Ref{Name: "p"}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(task).To(Equal(Task{State: TaskSucceeded, Owner: "urn:vcloud:loadBalancerPool:x"}))
}

func TestFeaturesByVersion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(featuresOf(transport.Version{Major: 36, Minor: 3})).To(Equal(Features{}))
	g.Expect(featuresOf(transport.Version{Major: 37, Minor: 0})).To(Equal(Features{SharedVIP: true, IPv6VIP: true}))
	g.Expect(featuresOf(transport.Version{Major: 37, Minor: 2})).To(HaveField("AllocateByValue", true))
}

// FuzzEdgeDecoders decodes arbitrary documents. A changed document is valid JSON, and a second change has no effect.
func FuzzEdgeDecoders(f *testing.F) {
	f.Add([]byte(`{"id":"x","edgeGatewayUplinks":[{"subnets":null},{"subnets":{"values":[{"gateway":"10.0.0.1","prefixLength":99}]}}]}`))
	f.Add([]byte(`{"members":[{"ipAddress":"10.0.0.1","port":1},null],"healthMonitors":[null,{"type":"TCP"}],"persistenceProfile":null,"memberGroupRef":{}}`))
	f.Add([]byte(`{"servicePorts":[{"portStart":1,"tcpUdpProfile":null}],"applicationProfile":null,"virtualIpAddress":"x","certificateRef":null}`))
	f.Add([]byte(`{"applicationPorts":[{"protocol":"TCP","destinationPorts":["80"]}],"ipAddresses":["10.0.0.1"],"ipSpaceRanges":{"ipRanges":[{}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, decode := range []func(){
			decoder(body, func(w *wireGateway) { w.gateway() }),
			decoder(body, func(w *wirePool) { w.pool() }),
			decoder(body, func(w *wireService) { w.service() }),
			decoder(body, func(w *wireNAT) { w.rule() }),
			decoder(body, func(w *wireProfile) { w.profile() }),
			decoder(body, func(w *wireIPSet) { w.set() }),
			decoder(body, func(w *wireSpace) { w.space() }),
			decoder(body, func(w *wireAllocation) { w.allocation() }),
		} {
			decode()
		}
		_, _ = entityFrom(transport.Answer{Body: body})
		AllocatedID(Task{Result: string(body)}, netip.Addr{})
		changeTwice(t, body)
	})
}

func decoder[T any](body []byte, use func(*T)) func() {
	return func() {
		var w T
		if json.Unmarshal(body, &w) == nil {
			use(&w)
		}
	}
}

func changeTwice(t *testing.T, body []byte) {
	t.Helper()
	address := netip.MustParseAddr("10.0.0.7")
	name := "n"
	yes := true
	port := 7
	for _, apply := range []func(wire.Object) (bool, error){
		PoolChange{
			Name:        &name,
			Members:     &[]PoolMember{{Address: address, Port: 7}},
			Monitors:    []string{"TCP"},
			NoMonitors:  []string{"PING"},
			Sticky:      &yes,
			DefaultPort: &port,
		}.apply,
		VirtualServiceChange{
			Pool:        &name,
			Certificate: &name,
			Address:     &address,
			Ports:       &[]ServicePort{{From: 7}},
			Transparent: &yes,
		}.apply,
		DNATChange{Port: &port, Profile: &name, External: &name}.apply,
		IPSetChange{Addresses: &[]netip.Addr{address}}.apply,
	} {
		var o wire.Object
		if json.Unmarshal(body, &o) != nil || o == nil {
			continue
		}
		if _, err := apply(o); err != nil {
			continue
		}
		if _, err := wire.EncodeJSON(o); err != nil {
			t.Fatalf("%q did not become JSON: %v", body, err)
		}
		if again, err := apply(o); again || err != nil {
			t.Fatalf("%q is changed twice: %v %v", body, o, err)
		}
	}
}

// used returns a page of used addresses from 10.0.0.from on, with the total number.
func used(total, from, n int) string {
	out := fmt.Sprintf(`{"resultTotal":%d,"values":[`, total)
	for i := range n {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"ipAddress":"10.0.0.%d","category":"DNAT"}`, from+i)
	}
	return out + "]}"
}

func TestPagedUsedAddressesAreReadUntilTwoReadsAgree(t *testing.T) {
	first := used(130, 1, 128)
	second := used(130, 129, 2)
	shifted := used(130, 127, 2)
	tests := []struct {
		name    string
		answers []string
		calls   int
		kind    error
	}{
		{name: "a single page has no order", answers: []string{used(128, 1, 128)}, calls: 1},
		{name: "the same order twice", answers: []string{first, second, first, second}, calls: 4},
		{name: "items moved between the pages", answers: []string{first, shifted, first, second, first, second}, calls: 6},
		{
			name:    "an order that always changes",
			answers: []string{first, second, first, shifted, first, second, first, shifted},
			calls:   8,
			kind:    ErrUnavailable,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			const op = "GET /cloudapi/1.0.0/edgeGateways/{id}/usedIpAddresses"
			f.on(op, pages(tt.answers...))

			found, err := session(t, f).Gateways.UsedAddresses(t.Context(), testGateway)

			g.Expect(f.count(op)).To(Equal(tt.calls))
			if tt.kind != nil {
				g.Expect(err).To(MatchError(tt.kind))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			distinct := map[netip.Addr]bool{}
			for _, u := range found {
				distinct[u.Address] = true
			}
			g.Expect(distinct).To(HaveLen(len(found)))
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const allocatedOp = "GET /cloudapi/1.0.0/orgVdcNetworks/{id}/allocatedIpAddresses"

var testNetwork = Ref{ID: "urn:vcloud:network:77777777-7777-4777-8777-777777777777", Name: "nodes"}

// addressesOf returns the addresses as a host sees them.
func addressesOf(hosts []HostAddress) []string {
	var found []string
	for _, host := range hosts {
		found = append(found, host.Address.String()+" "+host.Host)
	}
	return found
}

func TestASmallNetworkIsListedOnce(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(allocatedOp, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `{"resultTotal":2,"values":[{"ipAddress":"10.0.0.5","entityName":"a"},{"ipAddress":"10.0.0.6","entityName":"b"}]}`)
	})
	s := session(t, f)

	for _, address := range []string{"10.0.0.5", "10.0.0.6", "10.0.0.7"} {
		hosts, err := s.Networks.RecentHostsAt(t.Context(), testNetwork, []netip.Addr{netip.MustParseAddr(address)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(addressesOf(hosts)).To(Equal([]string{"10.0.0.5 a", "10.0.0.6 b"}))
	}
	g.Expect(f.count(allocatedOp)).To(Equal(1))
}

// TestALargeNetworkIsNotListed looks for addresses on a network of which a complete list can never be read, because it
// always changes.
func TestALargeNetworkIsNotListed(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	total := 10_000
	f.on(allocatedOp, func(w http.ResponseWriter, r *http.Request) {
		switch filter := r.URL.Query().Get("filter"); {
		case filter == "ipAddress==10.0.0.5":
			reply(w, `{"resultTotal":1,"values":[{"ipAddress":"10.0.0.5","entityName":"a"}]}`)
		case strings.HasPrefix(filter, "ipAddress=="):
			reply(w, `{"resultTotal":0,"values":[]}`)
		default:
			total++
			reply(w, `{"resultTotal":%d,"values":[{"ipAddress":"10.0.0.1","entityName":"first"}]}`, total)
		}
	})
	s := session(t, f)
	both := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.0.6")}

	for range 2 {
		hosts, err := s.Networks.RecentHostsAt(t.Context(), testNetwork, both)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(addressesOf(hosts)).To(Equal([]string{"10.0.0.5 a"}))
	}
	g.Expect(f.count(allocatedOp)).To(Equal(3), "the length of the list, and each address")
}

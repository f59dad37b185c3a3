// SPDX-License-Identifier: Apache-2.0

package virtualip_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hosts lists a host at each address that it is asked for, or fails.
type hosts struct {
	err error
}

func (h hosts) RecentHostsAt(_ context.Context, _ vcd.Ref, addresses []netip.Addr) ([]vcd.HostAddress, error) {
	var found []vcd.HostAddress
	for _, address := range addresses {
		found = append(found, vcd.HostAddress{UsedAddress: vcd.UsedAddress{Address: address}, Host: "web"})
	}
	return found, h.err
}

func TestAHostAtTheVirtualIPIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		err       error
		addresses []netip.Addr
		reason    string
		message   string
	}{
		{
			name:      "a host",
			addresses: []netip.Addr{netip.MustParseAddr("10.0.0.5")},
			reason:    infrav1.VIPInUseReason,
			message:   "virtual IP 10.0.0.5 is the address of web in network nodes",
		},
		{
			name: "no host",
		},
		{
			name:    "no response",
			err:     fmt.Errorf("listing: %w", vcd.ErrUnavailable),
			reason:  infrav1.SiteUnreachableReason,
			message: "listing",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			network := vcd.Network{Ref: vcd.Ref{Name: "nodes"}}

			out, err := virtualip.TakenByHost(t.Context(), hosts{tt.err}, &infrav1.VCDCluster{}, network, tt.addresses)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Reason).To(Equal(tt.reason))
			g.Expect(out.Message).To(ContainSubstring(tt.message))
		})
	}
}

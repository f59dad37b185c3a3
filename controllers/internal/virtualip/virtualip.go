// SPDX-License-Identifier: Apache-2.0

// Package virtualip checks whether addresses can be the virtual IPs of a cluster, with regard to its network, other
// clusters and the hosts in VCD. VCD does not manage virtual IPs: kube-vip announces them.
package virtualip

import (
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// Shares reports whether another cluster uses a network, given by its URN, at the site of c.
func Shares(c, other *infrav1.VCDCluster, network string) bool {
	id := other.Spec.RecordedState.OVDCNetworkID
	if id == "" && other.Status.OVDCNetwork != nil {
		id = other.Status.OVDCNetwork.ID
	}
	return id == network && sites.Same(other.Spec.Site, c.Spec.Site)
}

// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"cmp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Gateways are the edge gateways that may have load balancers of a cluster.
type Gateways struct {
	Name string // for messages; empty: the cluster cannot have load balancers
	IDs  []string
	Lost error // why further gateways are unknown

	Session   *session.Session // for requests to VCD
	VDC       vcd.VDC          // VDC of the cluster
	Connected string           // gateway to which the network of the cluster is connected, according to VCD
}

// On returns the gateways of references. Its name contains their names, or URNs where names are unknown.
func On(refs []vcd.Ref) Gateways {
	var ids, names []string
	for _, g := range refs {
		ids = append(ids, g.ID)
		names = append(names, cmp.Or(g.Name, g.ID))
	}
	return Gateways{Name: "edge gateway " + strings.Join(names, ", "), IDs: ids}
}

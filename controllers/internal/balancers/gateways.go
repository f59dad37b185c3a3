// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"cmp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Gateways are the edge gateways that load balancers of a cluster may be on.
type Gateways struct {
	Name string // in messages; empty: the cluster cannot have load balancers
	IDs  []string
	Lost error // why further ones are not known

	Session   *session.Session // to ask VCD with
	VDC       vcd.VDC          // of the cluster
	Connected string           // the one that the network of the cluster is shown to be on
}

// On returns the gateways of some references, by their names as far as these are known.
func On(refs []vcd.Ref) Gateways {
	var ids, names []string
	for _, g := range refs {
		ids = append(ids, g.ID)
		names = append(names, cmp.Or(g.Name, g.ID))
	}
	return Gateways{Name: "edge gateway " + strings.Join(names, ", "), IDs: ids}
}

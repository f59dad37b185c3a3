// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// desired returns what a Service asks for as a load balancer on an edge gateway: VCD's part of the wish, the addresses
// of the nodes, and the ports with what VCD does on each.
func desired(d service.Desired) lb.Desired {
	out, _ := d.Extra.(lb.Desired)
	out.Desired = d.Desired
	for _, m := range d.Members {
		out.Members = append(out.Members, m.Addresses...)
	}
	listeners := make([]lb.Listener, len(d.Ports))
	copy(listeners, out.Listeners)
	for i, p := range d.Ports {
		listeners[i].Name = p.Name
		listeners[i].Protocol = p.Protocol
		listeners[i].Port = p.Number
		listeners[i].NodePort = p.NodePort
	}
	out.Listeners = listeners
	return out
}

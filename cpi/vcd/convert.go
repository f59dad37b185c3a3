// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// desired converts the request of a Service to a load balancer on an edge gateway. It combines the VCD-specific part,
// the addresses of the nodes, and the ports with their VCD settings.
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

// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A planner computes one plan, as a pure function of the observed and the desired state.
type planner struct {
	state *state // observed state
	view  *view  // the part of it that concerns the owner
	want  service.Desired
	extra extra
	// moved is the load balancer at its new location, without ports if that has another ACL list.
	moved cpi.Moved
	// closed are the IDs of firewall rules that a step deletes.
	closed map[string]bool
	// opened are the firewall rules that steps create. One step tags all of them.
	opened []cloudstack.Firewall
	out    loadbalancer.Plan
}

func newPlanner(s *state, want service.Desired) *planner {
	p := &planner{
		state: s,
		view:  newView(s, want),
		want:  want,
	}
	p.extra, _ = want.Extra.(extra)
	return p
}

func (p *planner) refuse(reason, format string, args ...any) {
	p.out.Refusals = append(p.out.Refusals, loadbalancer.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *planner) notice(reason, format string, args ...any) {
	p.out.Notices = append(p.out.Notices, loadbalancer.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *planner) do(s step, format string, args ...any) {
	s.owner = p.want.Owner
	s.text = fmt.Sprintf(format, args...)
	p.out.Steps = append(p.out.Steps, s)
}

// endpointText describes a port in messages for users.
func endpointText(target string, port int, protocol string) string {
	return target + ":" + strconv.Itoa(port) + "/" + protocol
}

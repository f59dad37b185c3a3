package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A place is where the load balancers of a cluster are.
type place struct {
	name     string // as messages say it
	gateways []string
	lost     error // why the gateways are not known
}

// nowhere is the place of a cluster that cannot have load balancers.
var nowhere place

func onGateways(gateways []vcd.Ref) place {
	var ids, names []string
	for _, g := range gateways {
		ids, names = append(ids, g.ID), append(names, cmp.Or(g.Name, g.ID))
	}
	return place{name: "edge gateway " + strings.Join(names, ", "), gateways: ids}
}

// rememberGateway notes the edge gateway of the cluster's network: what is on it is to be found, too, when the network is gone. Where the network
// was before stays noted.
func (s *scope) rememberGateway() {
	c, gateway := s.vcdCluster, s.network.EdgeGateway
	known := knownGateways(c)
	if gateway.ID == "" || slices.Contains(known, gateway.ID) {
		return
	}
	if len(known) > 0 {
		gatewayChanged(s.Recorder, c, gateway)
	}
	notes.Set(c, infrav1.EdgeGatewaysAnnotation, strings.Join(append(known, gateway.ID), ","))
}

// knownGateways are the URNs of the edge gateways that the network of a cluster was on.
func knownGateways(c *infrav1.VCDCluster) []string {
	return notes.URNs(c.Annotations[infrav1.EdgeGatewaysAnnotation])
}

// furtherGateways are the URNs of those that its load balancers may be on besides.
func furtherGateways(c *infrav1.VCDCluster) []string {
	return notes.URNs(c.Annotations[infrav1.LoadBalancerGatewaysAnnotation])
}

// notedGateways are all of them, each once.
func notedGateways(c *infrav1.VCDCluster) []vcd.Ref {
	var gateways []vcd.Ref
	for _, id := range slices.Concat(knownGateways(c), furtherGateways(c)) {
		if ref := (vcd.Ref{ID: id}); !slices.Contains(gateways, ref) {
			gateways = append(gateways, ref)
		}
	}
	return gateways
}

// place finds out where the load balancers of the cluster are: where its network is, where it was, and where they were told to be besides. A network
// that is not found proves nothing: it is gone, or is not shown.
func (s *scope) place(ctx context.Context) (place, phases.Outcome, error) {
	c := s.vcdCluster
	gateways := notedGateways(c)
	gateway, found, out, err := s.gateway(ctx)
	i := slices.IndexFunc(gateways, func(g vcd.Ref) bool { return g.ID == gateway.ID })
	switch {
	case err != nil || out != phases.Done:
		return nowhere, out, err
	case i >= 0:
		gateways[i] = gateway
	case gateway.ID != "":
		gateways = append(gateways, gateway)
	case len(knownGateways(c)) == 0 && !found && c.Status.OVDCNetwork != nil:
		return lostGateway(c.Status.OVDCNetwork.Name, gateways), phases.Done, nil
	case len(gateways) == 0:
		return nowhere, phases.Done, nil // What is not routed, or was never found, has nothing on it.
	}
	return onGateways(gateways), phases.Done, nil
}

// lostGateway is the place of a cluster whose network cannot be asked for its edge gateway, and may be on others, too.
func lostGateway(network string, others []vcd.Ref) place {
	name, at := "the edge gateway of network "+network, onGateways(others)
	if len(others) > 0 {
		name += " and " + at.name
	}
	return place{
		name: name, gateways: at.gateways,
		lost: fmt.Errorf("%w: network %s, which says which edge gateway that is, is deleted or is not shown", lb.ErrRefused, network),
	}
}

// gateway returns the edge gateway of the cluster's network, if that is found; none if the network is not routed. A cluster that moved here and is
// deleted at once has no status.
func (s *scope) gateway(ctx context.Context) (gateway vcd.Ref, found bool, out phases.Outcome, err error) {
	c, name := s.vcdCluster, s.vcdCluster.Spec.OVDCNetwork
	known := c.Status.OVDC != nil && c.Status.OVDCNetwork != nil
	if known {
		name = c.Status.OVDCNetwork.ID
	}
	vdc, out, err := session.VDCOf(ctx, s.session, c)
	if err != nil || out != phases.Done {
		if !known && out.Reason == infrav1.VDCNotFoundReason {
			out = phases.Done
		}
		return vcd.Ref{}, false, out, err
	}
	network, err := s.session.FindNetwork(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound), name == "":
		return vcd.Ref{}, false, phases.Done, nil
	case err != nil:
		out, err := session.Refusal(err, "Reading network "+name)
		return vcd.Ref{}, false, out, err
	}
	return network.EdgeGateway, true, phases.Done, nil
}

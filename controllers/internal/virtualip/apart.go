// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A seat is where control planes are, or may be.
type seat struct {
	who      string
	networks []vcd.Ref // of the NICs, by what is known of them
}

// Apart reports control planes of a cluster, and of the Cluster with a name, in networks between which ARP moves no
// address. With BGP they may be in any.
func Apart(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, name string, network vcd.Ref) (
	phases.Result, error,
) {
	if checks.KubeVIP(c).BGP != nil {
		return phases.Done, nil
	}
	seats, err := zoneSeats(ctx, reader, c)
	if err != nil {
		return phases.Done, err
	}
	machines, err := machineSeats(ctx, reader, c.Namespace, name)
	if err != nil {
		return phases.Done, err
	}
	for _, s := range append(seats, machines...) {
		if network == (vcd.Ref{}) {
			network = s.networks[0]
		}
		if !slices.ContainsFunc(s.networks, func(n vcd.Ref) bool { return sameNetwork(n, network) }) {
			return phases.Fail(session.RemedyPoll, infrav1.ControlPlaneNetworkMismatchReason,
				"%s is in network %s, not in %s, and ARP can move a virtual IP only within one network: set "+
					"spec.controlPlaneLoadBalancer.kubeVIP.bgp, use an endpoint of type EdgeGateway or External, or "+
					"move all control planes to one network", s.who, nameOf(s.networks[0]), nameOf(network)), nil
		}
	}
	return phases.Done, nil
}

// zoneSeats returns the zones that control planes of the cluster may be in and that have networks of their own.
func zoneSeats(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster) ([]seat, error) {
	if c.Spec.FailureDomainSelector == nil {
		return nil, nil
	}
	list := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	zones, err := placement.Select(c, list.Items)
	if err != nil {
		return nil, nil //nolint:nilerr // zones are selected elsewhere, which reports it
	}
	var seats []seat
	for _, z := range zones {
		s := seat{who: "VCDDeploymentZone " + z.Name}
		for i, name := range z.Spec.PlacementConstraint.Networks {
			network := vcd.Ref{Name: name}
			if i < len(z.Status.Networks) {
				network = vcd.Ref{ID: z.Status.Networks[i].ID, Name: z.Status.Networks[i].Name}
			}
			s.networks = append(s.networks, network)
		}
		if ptr.Deref(z.Spec.ControlPlane, true) && len(s.networks) > 0 {
			seats = append(seats, s)
		}
	}
	return seats, nil
}

// machineSeats returns the control planes of the Cluster with a name that have networks of their own.
func machineSeats(ctx context.Context, reader client.Reader, namespace, name string) ([]seat, error) {
	machines := &infrav1.VCDMachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(namespace), session.OfCluster(name),
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var seats []seat
	for i := range machines.Items {
		m := &machines.Items[i]
		s := seat{who: "Control plane " + m.Name}
		for _, nic := range m.Spec.Networks {
			s.networks = append(s.networks, vcd.Ref{Name: nic.Name})
		}
		if len(s.networks) > 0 && !slices.Contains(s.networks, vcd.Ref{}) {
			seats = append(seats, s)
		}
	}
	return seats, nil
}

// sameNetwork reports whether two networks are one, by their URNs if both are known. A name may be a URN.
func sameNetwork(a, b vcd.Ref) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Name == b.Name || a.ID != "" && a.ID == b.Name || b.ID != "" && b.ID == a.Name
}

func nameOf(network vcd.Ref) string { return cmp.Or(network.Name, network.ID) }

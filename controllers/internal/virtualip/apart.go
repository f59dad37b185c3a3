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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// An attachment lists the networks that a control plane, or all control planes in a zone, are attached to.
type attachment struct {
	owner    string
	networks []vcd.Ref // of the NICs, with the known names and URNs
}

// Apart reports control planes of a cluster in networks between which ARP cannot move an address. With BGP, control
// planes may be in any network. The name is that of the Cluster.
func Apart(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, name string, network vcd.Ref) (
	phases.Result, error,
) {
	if checks.KubeVIP(c).BGP != nil {
		return phases.Done, nil
	}
	attachments, err := zoneAttachments(ctx, reader, c)
	if err != nil {
		return phases.Done, err
	}
	machines, err := machineAttachments(ctx, reader, c.Namespace, name)
	if err != nil {
		return phases.Done, err
	}
	for _, s := range append(attachments, machines...) {
		if network == (vcd.Ref{}) {
			network = s.networks[0]
		}
		if !slices.ContainsFunc(s.networks, func(n vcd.Ref) bool { return sameNetwork(n, network) }) {
			return phases.Fail(intervals.Remedy, infrav1.ControlPlaneNetworkMismatchReason,
				"%s is in network %s, not in %s, and ARP can move a virtual IP only within one network: set spec.controlPlaneLoadBalancer.kubeVIP.bgp, use an endpoint of type EdgeGateway or External, or move all control planes to one network", s.owner, nameOf(s.networks[0]), nameOf(network)), nil
		}
	}
	return phases.Done, nil
}

// zoneAttachments returns the zones that may contain control planes of the cluster and that set networks.
func zoneAttachments(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster) ([]attachment, error) {
	if c.Spec.FailureDomainSelector == nil {
		return nil, nil
	}
	list := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	zones, err := placement.Select(c, list.Items)
	if err != nil {
		return nil, nil //nolint:nilerr // the selection of zones reports it
	}
	var attachments []attachment
	for _, z := range zones {
		s := attachment{owner: "VCDDeploymentZone " + z.Name}
		for i, name := range z.Spec.PlacementConstraint.Networks {
			network := vcd.Ref{Name: name}
			if i < len(z.Status.Networks) {
				network = vcd.Ref{ID: z.Status.Networks[i].ID, Name: z.Status.Networks[i].Name}
			}
			s.networks = append(s.networks, network)
		}
		if ptr.Deref(z.Spec.ControlPlane, true) && len(s.networks) > 0 {
			attachments = append(attachments, s)
		}
	}
	return attachments, nil
}

// machineAttachments returns the control planes of the named Cluster that set networks.
func machineAttachments(ctx context.Context, reader client.Reader, namespace, name string) ([]attachment, error) {
	machines := &infrav1.VCDMachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(namespace), index.OfCluster(name),
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var attachments []attachment
	for i := range machines.Items {
		m := &machines.Items[i]
		s := attachment{owner: "Control plane " + m.Name}
		for _, nic := range m.Spec.Networks {
			s.networks = append(s.networks, vcd.Ref{Name: nic.Name})
		}
		if len(s.networks) > 0 && !slices.Contains(s.networks, vcd.Ref{}) {
			attachments = append(attachments, s)
		}
	}
	return attachments, nil
}

// sameNetwork reports whether two networks are the same, by URN if both are known. A name may be a URN.
func sameNetwork(a, b vcd.Ref) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Name == b.Name || a.ID != "" && a.ID == b.Name || b.ID != "" && b.ID == a.Name
}

func nameOf(network vcd.Ref) string { return cmp.Or(network.Name, network.ID) }

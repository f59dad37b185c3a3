// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcilePlacement resolves the location and the parts of the VM. It does not look up parts that are no longer
// needed, so that a template that was deleted since does not affect a running machine.
func reconcilePlacement(ctx context.Context, s *scope) (phases.Result, error) {
	if out := clusterProblem(s.inputs.vcdCluster); out != phases.Done {
		return out, nil
	}
	if out, err := rivalProblem(ctx, s.reconciler.Client, &s.inputs); err != nil || out != phases.Done {
		return out, err
	}
	a := newAccess(s)
	out, err := phases.Sequence(ctx, a.findZone, a.logIn)
	s.zone = a.zone
	s.session = a.opened
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case s.inputs.hasRun():
		out, err = a.findVDC(ctx)
		s.target.vdc = a.vdc
		return out, err
	}
	return newPlacer(s).find(ctx)
}

// clusterProblem returns why a machine of a VCDCluster cannot be placed yet.
func clusterProblem(c *infrav1.VCDCluster) phases.Result {
	switch {
	case c == nil:
		return phases.Wait(0, infrav1.WaitingForClusterReason,
			"Waiting for the VCDCluster in spec.infrastructureRef of the Cluster").NoAccess()
	case c.Spec.InfraID == "" && capicluster.ExternallyManaged(c):
		return phases.Stop(infrav1.WaitingForClusterReason,
			"VCDCluster %s is externally managed (%s) and has no ID: set spec.infraID, which marks the cluster's VMs", c.Name, clusterv1.ManagedByAnnotation).NoAccess()
	case c.Spec.InfraID == "":
		return phases.Wait(0, infrav1.WaitingForClusterReason, "Waiting for spec.infraID of the VCDCluster").NoAccess()
	}
	return phases.Done
}

// A placer finds the objects that the VM is created from, and its location.
type placer struct {
	session  *session.Session
	inputs   *inputs
	zone     *placement.Zone // nil: the machine has no zone
	state    *state          // remembers that versions were compared
	patcher  *phases.Patcher // of the VCDMachine
	recorder events.EventRecorder

	desired placement.Placement // from the zone or the cluster; set by choose
	target  *target             // stores the results
}

func newPlacer(s *scope) *placer {
	return &placer{
		session:  s.session,
		inputs:   &s.inputs,
		zone:     s.zone,
		state:    s.state,
		patcher:  s.records.patcher,
		recorder: s.reconciler.Recorder,
		target:   &s.target,
	}
}

// find resolves the VDC, networks, template and policies for a new VM. For a VM that exists, it resolves only the data
// that the guest and its disks still need.
func (p *placer) find(ctx context.Context) (phases.Result, error) {
	if p.inputs.vmID() != "" {
		return phases.Sequence(ctx, p.choose, p.findVDC, p.name, p.findDisks, p.findNameservers)
	}
	return phases.Sequence(ctx, p.choose, p.findVDC, p.name, p.findNetworks, p.checkMarker, p.findParts, p.findNameservers)
}

// choose determines the placement of the machine from its zone or its cluster.
func (p *placer) choose(context.Context) (phases.Result, error) {
	if p.zone != nil && !p.inputs.mayHaveVM() {
		if out := zones.Admits(p.inputs.vcdCluster, p.zone.VCDDeploymentZone); out != phases.Done {
			return out, nil
		}
	}
	desired, err := placement.Of(p.inputs.vcdCluster, p.zone, p.inputs.vcdMachine)
	if err != nil {
		return phases.Fail(intervals.Remedy, infrav1.PlacementInvalidReason, "%s",
			strings.ReplaceAll(err.Error(), "\n", "; ")), nil
	}
	if id := p.inputs.vcdMachine.Spec.RecordedState.OVDCID; id != "" {
		desired.VDC.Name = id // The ID survives a rename in VCD.
	}
	p.desired = desired
	p.target.nics = desired.NICs
	p.target.dual = nics.DualStack(p.inputs.cluster)
	return phases.Done, nil
}

// findVDC looks up the VDC of the VM. A new VM must be created in the VDC of the cluster's other VMs in its zone.
func (p *placer) findVDC(ctx context.Context) (out phases.Result, err error) {
	p.target.vdc, out, err = zones.VDC(ctx, p.session, p.desired.VDC)
	if err == nil && out == phases.Done && p.zone != nil && !p.inputs.mayHaveVM() {
		out = zones.Replaced(p.inputs.vcdCluster, p.zone.Name, p.target.vdc.ID)
	}
	return out, err
}

// checkMarker checks that the machine's marker can be parsed again.
func (p *placer) checkMarker(context.Context) (phases.Result, error) {
	marker := p.inputs.marker()
	if marker.IsOf(marker.String()) {
		return phases.Done, nil
	}
	return phases.Stop(infrav1.InfraIDInvalidReason, "%q is not a valid ownership marker: recreate the cluster with a spec.infraID of the VCDCluster that has no spaces", marker), nil
}

// findNetworks looks up the network of each NIC.
func (p *placer) findNetworks(ctx context.Context) (phases.Result, error) {
	for _, nic := range p.target.nics {
		network, err := p.session.FindNetwork(ctx, p.target.vdc, nic.Network.Name)
		if err != nil {
			return problems.OfField(err, checks.Network, nic.Network.Field)
		}
		p.target.networks = append(p.target.networks, network)
	}
	return phases.Done, nil
}

// findParts looks up and checks the objects that a new VM is created from.
func (p *placer) findParts(ctx context.Context) (phases.Result, error) {
	out, err := phases.Sequence(ctx, p.findTemplate, p.checkDisk, p.findPolicies, p.findStorage, p.checkCompute, p.checkHardware,
		p.checkExtraConfig, p.findDisks, p.checkIOPS)
	if err != nil || out != phases.Done {
		return p.withRollout(out), err
	}
	p.compareVersions()
	return phases.Done, nil
}

// withRollout adds to a problem of the first control plane machine how to replace it. The owner of the control plane
// replaces it only once it is a Node.
func (p *placer) withRollout(out phases.Result) phases.Result {
	_, controlPlane := p.inputs.vcdMachine.Labels[clusterv1.MachineControlPlaneLabel]
	if out.IsProblem() && controlPlane && !capicluster.Initialized(p.inputs.cluster) {
		out.Message += fmt.Sprintf(". A new VCDMachineTemplate alone does not replace the first control plane: set it in the KubeadmControlPlane, and delete Machine %s", p.inputs.machine.Name)
	}
	return out
}

// compareVersions emits a warning if the image has another version of Kubernetes than the Machine requests.
func (p *placer) compareVersions() {
	if p.state.versionsCompared || p.inputs.mayHaveVM() {
		return
	}
	p.state.versionsCompared = true
	if found := checks.Kubernetes(p.target.template, p.inputs.machine.Spec.Version); found != nil {
		versionMismatch(p.recorder, p.inputs.vcdMachine, found)
	}
}

// findNameservers warns, until the guest is up, that the guest would have no DNS servers.
func (p *placer) findNameservers(ctx context.Context) (phases.Result, error) {
	var names []string
	for _, nic := range p.desired.NICs {
		network, err := p.session.FindNetwork(ctx, p.target.vdc, nic.Network.Name)
		if err != nil {
			return phases.Done, nil //nolint:nilerr // a warning is not worth a problem
		}
		if len(nic.Nameservers) > 0 || nic.AddressSource == infrav1.AddressDHCP ||
			slices.ContainsFunc(network.Subnets, func(subnet vcd.Subnet) bool { return len(subnet.DNS) > 0 }) {
			return phases.Done, nil
		}
		names = append(names, network.Name)
	}
	return phases.Warn(infrav1.NoNameserversReason, "The guest has no DNS servers: set the DNS servers of network %s in VCD, or nameservers in spec.networks of the VCDMachineTemplate", strings.Join(names, ", ")), nil
}

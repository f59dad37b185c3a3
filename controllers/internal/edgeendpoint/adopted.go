// SPDX-License-Identifier: Apache-2.0

package edgeendpoint

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// adoptedMember returns the address of a machine that CAPVCD added to the endpoint, before the machine has recorded it;
// empty if the machine is not such a member. The pool is not written before the address is known.
func adoptedMember(ctx context.Context, r Request, m *infrav1.VCDMachine) (string, phases.Result, error) {
	is, err := isUnrecordedMember(ctx, r.Client, r.Cluster, m)
	if err != nil || !is {
		return "", phases.Done, err
	}
	if address := reportedAddress(r.Cluster, m); address != "" {
		return address, phases.Done, nil
	}
	return "", phases.Wait(intervals.Task, infrav1.EndpointPendingReason,
		"Waiting for the address of control plane %s, which CAPVCD added to the endpoint", m.Name), nil
}

// isUnrecordedMember reports whether a machine is a control plane that CAPVCD added to the endpoint, and whose address
// is not recorded yet.
func isUnrecordedMember(ctx context.Context, c client.Client, of *infrav1.VCDCluster, m *infrav1.VCDMachine) (bool, error) {
	if !ownership.ByCAPVCD(of) || m.Spec.ProviderID == "" || m.Spec.RecordedState.EndpointMember != "" ||
		m.Spec.RecordedState.CreationRequestedAt != nil {
		return false, nil
	}
	owner, err := util.GetOwnerMachine(ctx, c, m.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting the Machine of VCDMachine %s: %w", m.Name, err)
	}
	return owner != nil && util.IsControlPlaneMachine(owner), nil
}

// reportedAddress returns the address with which CAPVCD added a control plane, according to the status; empty if it has
// no address of the endpoint's family.
func reportedAddress(c *infrav1.VCDCluster, m *infrav1.VCDMachine) string {
	var internal []string
	for _, a := range m.Status.Addresses {
		if a.Type == clusterv1.MachineInternalIP {
			internal = append(internal, a.Address)
		}
	}
	return OfFamily(internal, MemberFamily(c))
}

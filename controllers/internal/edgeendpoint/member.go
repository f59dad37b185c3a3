// SPDX-License-Identifier: Apache-2.0

package edgeendpoint

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// Of reports whether the endpoint of a cluster is on an edge gateway, and returns its URN, if recorded.
func Of(c *infrav1.VCDCluster) (gateway string, on bool) {
	if c == nil || c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointEdgeGateway {
		return "", false
	}
	return placement.EndpointGateway(c), true
}

// KeepsMember reports whether a running control plane stays a member with its recorded address. It does if the address
// has the family of the endpoint, or if no address that was read from its VM has. Earlier versions recorded addresses
// of any family.
func KeepsMember(c *infrav1.VCDCluster, m *infrav1.VCDMachine) bool {
	family := MemberFamily(c)
	if OfFamily([]string{m.Spec.RecordedState.EndpointMember}, family) != "" {
		return true
	}
	var read []string
	for _, a := range ofPrimary(m.Status) {
		read = append(read, a.Address)
	}
	return OfFamily(read, family) == ""
}

// OfFamily returns the first address of a family, or the first address if family is empty. Invalid addresses are
// skipped.
func OfFamily(addresses []string, family loadbalancer.Family) string {
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err == nil && (family == "" || loadbalancer.FamilyOf(address) == family) {
			return text
		}
	}
	return ""
}

// ofPrimary returns the addresses of a machine's primary NIC, which a status lists first.
func ofPrimary(s infrav1.VCDMachineStatus) []clusterv1.MachineAddress {
	if len(s.NICs) < 2 {
		return s.Addresses
	}
	further := func(a clusterv1.MachineAddress) bool {
		return slices.ContainsFunc(s.NICs[1:], func(nic infrav1.NICStatus) bool { return nic.Address == a.Address })
	}
	if i := slices.IndexFunc(s.Addresses, further); i >= 0 {
		return s.Addresses[:i]
	}
	return s.Addresses
}

// Join makes the machine of a request a member with an address. It stores the address first, so that neither another
// machine nor the cluster removes the member again. A running machine does not wait, because its cluster keeps it a
// member.
func (e *Endpoints) Join(ctx context.Context, r Request, address string, runs bool,
	store func(context.Context) error,
) (phases.Result, error) {
	m := r.Machine
	joins := m.Spec.RecordedState.EndpointMember != address
	if joins {
		m.Spec.RecordedState.EndpointMember = address
		if err := store(ctx); err != nil {
			return phases.Done, err
		}
	}
	if runs && !joins {
		return phases.Done, nil
	}
	if r.Gateway == "" {
		return unrecorded(), nil
	}
	plan, out, err := e.Ensure(ctx, r, true)
	if err == nil && (runs && !out.IsProblem() || e.stands(plan, r.Cluster)) {
		return phases.Done, nil
	}
	return out, err
}

// stands reports whether the endpoint serves its members even if it is not as desired: its objects exist, its pools
// have the desired members, and no steps are running.
func (e *Endpoints) stands(plan loadbalancer.Plan, c *infrav1.VCDCluster) bool {
	kinds := map[loadbalancer.Kind]bool{}
	for _, o := range plan.Status.Objects {
		kinds[o.Kind] = true
	}
	return len(plan.Steps) == 0 && kinds[lb.KindPool] && kinds[lb.KindService] && e.Idle(c.UID)
}

// HasOtherMembers reports whether the endpoint of a cluster has members besides a machine whose VMs have run. A new
// machine becomes a member before its API server runs. owner is the Cluster.
func HasOtherMembers(ctx context.Context, c client.Reader, cluster *infrav1.VCDCluster, owner *clusterv1.Cluster,
	machine *infrav1.VCDMachine,
) (bool, error) {
	list := &infrav1.VCDMachineList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace), index.OfCluster(capicluster.Name(cluster, owner))); err != nil {
		return false, fmt.Errorf("listing VCDMachines: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(m infrav1.VCDMachine) bool {
		return m.UID != machine.UID && m.DeletionTimestamp.IsZero() && m.Spec.RecordedState.EndpointMember != "" &&
			ptr.Deref(m.Status.Initialization.Provisioned, false)
	}), nil
}

// checkEvery is the interval at which a complete endpoint is compared with the desired state. Endpoints on one gateway
// are due together, so that they share its lists.
const checkEvery = 5 * time.Minute

// UntilCheck returns the time until the next check of a cluster's endpoint on a gateway.
func UntilCheck(now time.Time, gateway string, cluster types.UID) time.Duration {
	offset := spread(gateway, checkEvery)
	last := now.Add(-offset).Truncate(checkEvery).Add(offset)
	return last.Add(checkEvery).Sub(now) + spread(string(cluster), 5*time.Second)
}

// spread returns a duration below d that depends only on seed.
func spread(seed string, d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))                // never fails
	return time.Duration(h.Sum64() % uint64(d)) //nolint:gosec // below d
}

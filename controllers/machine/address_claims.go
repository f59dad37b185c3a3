// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileAddressesClaimed makes sure that the addresses which VCD neither assigns nor leases are known, fit their
// networks and are free before the VM is created.
func reconcileAddressesClaimed(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.hasRun() {
		return phases.Done, nil
	}
	c := newClaims(s)
	claimed, out, err := c.ensure(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.target.static = claimed.static
	if s.inputs.vmID() == "" {
		desired := s.target.desiredNICs()
		if out := nics.Problem(desired); out != phases.Done {
			s.session.Refresh() // A user may correct the network in VCD.
			return out, nil
		}
		if out, err := newAddressCheck(s).free(ctx, desired); err != nil || out != phases.Done {
			return out, err
		}
	}
	return c.hold(ctx, claimed.held)
}

// claims obtains the addresses of a machine from pools, and releases them.
type claims struct {
	inputs *inputs
	claims ipam.Claims
}

func newClaims(s *scope) claims {
	m := s.inputs.vcdMachine
	return claims{
		inputs: &s.inputs,
		claims: ipam.Claims{
			Client:  s.reconciler.Client,
			Live:    s.reconciler.Live,
			Owner:   m,
			ID:      m.Spec.RecordedState.InstanceID,
			Cluster: m.Labels[clusterv1.ClusterNameLabel],
		},
	}
}

// claimed holds the addresses of a machine that VCD neither assigns nor leases.
type claimed struct {
	static [][]nics.Static // per NIC
	held   []ipam.Address  // from pools
}

// ensure returns the static addresses of each NIC, and claims addresses from pools. It creates all claims in the same
// pass, so that the pools work in parallel. pending is why an address is not known yet. A problem takes precedence over
// a wait.
func (c claims) ensure(ctx context.Context) (found claimed, pending phases.Result, _ error) {
	for i, wanted := range c.wanted() {
		ofNIC := nics.Manual(i, c.inputs.vcdMachine.Spec.Networks[i])
		for _, claim := range wanted {
			address, out, err := c.claims.Ensure(ctx, claim)
			if err != nil {
				return claimed{}, phases.Done, err
			}
			if out != phases.Done && (pending == phases.Done || out.IsProblem() && !pending.IsProblem()) {
				pending = out
			}
			found.held = append(found.held, address)
			ofNIC = append(ofNIC, nics.Static{
				Addr:    address.Addr,
				Bits:    address.Bits,
				Gateway: address.Gateway,
				From:    "IPAddressClaim " + claim.Name,
				Remedy: fmt.Sprintf("correct %s %s, then delete IPAddressClaim %s", claim.Pool.Kind, claim.Pool.Name,
					claim.Name),
			})
		}
		found.static = append(found.static, ofNIC)
	}
	return found, pending, nil
}

// hold keeps the claimed addresses from being released before the VM is gone.
func (c claims) hold(ctx context.Context, held []ipam.Address) (phases.Result, error) {
	for _, address := range held {
		switch err := c.claims.Hold(ctx, address); {
		case apierrors.IsConflict(err):
			return phases.Wait(intervals.Busy, infrav1.WaitingForIPAddressClaimReason,
				"Waiting for an updated IPAddress"), nil
		case err != nil:
			return phases.Done, err
		}
	}
	return phases.Done, nil
}

// lost returns a warning or a problem if a claim of an address that the guest uses is gone.
func (c claims) lost(ctx context.Context) (warning phases.Result, _ error) {
	for _, wanted := range c.wanted() {
		for _, claim := range wanted {
			out, err := c.claims.Kept(ctx, claim)
			if err != nil || out.IsProblem() {
				return out, err
			}
			warning = cmp.Or(warning, out)
		}
	}
	return warning, nil
}

// release releases the addresses of a machine whose VM is gone.
func (c claims) release(ctx context.Context) error {
	var names []string
	for _, wanted := range c.wanted() {
		for _, claim := range wanted {
			names = append(names, claim.Name)
		}
	}
	return c.claims.Release(ctx, names...)
}

// wanted returns the claims that each NIC needs.
func (c claims) wanted() [][]ipam.Claim {
	all := make([][]ipam.Claim, len(c.inputs.vcdMachine.Spec.Networks))
	for i, nic := range c.inputs.vcdMachine.Spec.Networks {
		for j, pool := range nic.PoolRefs {
			all[i] = append(all[i], ipam.Claim{
				Name:  fmt.Sprintf("%s-%d-%d", c.inputs.vcdMachine.Name, i, j),
				Pool:  pool,
				Field: fmt.Sprintf("spec.networks[%d].poolRefs[%d]", i, j),
				InUse: c.inputs.mayHaveVM(),
			})
		}
	}
	return all
}

// An addressCheck checks that the static addresses of a machine are free.
type addressCheck struct {
	client  client.Client
	session *session.Session
	inputs  *inputs
}

func newAddressCheck(s *scope) addressCheck {
	return addressCheck{client: s.reconciler.Client, session: s.session, inputs: &s.inputs}
}

// free returns why an address is not free: it is the virtual IP of a cluster, or VCD shows that it is in use.
func (a addressCheck) free(ctx context.Context, desired []nics.NIC) (phases.Result, error) {
	for _, nic := range desired {
		if len(nic.Static) == 0 {
			continue
		}
		if out, err := a.announced(ctx, nic); err != nil || out != phases.Done {
			return out, err
		}
		hosts, err := a.session.RecentHostsAt(ctx, nic.Network.Ref, nic.Addresses())
		if err != nil {
			return problems.OfRead(err, "Reading the used addresses of network "+nic.Network.Name)
		}
		if out := nic.Taken(hosts, a.inputs.vcdMachine.Spec.RecordedState.VMName); out != phases.Done {
			return out, nil
		}
	}
	return phases.Done, nil
}

// announced returns a problem if an address of a NIC is the virtual IP of a cluster: of the machine's own cluster, or
// of another one in the network of the NIC.
func (a addressCheck) announced(ctx context.Context, nic nics.NIC) (phases.Result, error) {
	list := &infrav1.VCDClusterList{}
	if err := a.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.UID != a.inputs.vcdCluster.UID && !virtualip.Shares(a.inputs.vcdCluster, c, nic.Network.ID) {
			continue
		}
		out := nic.Announced(checks.VirtualIPs(c), capicluster.NameFor(a.inputs.vcdMachine, c))
		if out != phases.Done {
			return out, nil
		}
	}
	return phases.Done, nil
}

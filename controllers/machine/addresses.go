// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAddresses makes sure that the addresses of the machine are known, and later that they are those its guest
// uses.
func reconcileAddresses(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.vm.row != nil && s.inputs.provisioned() {
		return s.addresses.watch(ctx)
	}
	if s.vm.now() == nil || !s.addresses.hasAddress() {
		s.vm.forget()
		s.vm.current = false
		if out, err := s.observer.ensureRead(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	s.addresses.report()
	if !s.addresses.hasAddress() {
		return phases.Wait(session.TaskPoll, infrav1.WaitingForAddressReason,
			"Waiting for the guest to get an address by DHCP on network %s", s.vm.now().NICs[0].Network), nil
	}
	return s.addresses.problem(), nil
}

// reconcileAddressesClaimed makes sure, before the VM is made, that those of its addresses which VCD neither assigns
// nor leases are known, fit their networks, and are free.
func reconcileAddressesClaimed(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.inputs.cameUp() {
		return phases.Done, nil
	}
	held, out, err := s.addresses.claim(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	if s.inputs.vmID() == "" {
		if out := nics.Problem(s.placement.wished()); out != phases.Done {
			s.session.Refresh() // The network may be corrected in VCD.
			return out, nil
		}
		if out, err := s.addresses.free(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	return s.addresses.hold(ctx, held)
}

// Addresses claims the addresses of a machine, and reports those of its VM.
type addresses struct{ scope *scope }

// claims returns what claims addresses for the machine.
func (s addresses) claims() ipam.Claims {
	return ipam.Claims{
		Client:  s.scope.reconciler.Client,
		Live:    s.scope.reconciler.Live,
		Owner:   s.scope.inputs.vcdMachine,
		ID:      s.scope.inputs.vcdMachine.Annotations[infrav1.InstanceIDAnnotation],
		Cluster: s.scope.inputs.vcdMachine.Labels[clusterv1.ClusterNameLabel],
	}
}

// hold keeps the claimed addresses from being released before the VM is gone.
func (s addresses) hold(ctx context.Context, held []ipam.Address) (phases.Outcome, error) {
	for _, address := range held {
		switch err := s.claims().Hold(ctx, address); {
		case apierrors.IsConflict(err):
			return phases.Wait(session.BusyPoll, infrav1.AddressClaimedReason,
				"Waiting for a change of an IPAddress to be seen"), nil
		case err != nil:
			return phases.Done, err
		}
	}
	return phases.Done, nil
}

// wanted returns the claims of each NIC.
func (s addresses) wanted() [][]ipam.Claim {
	all := make([][]ipam.Claim, len(s.scope.inputs.vcdMachine.Spec.Networks))
	for i, nic := range s.scope.inputs.vcdMachine.Spec.Networks {
		for j, pool := range nic.PoolRefs {
			all[i] = append(all[i], ipam.Claim{
				Name:  fmt.Sprintf("%s-%d-%d", s.scope.inputs.vcdMachine.Name, i, j),
				Pool:  pool,
				Field: fmt.Sprintf("spec.networks[%d].poolRefs[%d]", i, j),
				InUse: s.scope.release.scope.inputs.mayHaveVM(),
			})
		}
	}
	return all
}

// claim finds the static addresses of all NICs, and claims those of pools: all at once, so that pools work in parallel.
func (s addresses) claim(ctx context.Context) (held []ipam.Address, _ phases.Outcome, _ error) {
	var pending phases.Outcome
	for i, claims := range s.wanted() {
		static := nics.Manual(i, s.scope.inputs.vcdMachine.Spec.Networks[i])
		for _, claim := range claims {
			address, out, err := s.claims().Ensure(ctx, claim)
			if err != nil {
				return nil, phases.Done, err
			}
			if out != phases.Done && (pending == phases.Done || out.Problem && !pending.Problem) {
				pending = out
			}
			held = append(held, address)
			static = append(static, nics.Static{
				Addr:    address.Addr,
				Bits:    address.Bits,
				Gateway: address.Gateway,
				From:    "IPAddressClaim " + claim.Name,
				Remedy: fmt.Sprintf("correct %s %s, then delete IPAddressClaim %s", claim.Pool.Kind, claim.Pool.Name,
					claim.Name),
			})
		}
		s.scope.placement.static = append(s.scope.placement.static, static)
	}
	return held, pending, nil
}

// free returns why an address is not free: it is the virtual IP of a cluster, or used in VCD.
func (s addresses) free(ctx context.Context) (phases.Outcome, error) {
	for _, nic := range s.scope.placement.wished() {
		if len(nic.Static) == 0 {
			continue
		}
		if out, err := s.announced(ctx, nic); err != nil || out != phases.Done {
			return out, err
		}
		hosts, err := s.scope.session.RecentHostsOn(ctx, nic.Network.Ref)
		if err != nil {
			return session.Unread(err, "Reading which addresses of network "+nic.Network.Name+" are used")
		}
		if out := nic.Taken(hosts, s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]); out != phases.Done {
			return out, nil
		}
	}
	return phases.Done, nil
}

// announced returns which cluster has an address of a NIC as its virtual IP: that of the machine, or another one in the
// network of the NIC.
func (s addresses) announced(ctx context.Context, nic nics.NIC) (phases.Outcome, error) {
	list := &infrav1.VCDClusterList{}
	if err := s.scope.reconciler.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.UID != s.scope.inputs.vcdCluster.UID && !virtualip.Shares(s.scope.inputs.vcdCluster, c, nic.Network.ID) {
			continue
		}
		out := nic.Announced(virtualip.Of(c), session.NameFor(s.scope.inputs.vcdMachine, c))
		if out != phases.Done {
			return out, nil
		}
	}
	return phases.Done, nil
}

// lost returns whether a claim of an address that the guest uses is gone.
func (s addresses) lost(ctx context.Context) (warning phases.Outcome, _ error) {
	for _, claims := range s.wanted() {
		for _, claim := range claims {
			out, err := s.claims().Kept(ctx, claim)
			if err != nil || out.Problem {
				return out, err
			}
			warning = cmp.Or(warning, out)
		}
	}
	return warning, nil
}

// releaseClaims frees the addresses of a machine whose VM is gone.
func (s addresses) releaseClaims(ctx context.Context) error {
	var names []string
	for _, claims := range s.wanted() {
		for _, claim := range claims {
			names = append(names, claim.Name)
		}
	}
	return s.claims().Release(ctx, names...)
}

// watch observes the addresses of a machine that runs. Its VM is read when the inventory shows that something
// changed, and now and then.
func (s addresses) watch(ctx context.Context) (phases.Outcome, error) {
	s.scope.requeueWithin(untilNextInventory(s.scope.now(), s.scope.placement.vdc.ID, s.scope.inputs.key()))
	known := s.known()
	if !known || s.scope.observer.readDue() {
		switch err := s.scope.observer.read(ctx); {
		case err == nil:
			s.report()
		case !known:
			return session.Unread(err, "Reading VM "+s.scope.vm.row.Name)
		default:
			ctrl.LoggerFrom(ctx).V(1).Info("Reading the VM later", "vm", s.scope.vm.row.ID, "reason", err.Error())
		}
	}
	if left := s.scope.vm.readNext.Sub(s.scope.now()); left > 0 {
		s.scope.requeueWithin(left)
	}
	if out := s.problem(); out != phases.Done {
		return out, nil
	}
	return s.lost(ctx)
}

// problem returns why the guest cannot be reached under the addresses that it uses.
func (s addresses) problem() phases.Outcome {
	made, ok := s.scope.inputs.made()
	if !ok {
		return phases.Done
	}
	found := made.Unreachable(s.scope.inputs.vcdMachine.Status.NICs)
	if len(found) == 0 {
		return phases.Done
	}
	reason, message := drift.Summary(found)
	return phases.Fail(inventoryEvery, reason, "%s. Set it back in VCD, or replace the machine", message)
}

// known reports whether what was read earlier still holds.
func (s addresses) known() bool {
	if len(s.scope.inputs.vcdMachine.Status.NICs) == 0 {
		return false
	}
	return s.scope.vm.row.PrimaryAddress == "" || s.scope.vm.row.PrimaryAddress == s.scope.inputs.vcdMachine.Status.NICs[0].Address
}

// hasAddress reports whether the primary NIC has one.
func (s addresses) hasAddress() bool { return s.primary() != "" || len(s.scope.vm.now().NICs) == 0 }

// primary returns the address of the primary NIC; empty if it has none.
func (s addresses) primary() string {
	for _, nic := range s.scope.vm.now().NICs {
		if nic.Primary {
			return nic.Address
		}
	}
	return ""
}

// reported returns whether an address is one of those that were read last.
func (s addresses) reported(address string) bool {
	return slices.ContainsFunc(s.scope.inputs.vcdMachine.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return a.Address == address
	})
}

// ofPrimary returns the addresses of the primary NIC, of which it may have one of each family.
func (s addresses) ofPrimary() []string {
	var found []string
	for _, nic := range s.scope.vm.now().NICs {
		if !nic.Primary {
			continue
		}
		for _, address := range []string{nic.Address, nic.Secondary} {
			if address != "" {
				found = append(found, address)
			}
		}
	}
	return found
}

// report writes what VCD says of the NICs to the status, the primary one first.
func (s addresses) report() {
	status := &s.scope.inputs.vcdMachine.Status
	status.Addresses = []clusterv1.MachineAddress{{
		Type:    clusterv1.MachineHostName,
		Address: cmp.Or(s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation], s.scope.vm.now().Name),
	}}
	status.NICs = nil
	for _, primary := range []bool{true, false} {
		for _, nic := range s.scope.vm.now().NICs {
			if nic.Primary == primary {
				s.reportNIC(nic)
			}
		}
	}
}

func (s addresses) reportNIC(nic vcd.NIC) {
	status := &s.scope.inputs.vcdMachine.Status
	status.NICs = append(status.NICs,
		infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
	for _, address := range []string{nic.Address, nic.Secondary} {
		if address != "" {
			status.Addresses = append(status.Addresses,
				clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
		}
	}
}

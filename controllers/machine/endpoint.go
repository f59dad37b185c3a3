// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// joinEndpoint makes a control plane machine a member of its cluster's endpoint.
func joinEndpoint(ctx context.Context, s *scope) (phases.Result, error) {
	e := newEndpointMember(s)
	address, out, err := e.address(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	joins := address != s.inputs.vcdMachine.Spec.RecordedState.EndpointMember
	if joins { // The VM must belong to this machine.
		if out, err := e.observer.ensureOwned(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	request := endpointRequest(s)
	if !s.inputs.provisioned() || joins {
		a := newAccess(s)
		if out, err := a.logInToCluster(ctx); err != nil || out != phases.Done {
			return out, err
		}
		request.Session = a.opened
	}
	return s.reconciler.Endpoints.Join(ctx, request, address, s.inputs.provisioned(), s.records.patcher.Save)
}

// removeFromEndpoint makes sure that the machine is no longer a member of its cluster's endpoint.
func removeFromEndpoint(ctx context.Context, s *scope) (phases.Result, error) {
	if stays, err := staysInEndpoint(ctx, s); err != nil || stays {
		return phases.Done, err
	}
	return removeMember(ctx, s, endpointRequest(s))
}

// removeFromEndpointEarly removes a machine that is about to be deleted from its cluster's endpoint, and the record that it is
// a member. The only member stays until its VM is deleted.
func removeFromEndpointEarly(ctx context.Context, s *scope) (phases.Result, error) {
	if stays, err := staysInEndpoint(ctx, s); err != nil || stays {
		return phases.Obsolete, err
	}
	in := &s.inputs
	others, err := edgeendpoint.HasOtherMembers(ctx, s.reconciler.Client, in.vcdCluster, in.cluster, in.vcdMachine)
	if err != nil || !others {
		return phases.Obsolete, err
	}
	request := endpointRequest(s)
	request.Leaves = true
	out, err := removeMember(ctx, s, request)
	if err == nil && out == phases.Done {
		in.vcdMachine.Spec.RecordedState.EndpointMember = ""
	}
	return out, err
}

// staysInEndpoint reports whether the reconciler of the machine must not remove it from the endpoint:
//   - The VM is declared gone, or a user keeps load balancers in VCD: the cluster removes the member.
//   - The VM belongs to another machine, and the member with it.
//   - The cluster was never provisioned here: it may be a copy, whose ID refers to the endpoint of the original.
//   - The cluster is being deleted, and its gateway is not recorded: the cluster removes its endpoint later.
func staysInEndpoint(ctx context.Context, s *scope) (bool, error) {
	gateway, _ := edgeendpoint.Of(s.inputs.vcdCluster)
	c := s.inputs.vcdCluster
	if s.inputs.cluster == nil || !ptr.Deref(c.Status.Initialization.Provisioned, false) ||
		gateway == "" && !c.DeletionTimestamp.IsZero() ||
		absence.IsDeclared(s.inputs.vcdMachine) ||
		c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true" {
		return true, nil
	}
	return mustKeepVM(ctx, s.reconciler.Client, &s.inputs)
}

// removeMember removes the machine of a request from the endpoint.
func removeMember(ctx context.Context, s *scope, request edgeendpoint.Request) (phases.Result, error) {
	a := newAccess(s)
	if out, err := a.logInToCluster(ctx); err != nil || out != phases.Done {
		return out, err
	}
	request.Session = a.opened
	out, err := s.reconciler.Endpoints.Leave(ctx, request)
	if out.IsProblem() {
		out.Message += fmt.Sprintf(". To delete the machine while it is a member, annotate the VCDCluster with %s=true",
			infrav1.KeepLoadBalancersAnnotation)
	}
	return out, err
}

// endpointRequest returns the request of the machine to its cluster's endpoint. The caller must set the session.
func endpointRequest(s *scope) edgeendpoint.Request {
	gateway, _ := edgeendpoint.Of(s.inputs.vcdCluster)
	return edgeendpoint.Request{
		Client:  s.reconciler.Client,
		Cluster: s.inputs.vcdCluster,
		Owner:   s.inputs.cluster,
		Machine: s.inputs.vcdMachine,
		Gateway: gateway,
		Wake:    s.wake(),
		Now:     s.now(),
	}
}

// An endpointMember chooses the address with which the machine joins its cluster's endpoint.
type endpointMember struct {
	inputs   *inputs
	vm       *vmState
	observer observer
}

func newEndpointMember(s *scope) endpointMember {
	return endpointMember{inputs: &s.inputs, vm: s.vm, observer: newObserver(s)}
}

// address returns the address of the primary NIC with which the machine is a member of the endpoint. It has the family
// of the endpoint's first address. A machine that never ran must have such an address, because the endpoint would not
// reach it otherwise. A running machine keeps its recorded address while the inventory shows no other address, unless
// it has an unrecorded address of that family.
func (e endpointMember) address(ctx context.Context) (string, phases.Result, error) {
	family := edgeendpoint.MemberFamily(e.inputs.vcdCluster)
	recorded := e.inputs.vcdMachine.Spec.RecordedState.EndpointMember
	if e.vm.listed != nil && e.inputs.provisioned() {
		current := e.vm.listed.PrimaryAddress
		if address := edgeendpoint.OfFamily([]string{current}, family); address != "" {
			return address, phases.Done, nil
		}
		keeps := edgeendpoint.KeepsMember(e.inputs.vcdCluster, e.inputs.vcdMachine)
		if recorded != "" && keeps && (current == "" || e.reported(recorded)) {
			return recorded, phases.Done, nil
		}
	}
	if out, err := e.observer.ensureRead(ctx); err != nil || out != phases.Done {
		return "", out, err
	}
	has := primaryAddresses(*e.vm.current())
	if address := cmp.Or(edgeendpoint.OfFamily(has, family), recorded); address != "" {
		return address, phases.Done, nil
	}
	e.vm.requireReadNextPass()
	if len(has) == 0 {
		return "", phases.Wait(intervals.Task, infrav1.WaitingForAddressReason,
			"Waiting for the address of the VM, with which it joins the endpoint"), nil
	}
	return "", phases.Fail(intervals.Remedy, infrav1.EndpointFamilyMismatchReason,
		"The first address of the cluster's endpoint is of family %s, but the VM has only %s: set an address of the nodes' family in spec.controlPlaneEndpoint of the VCDCluster, or use nodes with addresses of both families", family, strings.Join(has, ", ")), nil
}

// reported reports whether an address is in the status, which lists the addresses of the last read.
func (e endpointMember) reported(address string) bool {
	return slices.ContainsFunc(e.inputs.vcdMachine.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return a.Address == address
	})
}

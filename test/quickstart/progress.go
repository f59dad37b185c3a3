// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A view is a snapshot of the cluster.
type view struct {
	cluster  clusterv1.Cluster
	gone     bool
	vcd      []infrav1.VCDCluster
	machines []clusterv1.Machine
	vms      map[string]infrav1.VCDMachine // by name, which is the Machine's name
	boots    map[string]string             // boot stages of VMs by name
	refused  []string                      // guests that failed to boot, with the reason
	calls    int
}

func (q *quickstart) observe(ctx context.Context) (*view, error) {
	v := &view{vms: map[string]infrav1.VCDMachine{}, boots: map[string]string{}, calls: q.calls()}
	err := q.client.Get(ctx, client.ObjectKey{Name: clusterName, Namespace: clusterNamespace}, &v.cluster)
	if v.gone = apierrors.IsNotFound(err); client.IgnoreNotFound(err) != nil {
		return v, err
	}
	var clusters infrav1.VCDClusterList
	var machines clusterv1.MachineList
	var vms infrav1.VCDMachineList
	for _, list := range []client.ObjectList{&clusters, &machines, &vms} {
		if err := q.client.List(ctx, list, client.InNamespace(clusterNamespace)); err != nil {
			return v, err
		}
	}
	v.vcd = clusters.Items
	v.machines = machines.Items
	slices.SortFunc(v.machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range vms.Items {
		name := vms.Items[i].Name
		v.vms[name] = vms.Items[i]
		v.boots[name] = q.booted.stage(name)
	}
	state := q.site.Simulator.State()
	for i := range state.VMs {
		if failure := state.VMs[i].Boot.Failure; failure != "" {
			v.refused = append(v.refused, fmt.Sprintf("%s: the guest does not come up: %s", state.VMs[i].Name, failure))
		}
	}
	return v, nil
}

// calls returns the number of requests to the simulated VCD.
func (q *quickstart) calls() int {
	sum := 0
	for _, count := range q.site.Simulator.Counters() {
		sum += count
	}
	return sum
}

// available reports whether the cluster is available with this number of nodes.
func (v *view) available(nodes int) bool {
	if !meta.IsStatusConditionTrue(v.cluster.Status.Conditions, clusterv1.AvailableCondition) ||
		len(v.machines) != nodes {
		return false
	}
	for i := range v.machines {
		if !meta.IsStatusConditionTrue(v.machines[i].Status.Conditions, clusterv1.MachineReadyCondition) {
			return false
		}
	}
	return true
}

// lines formats the view for users, one line per object.
func (v *view) lines() []string {
	var lines []string
	for i := range v.vcd {
		lines = append(lines,
			line("VCDCluster "+v.vcd[i].Name, stage(v.vcd[i].DeletionTimestamp, v.vcd[i].Status.Conditions)))
	}
	for i := range v.machines {
		lines = append(lines, line("Machine "+v.machines[i].Name, v.machineStage(&v.machines[i])))
	}
	if len(v.machines) == 0 && !v.gone {
		lines = append(lines, line("Cluster "+clusterName, "no machines"))
	}
	return append(lines, v.refused...)
}

func line(object, stage string) string {
	return fmt.Sprintf("%-34s %s", object, stage)
}

// machineStage returns the current step of a machine. The steps of this provider precede those of Kubernetes.
func (v *view) machineStage(m *clusterv1.Machine) string {
	vm, found := v.vms[m.Spec.InfrastructureRef.Name]
	switch {
	case !found && m.DeletionTimestamp != nil:
		return "deleted in VCD"
	case !found:
		return "waiting for its VCDMachine"
	case !meta.IsStatusConditionTrue(vm.Status.Conditions, clusterv1.ReadyCondition) || vm.DeletionTimestamp != nil:
		return stage(vm.DeletionTimestamp, vm.Status.Conditions)
	case m.Status.NodeRef.Name == "":
		return "VM is up, " + cmp.Or(v.boots[vm.Name], "waiting for the node to join")
	case !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineReadyCondition):
		return "node joined, waiting for it to be ready"
	default:
		return "ready"
	}
}

// stage formats the first condition that is not true, in the order of the provider's phases.
func stage(deleted *metav1.Time, conditions []metav1.Condition) string {
	order := []string{
		infrav1.IdentityReadyCondition, infrav1.NetworkReadyCondition, infrav1.EndpointReadyCondition,
		infrav1.BootstrapReadyCondition, infrav1.PlacementReadyCondition, infrav1.VAppReadyCondition,
		infrav1.VMCreatedCondition,
		infrav1.BootstrapInjectedCondition, infrav1.PoweredOnCondition, infrav1.AddressesReadyCondition,
		clusterv1.ReadyCondition,
	}
	if deleted != nil {
		order = []string{clusterv1.ReadyCondition}
	}
	for _, kind := range order {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return strings.TrimSuffix(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, firstLine(c.Message)),
				": ")
		}
	}
	switch {
	case deleted != nil:
		return "being deleted"
	case meta.IsStatusConditionTrue(conditions, clusterv1.ReadyCondition):
		return "ready"
	default:
		return "not reconciled yet"
	}
}

func firstLine(text string) string {
	head, _, _ := strings.Cut(text, "\n")
	return head
}

// problem returns the view as an error. It returns nil if there is no view.
func (v *view) problem() error {
	if v == nil {
		return nil
	}
	return fmt.Errorf("at the end:\n  %s", strings.Join(v.lines(), "\n  "))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"defaults": {},
		"all flags": {args: []string{
			"--profile=recorded", "--workers=0",
			"--control-planes=3", "--keep", "--dir=x",
		}},
		"an unknown profile":               {args: []string{"--profile=slow"}, err: "--profile slow"},
		"an even number of control planes": {args: []string{"--control-planes=2"}, err: "--control-planes 2"},
		"a negative number of workers":     {args: []string{"--workers=-1"}, err: "--workers -1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			opts, err := parse(test.args, &out)
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(opts.dir).To(HavePrefix("/"))
			g.Expect(opts.timeout).To(BeNumerically(">", 0))
		})
	}
}

func TestCommandsFitATerminal(t *testing.T) {
	g := NewWithT(t)
	g.Expect(commandLine("kubectl", "get", "nodes")).To(Equal("kubectl get nodes"))
	g.Expect(commandLine("clusterctl", "generate", "cluster", "demo", "--infrastructure=vcd:v2.0.0",
		"--control-plane-machine-count=1", "--worker-machine-count=1")).To(Equal(
		"clusterctl generate cluster demo --infrastructure=vcd:v2.0.0 \\\n" +
			"          --control-plane-machine-count=1 --worker-machine-count=1"))
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestStage(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		deleted    *metav1.Time
		conditions []metav1.Condition
		want       string
	}{
		"no conditions": {want: "not reconciled yet"},
		"several waiting phases: the first one": {
			conditions: []metav1.Condition{
				condition(infrav1.PoweredOnCondition, metav1.ConditionUnknown, "Pending", ""),
				condition(infrav1.VMCreatedCondition, metav1.ConditionFalse, "Creating",
					"VM a is being created\nand more"),
				condition(infrav1.VAppReadyCondition, metav1.ConditionTrue, "Ready", ""),
			},
			want: "VMCreated=False Creating: VM a is being created",
		},
		"a condition without a message: its reason": {
			conditions: []metav1.Condition{condition(infrav1.VMCreatedCondition, metav1.ConditionFalse, "Creating",
				"")},
			want: "VMCreated=False Creating",
		},
		"all conditions true": {
			conditions: []metav1.Condition{
				condition(infrav1.VMCreatedCondition, metav1.ConditionTrue, "Ready", ""),
				condition(clusterv1.ReadyCondition, metav1.ConditionTrue, "Ready", ""),
			},
			want: "ready",
		},
		"only conditions of other phases": {
			conditions: []metav1.Condition{condition(clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused",
				"")},
			want: "not reconciled yet",
		},
		"a deleted object": {
			deleted: &now,
			conditions: []metav1.Condition{condition(infrav1.VMCreatedCondition, metav1.ConditionFalse, "Deleting",
				"")},
			want: "being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(stage(test.deleted, test.conditions)).To(Equal(test.want))
		})
	}
}

func TestClusterIsAvailableWithAllNodes(t *testing.T) {
	g := NewWithT(t)
	v := &view{}
	v.cluster.Status.Conditions = []metav1.Condition{condition(clusterv1.AvailableCondition, metav1.ConditionTrue,
		"Available", "")}
	g.Expect(v.available(1)).To(BeFalse(), "no machine yet")
	v.machines = make([]clusterv1.Machine, 1)
	g.Expect(v.available(1)).To(BeFalse(), "machine not ready")
	v.machines[0].Status.Conditions = []metav1.Condition{condition(clusterv1.MachineReadyCondition,
		metav1.ConditionTrue, "Ready", "")}
	g.Expect(v.available(1)).To(BeTrue())
	g.Expect(v.available(2)).To(BeFalse(), "one of two machines")
}

func TestStageOfAMachineIncludesTheBootOfItsVM(t *testing.T) {
	g := NewWithT(t)
	m := clusterv1.Machine{}
	m.Spec.InfrastructureRef.Name = "a"
	vm := infrav1.VCDMachine{}
	vm.Name = "a"
	vm.Status.Conditions = []metav1.Condition{condition(clusterv1.ReadyCondition, metav1.ConditionTrue, "Ready", "")}
	v := &view{vms: map[string]infrav1.VCDMachine{"a": vm}, boots: map[string]string{}}
	g.Expect(v.machineStage(&m)).To(Equal("VM is up, waiting for the node to join"))
	v.boots["a"] = "kubeadm runs"
	g.Expect(v.machineStage(&m)).To(Equal("VM is up, kubeadm runs"))
}

func TestLinesAreTruncatedToTheTerminal(t *testing.T) {
	g := NewWithT(t)
	g.Expect(cut("short", 10)).To(Equal("short"))
	g.Expect(cut("exactly ten", 5)).To(Equal("exac…"))
}

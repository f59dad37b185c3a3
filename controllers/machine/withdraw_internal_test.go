// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

// deletedAt is the time at which the machine of a leavingNode is deleted.
var deletedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A leavingNode is the Node of a machine that is being deleted, in a workload cluster with a load balancer.
type leavingNode struct {
	*WithT

	ctx    context.Context //nolint:containedctx // the context of the test
	guest  client.Client
	scope  *scope
	events chan string
	now    time.Time
}

func newLeavingNode(t *testing.T, guests ...client.Object) *leavingNode {
	t.Helper()
	byType := func(obj client.Object) []string { return []string{string(obj.(*corev1.Service).Spec.Type)} }
	recorder := events.NewFakeRecorder(10)
	n := &leavingNode{
		WithT:  NewWithT(t),
		ctx:    t.Context(),
		guest:  fake.NewClientBuilder().WithObjects(guests...).WithIndex(&corev1.Service{}, "spec.type", byType).Build(),
		events: recorder.Events,
		now:    deletedAt,
	}
	machine := &clusterv1.Machine{}
	machine.Status.NodeRef.Name = "md-0"
	cluster := &clusterv1.Cluster{}
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	vcdMachine := &infrav1.VCDMachine{}
	vcdMachine.DeletionTimestamp = ptr.To(metav1.NewTime(deletedAt))
	vcdMachine.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:1"
	n.scope = &scope{
		reconciler: &Reconciler{
			Client:   managementClient(n.WithT),
			Recorder: recorder,
			Now:      func() time.Time { return n.now },
			Workload: func(context.Context, client.ObjectKey) (client.Client, error) { return n.guest, nil },
		},
		inputs: inputs{
			vcdMachine: vcdMachine,
			machine:    machine,
			cluster:    cluster,
		},
	}
	return n
}

// managementClient returns a client of a management cluster with VCDMachines.
func managementClient(g *WithT, machines ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machines...)
	for _, i := range index.All() {
		builder.WithIndex(i.Object, i.Field, i.Values)
	}
	return builder.Build()
}

// withdraw runs the phase once.
func (n *leavingNode) withdraw() phases.Result {
	out, err := withdrawNode(n.ctx, n.scope)
	n.Expect(err).NotTo(HaveOccurred())
	return out
}

func (n *leavingNode) node() *corev1.Node {
	node := &corev1.Node{}
	n.Expect(n.guest.Get(n.ctx, client.ObjectKey{Name: "md-0"}, node)).To(Succeed())
	return node
}

func nodeOfMachine() *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "md-0"}}
	node.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:1"
	return node
}

func serviceOf(kind corev1.ServiceType) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	s.Spec.Type = kind
	return s
}

func TestAVMIsPoweredOffAfterLoadBalancersStoppedUsingItsNode(t *testing.T) {
	n := newLeavingNode(t, nodeOfMachine(), serviceOf(corev1.ServiceTypeLoadBalancer))

	n.Expect(n.withdraw().Reason).To(Equal(infrav1.WaitingForLoadBalancersReason))
	n.Expect(n.node().Labels).To(HaveKey(corev1.LabelNodeExcludeBalancers))
	n.Expect(withdrawal.IsRequested(n.node())).To(BeTrue())

	requested := n.node().ResourceVersion
	n.now = deletedAt.Add(5 * time.Second)
	n.Expect(n.withdraw().Reason).To(Equal(infrav1.WaitingForLoadBalancersReason))
	n.Expect(n.node().ResourceVersion).To(Equal(requested), "requested once")

	confirmed := n.node()
	withdrawal.Confirm(confirmed)
	n.Expect(n.guest.Update(n.ctx, confirmed)).To(Succeed())
	n.Expect(n.withdraw()).To(Equal(phases.Done))
	n.Expect(n.events).NotTo(Receive())
}

func TestADeletionWaitsForLoadBalancersForHalfAMinuteAtMost(t *testing.T) {
	n := newLeavingNode(t, nodeOfMachine(), serviceOf(corev1.ServiceTypeLoadBalancer))
	n.withdraw()

	n.now = deletedAt.Add(29 * time.Second)
	n.Expect(n.withdraw()).NotTo(Equal(phases.Done))
	n.now = deletedAt.Add(31 * time.Second)
	n.Expect(n.withdraw()).To(Equal(phases.Done))
	n.Expect(n.events).To(Receive(ContainSubstring("WithdrawalUnconfirmed")))
}

func TestADeletionContinuesThoughTheWorkloadClusterDoesNotRespond(t *testing.T) {
	n := newLeavingNode(t)
	n.scope.reconciler.Workload = func(context.Context, client.ObjectKey) (client.Client, error) {
		return nil, errors.New("no route to host")
	}

	n.Expect(n.withdraw().Reason).To(Equal(infrav1.WaitingForLoadBalancersReason))
	n.now = deletedAt.Add(31 * time.Second)
	n.Expect(n.withdraw()).To(Equal(phases.Done))
	n.Expect(n.events).NotTo(Receive(), "no withdrawal was requested")
}

func TestADeletionDoesNotWaitWithoutLoadBalancers(t *testing.T) {
	other := nodeOfMachine()
	other.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:2"
	tests := []struct {
		name   string
		guests []client.Object
	}{
		{"no Service has a load balancer", []client.Object{nodeOfMachine(), serviceOf(corev1.ServiceTypeNodePort)}},
		{"the Node does not exist", []client.Object{serviceOf(corev1.ServiceTypeLoadBalancer)}},
		{"the Node belongs to another VM", []client.Object{other, serviceOf(corev1.ServiceTypeLoadBalancer)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newLeavingNode(t, tt.guests...)
			n.Expect(n.withdraw()).To(Equal(phases.Done))
			for _, guest := range tt.guests {
				if node, ok := guest.(*corev1.Node); ok {
					n.Expect(n.node().Labels).To(BeEmpty(), node.Name)
				}
			}
		})
	}
}

func TestTheNodeOfAVMThatAnotherMachineOwnsStays(t *testing.T) {
	n := newLeavingNode(t, nodeOfMachine(), serviceOf(corev1.ServiceTypeLoadBalancer))
	theCopy := n.scope.inputs.vcdMachine
	theCopy.UID = "uid-of-the-copy"
	theCopy.Spec.RecordedState.InstanceID = "uid-of-the-original"
	original := theCopy.DeepCopy()
	original.Namespace = "team-a"
	original.Name = "md-0"
	original.UID = "uid-of-the-original"
	original.DeletionTimestamp = nil
	original.Status.Initialization.Provisioned = ptr.To(true)
	n.scope.reconciler.Client = managementClient(n.WithT, original)

	n.Expect(n.withdraw()).To(Equal(phases.Done))
	n.Expect(n.node().Labels).NotTo(HaveKey(corev1.LabelNodeExcludeBalancers))
}

func TestAWithdrawnNodeIsNotReadAgain(t *testing.T) {
	n := newLeavingNode(t, nodeOfMachine(), serviceOf(corev1.ServiceTypeLoadBalancer))
	conditions.Set(n.scope.inputs.vcdMachine, metav1.Condition{
		Type:   infrav1.NodeWithdrawnCondition,
		Status: metav1.ConditionTrue,
		Reason: infrav1.ReadyReason,
	})
	n.Expect(n.withdraw()).To(Equal(phases.Done))
	n.Expect(n.node().Labels).To(BeEmpty())
}

func TestOnlyNodesOfLivingClustersAreWithdrawn(t *testing.T) {
	tests := []struct {
		name   string
		change func(*scope)
		want   bool
	}{
		{name: "the machine is removed from a cluster", change: func(*scope) {}, want: true},
		{
			name: "the cluster is deleted",
			change: func(s *scope) {
				s.inputs.cluster.DeletionTimestamp = ptr.To(metav1.NewTime(deletedAt))
			},
		},
		{name: "the cluster no longer exists", change: func(s *scope) { s.inputs.cluster = nil }},
		{
			name: "the control plane was never initialized",
			change: func(s *scope) {
				s.inputs.cluster.Status.Initialization.ControlPlaneInitialized = nil
			},
		},
		{name: "the machine never became a node", change: func(s *scope) { s.inputs.machine.Status.NodeRef.Name = "" }},
		{name: "the Machine no longer exists", change: func(s *scope) { s.inputs.machine = nil }},
		{
			name: "a user declared that the VM is gone",
			change: func(s *scope) {
				s.inputs.vcdMachine.Annotations = map[string]string{infrav1.VMGoneAnnotation: "true"}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newLeavingNode(t)
			tt.change(n.scope)
			n.Expect(hasNodeToWithdraw(n.scope)).To(Equal(tt.want))
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/handover"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

const (
	namespace = "team-a"
	leaving   = "cp-old"
	staying   = "cp-new"
)

// start is the time at which the Machine cp-old is deleted.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A fixture is a cluster with two control planes and the lease of kube-vip, whose holder is the node of cp-old.
type fixture struct {
	*WithT

	ctx        context.Context //nolint:containedctx // the context of the test
	management client.Client
	guest      client.Client
	reconciler *handover.Reconciler
	events     chan string
	now        time.Time
	openError  error // of the connection to the workload cluster
}

func newFixture(t *testing.T, changes ...func(*state)) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	s := newState()
	for _, change := range changes {
		change(s)
	}
	recorder := events.NewFakeRecorder(10)
	f := &fixture{
		WithT:      g,
		ctx:        t.Context(),
		management: controllertest.WithIndexes(fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.management()...)).Build(),
		guest:      fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.guest()...).Build(),
		events:     recorder.Events,
		now:        start,
		openError:  s.openError,
	}
	f.reconciler = &handover.Reconciler{
		Client:   f.management,
		Recorder: recorder,
		Now:      func() time.Time { return f.now },
		Workload: func(context.Context, client.ObjectKey) (client.Client, error) { return f.guest, f.openError },
	}
	return f
}

// A state has the objects of a fixture before it starts.
type state struct {
	cluster    *clusterv1.Cluster
	vcdCluster *infrav1.VCDCluster
	leaving    *clusterv1.Machine
	staying    *clusterv1.Machine
	members    []*infrav1.VCDMachine // of the endpoint on an edge gateway
	lease      *coordinationv1.Lease // nil: none
	openError  error
}

func (s *state) management() []client.Object {
	objects := []client.Object{s.cluster, s.vcdCluster, s.leaving, s.staying}
	for _, m := range s.members {
		objects = append(objects, m)
	}
	return objects
}

// onEdgeGateway gives the cluster an endpoint on an edge gateway with the given machines as members.
func (s *state) onEdgeGateway(members ...string) {
	s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway
	s.lease = nil
	for _, name := range []string{leaving, staying} {
		m := &infrav1.VCDMachine{}
		m.Namespace = namespace
		m.Name = name
		m.UID = types.UID("uid-of-" + name)
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c1"}
		if slices.Contains(members, name) {
			m.Spec.RecordedState.EndpointMember = "192.0.2.7"
			m.Status.Initialization.Provisioned = ptr.To(true)
		}
		s.members = append(s.members, m)
	}
}

func newState() *state {
	cluster := &clusterv1.Cluster{}
	cluster.Namespace = namespace
	cluster.Name = "c1"
	cluster.UID = "uid-of-c1"
	cluster.Spec.InfrastructureRef.Name = "c1"
	cluster.Spec.InfrastructureRef.Kind = "VCDCluster"
	cluster.Spec.InfrastructureRef.APIGroup = infrav1.GroupVersion.Group
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	vcdCluster := &infrav1.VCDCluster{}
	vcdCluster.Namespace = namespace
	vcdCluster.Name = "c1"
	vcdCluster.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointKubeVIP
	vcdCluster.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       cluster.Name,
		UID:        cluster.UID,
	}}
	old := machine(leaving, start.Add(-time.Hour))
	old.DeletionTimestamp = ptr.To(metav1.NewTime(start))
	old.Finalizers = []string{clusterv1.MachineFinalizer}
	old.Annotations = map[string]string{infrav1.EndpointHookAnnotation: "", "kept": "true"}
	return &state{
		cluster:    cluster,
		vcdCluster: vcdCluster,
		leaving:    old,
		staying:    machine(staying, start.Add(-time.Minute)),
		lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "plndr-cp-lock"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To(leaving),
				LeaseDurationSeconds: ptr.To[int32](15),
				AcquireTime:          ptr.To(metav1.NewMicroTime(start.Add(-time.Hour))),
				RenewTime:            ptr.To(metav1.NewMicroTime(start.Add(-time.Second))),
				LeaseTransitions:     ptr.To[int32](1),
			},
		},
	}
}

func machine(name string, created time.Time) *clusterv1.Machine {
	m := &clusterv1.Machine{}
	m.Namespace = namespace
	m.Name = name
	m.CreationTimestamp = metav1.NewTime(created)
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c1", clusterv1.MachineControlPlaneLabel: ""}
	m.Spec.ClusterName = "c1"
	m.Spec.InfrastructureRef.Kind = "VCDMachine"
	m.Spec.InfrastructureRef.Name = name
	m.Spec.InfrastructureRef.APIGroup = infrav1.GroupVersion.Group
	m.Status.NodeRef.Name = name
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue}}
	return m
}

func (s *state) guest() []client.Object {
	if s.lease == nil {
		return nil
	}
	return []client.Object{s.lease}
}

// reconcile reconciles a Machine.
func (f *fixture) reconcile(name string) ctrl.Result {
	result, err := f.reconciler.Reconcile(f.ctx, f.machine(name))
	f.Expect(err).NotTo(HaveOccurred())
	return result
}

func (f *fixture) machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{}
	f.Expect(f.management.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)).To(Succeed())
	return m
}

func (f *fixture) lease() *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	f.Expect(f.guest.Get(f.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "plndr-cp-lock"}, l)).To(Succeed())
	return l
}

// renew renews the lease, as kube-vip of its holder does.
func (f *fixture) renew() {
	l := f.lease()
	l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(f.now))
	f.Expect(f.guest.Update(f.ctx, l)).To(Succeed())
}

// hooked reports whether a Machine has the hook.
func (f *fixture) hooked(name string) bool {
	_, found := f.machine(name).Annotations[infrav1.EndpointHookAnnotation]
	return found
}

func TestTheVirtualIPMovesBeforeTheNodeIsRemoved(t *testing.T) {
	f := newFixture(t)

	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically(">", 0))
	f.Expect(f.lease().Spec.HolderIdentity).To(HaveValue(Equal(staying)))
	f.Expect(f.lease().Spec.LeaseTransitions).To(HaveValue(BeEquivalentTo(2)))
	f.Expect(f.events).To(Receive(ContainSubstring("Moved the virtual IP from Node cp-old")))
	f.Expect(f.hooked(leaving)).To(BeTrue(), "the former holder may announce the address for some seconds")

	f.now = start.Add(12 * time.Second)
	f.renew()
	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically("~", time.Second, 100*time.Millisecond))
	f.Expect(f.hooked(leaving)).To(BeTrue())

	f.now = start.Add(14 * time.Second)
	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeZero())
	f.Expect(f.hooked(leaving)).To(BeFalse())
	f.Expect(f.machine(leaving).Annotations).To(HaveKeyWithValue("kept", "true"))
	f.Expect(f.events).NotTo(Receive())
}

func TestTheNodeIsRemovedOnlyAfterTheNewHolderRenewedTheLease(t *testing.T) {
	f := newFixture(t)
	f.reconcile(leaving)

	f.now = start.Add(20 * time.Second)
	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically(">", 0))
	f.Expect(f.hooked(leaving)).To(BeTrue())

	f.renew()
	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeZero())
	f.Expect(f.hooked(leaving)).To(BeFalse())
}

func TestAHandoverContinuesAfterARestartOfTheManager(t *testing.T) {
	f := newFixture(t)
	f.reconcile(leaving)
	f.reconciler = &handover.Reconciler{
		Client:   f.management,
		Recorder: f.reconciler.Recorder,
		Now:      f.reconciler.Now,
		Workload: f.reconciler.Workload,
	}
	f.now = start.Add(5 * time.Second)
	f.renew()

	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically(">", 0))
	f.Expect(f.lease().Spec.LeaseTransitions).To(HaveValue(BeEquivalentTo(2)), "moved once")
}

func TestTheDeletionIsDelayedForAMinuteAtMost(t *testing.T) {
	tests := []struct {
		name   string
		change func(*state)
	}{
		{
			"the workload cluster does not respond",
			func(s *state) { s.openError = errors.New("connection refused") },
		},
		{
			"the new holder never renews the lease",
			func(s *state) {
				s.lease.Spec.HolderIdentity = ptr.To(staying)
				s.lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(start))
				s.lease.Spec.RenewTime = s.lease.Spec.AcquireTime
			},
		},
		{
			"the clock of the new holder is an hour ahead",
			func(s *state) {
				s.lease.Spec.HolderIdentity = ptr.To(staying)
				s.lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(start.Add(time.Hour)))
			},
		},
		{
			"the VM stays a member of the endpoint on an edge gateway",
			func(s *state) { s.onEdgeGateway(leaving, staying) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.change)
			f.now = start.Add(59 * time.Second)
			f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically(">", 0))
			f.Expect(f.hooked(leaving)).To(BeTrue())

			f.now = start.Add(61 * time.Second)
			f.Expect(f.reconcile(leaving).RequeueAfter).To(BeZero())
			f.Expect(f.hooked(leaving)).To(BeFalse())
		})
	}
}

func TestTheDeletionContinuesIfNothingCanBeMoved(t *testing.T) {
	tests := []struct {
		name   string
		change func(*state)
	}{
		{"another node holds the lease", func(s *state) { s.lease.Spec.HolderIdentity = ptr.To(staying) }},
		{"there is no lease", func(s *state) { s.lease = nil }},
		{
			"the cluster is deleted",
			func(s *state) {
				s.cluster.DeletionTimestamp = ptr.To(metav1.NewTime(start))
				s.cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
			},
		},
		{
			"the control plane was never initialized",
			func(s *state) {
				s.cluster.Status.Initialization.ControlPlaneInitialized = nil
			},
		},
		{"the machine never became a node", func(s *state) { s.leaving.Status.NodeRef.Name = "" }},
		{"the only other node is not ready", func(s *state) { s.staying.Status.Conditions = nil }},
		{
			"the only other machine is a worker",
			func(s *state) {
				delete(s.staying.Labels, clusterv1.MachineControlPlaneLabel)
			},
		},
		{
			"the only other machine is being deleted",
			func(s *state) {
				s.staying.DeletionTimestamp = ptr.To(metav1.NewTime(start))
				s.staying.Finalizers = []string{clusterv1.MachineFinalizer}
			},
		},
		{"the VCDCluster no longer exists", func(s *state) { s.vcdCluster.Name = "other" }},
		{"the Cluster no longer exists", func(s *state) { s.cluster.Name = "other" }},
		{
			"the endpoint is no longer that of kube-vip",
			func(s *state) {
				s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal
				s.lease = nil
			},
		},
		{"the VM is not a member of the endpoint on an edge gateway", func(s *state) { s.onEdgeGateway(staying) }},
		{"the VM is the only member of the endpoint on an edge gateway", func(s *state) { s.onEdgeGateway(leaving) }},
		{
			"the user keeps load balancers",
			func(s *state) {
				s.onEdgeGateway(leaving, staying)
				s.vcdCluster.Annotations = map[string]string{infrav1.KeepLoadBalancersAnnotation: "true"}
			},
		},
		{
			"the VCDMachine no longer exists",
			func(s *state) {
				s.onEdgeGateway(leaving, staying)
				s.members = s.members[1:]
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.change)
			f.Expect(f.reconcile(leaving).RequeueAfter).To(BeZero())
			f.Expect(f.hooked(leaving)).To(BeFalse())
			f.Expect(f.events).NotTo(Receive())
		})
	}
}

func TestTheNodeIsRemovedAfterItsVMLeftTheEdgeGateway(t *testing.T) {
	f := newFixture(t, func(s *state) { s.onEdgeGateway(leaving, staying) })

	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeNumerically(">", 0))
	f.Expect(f.hooked(leaving)).To(BeTrue())

	m := &infrav1.VCDMachine{}
	f.Expect(f.management.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: leaving}, m)).To(Succeed())
	m.Spec.RecordedState.EndpointMember = ""
	f.Expect(f.management.Update(f.ctx, m)).To(Succeed())
	f.Expect(f.reconcile(leaving).RequeueAfter).To(BeZero())
	f.Expect(f.hooked(leaving)).To(BeFalse())
}

func TestTheYoungestReadyNodeGetsTheVirtualIP(t *testing.T) {
	f := newFixture(t)
	youngest := machine("cp-a-youngest", start.Add(-time.Second))
	unready := machine("cp-z-unready", start)
	unready.Status.Conditions[0].Status = metav1.ConditionFalse
	other := machine("cp-other-cluster", start)
	other.Labels[clusterv1.ClusterNameLabel] = "c2"
	for _, m := range []*clusterv1.Machine{youngest, unready, other} {
		f.Expect(f.management.Create(f.ctx, m)).To(Succeed())
	}

	f.reconcile(leaving)
	f.Expect(f.lease().Spec.HolderIdentity).To(HaveValue(Equal("cp-a-youngest")))
}

func TestClusterAPIKnowsTheHook(t *testing.T) {
	NewWithT(t).Expect(infrav1.EndpointHookAnnotation).To(HavePrefix(clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/"))
}

func TestOnlyControlPlanesThatTheEndpointUsesGetTheHook(t *testing.T) {
	tests := []struct {
		name   string
		change func(*state)
		hooked bool
	}{
		{name: "kube-vip announces the endpoint", change: func(*state) {}, hooked: true},
		{
			name: "the endpoint is on an edge gateway",
			change: func(s *state) {
				s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway
			},
			hooked: true,
		},
		{
			name: "the endpoint is external",
			change: func(s *state) {
				s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal
			},
		},
		{name: "the cluster is paused", change: func(s *state) { s.cluster.Spec.Paused = ptr.To(true) }},
		{
			name: "the machine is paused",
			change: func(s *state) {
				s.staying.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			},
		},
		{name: "the machine is a worker", change: func(s *state) { delete(s.staying.Labels, clusterv1.MachineControlPlaneLabel) }},
		{name: "another provider has the machine", change: func(s *state) { s.staying.Spec.InfrastructureRef.Kind = "DockerMachine" }},
		{
			name: "another controller manages the cluster",
			change: func(s *state) {
				s.vcdCluster.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.change)
			f.reconcile(staying)
			f.Expect(f.hooked(staying)).To(Equal(tt.hooked))
		})
	}
}

func TestAHandoverWaitsWhileTheClusterIsPaused(t *testing.T) {
	f := newFixture(t, func(s *state) { s.cluster.Spec.Paused = ptr.To(true) })
	f.Expect(f.reconcile(leaving).RequeueAfter).To(Equal(time.Minute))
	f.Expect(f.hooked(leaving)).To(BeTrue())
	f.Expect(f.lease().Spec.HolderIdentity).To(HaveValue(Equal(leaving)))
}

func TestAnotherManagersClustersAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.reconciler.WatchFilterValue = "other"
	f.reconcile(staying)
	f.reconcile(leaving)
	f.Expect(f.hooked(staying)).To(BeFalse())
	f.Expect(f.hooked(leaving)).To(BeTrue())
	f.Expect(f.lease().Spec.HolderIdentity).To(HaveValue(Equal(leaving)))
}

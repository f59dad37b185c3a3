package controllers

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

const (
	testNamespace = "team-a"
	testCluster   = "c1"
	testVIP       = "192.168.100.200"
	canary        = "canary-bootstrap-secret"
)

// A world is a simulated VCD, a fake API server, and the reconcilers between them.
type world struct {
	*WithT

	ctx    context.Context //nolint:containedctx // that of the test
	sim    *vcdsim.Simulator
	client client.Client
	events chan string
	clock  atomic.Int64  // how far the clock of sessions is ahead
	next   time.Duration // when the machine of the last passAt wants to be looked at again

	workload client.Client // the API server of the workload cluster; nil: it does not answer

	identity *VCDIdentityReconciler
	cluster  *VCDClusterReconciler
	machine  *VCDMachineReconciler
	template *VCDMachineTemplateReconciler
}

// newWorld makes a world with an identity, a Cluster, and what more is given, in which nothing takes time.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldOn(t, vcdsim.Instant, objects...)
}

// newWorldOn makes a world with the latencies of a profile.
func newWorldOn(t *testing.T, profile vcdsim.Profile, objects ...client.Object) *world {
	t.Helper()
	return newWorldWith(t, vcdsim.Config{Profile: profile}, objects...)
}

// hundredfold is how fast the clock of VCD goes where tasks take time, but nobody wants to wait for them.
const hundredfold = 100

// newWorldThatStandsStill makes a world in which tasks take as long as real ones, by a clock that stands until it is moved.
func newWorldThatStandsStill(t *testing.T, objects ...client.Object) (*world, *vcdsim.SimClock) {
	t.Helper()
	clock := vcdsim.NewManualClock(time.Now())
	return newWorldWith(t, vcdsim.Config{Profile: vcdsim.Recorded, Clock: clock}, objects...), clock
}

// newWorldWith makes a world with a simulator of a configuration. Nothing in it is shared with others, so the test runs beside
// those of other worlds.
func newWorldWith(t *testing.T, config vcdsim.Config, objects ...client.Object) *world {
	t.Helper()
	t.Parallel()
	w := &world{WithT: NewWithT(t), ctx: t.Context()}
	observe, err := record.To(os.Getenv("VCDSIM_RECORD"))
	w.Expect(err).NotTo(HaveOccurred())
	if config.Model.Orgs == nil {
		config.Model = vcdsim.K8sTenant()
	}
	config.Guest, config.Observe = pretendGuest{}, observe
	sim, err := vcdsim.New(config)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	w.sim = sim
	w.client = fakeClient(append([]client.Object{testIdentity(sim.URL()), testSecret(sim), testCAPICluster(), testVCDCluster(sim)}, objects...)...)
	recorder := events.NewFakeRecorder(1000)
	w.events = recorder.Events
	w.restart(t, recorder)
	return w
}

// restart makes new reconcilers, which remember nothing.
func (w *world) restart(t *testing.T, recorder events.EventRecorder) {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 5 * time.Millisecond, LookupTTL: time.Millisecond, Clock: aheadClock{&w.clock}})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	identities := Identities{Client: w.client, Live: w.client, Namespace: "capvcd-system", Accounts: &Accounts{}}
	sessions := SessionsOf(pool)
	w.identity = &VCDIdentityReconciler{Client: w.client, Identities: identities, Logout: pool.Logout, Recorder: recorder}
	drivers := NewDrivers(func(context.Context, client.ObjectKey) (client.Reader, error) {
		if w.workload == nil {
			return nil, errors.New("no route to host")
		}
		return w.workload, nil
	})
	w.cluster = &VCDClusterReconciler{Drivers: drivers, Client: w.client, Live: w.client, Identities: identities, Sessions: sessions, Recorder: recorder}
	w.template = &VCDMachineTemplateReconciler{Client: w.client, Identities: identities, Sessions: sessions, Recorder: recorder}
	w.machine = &VCDMachineReconciler{Drivers: drivers, Gather: 1, Client: w.client, Live: w.client, Identities: identities, Sessions: sessions, Recorder: recorder}
}

// aheadClock is the real one, some nanoseconds ahead.
type aheadClock struct{ by *atomic.Int64 }

func (c aheadClock) Now() time.Time                         { return time.Now().Add(time.Duration(c.by.Load())) }
func (c aheadClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// admin returns a session of another user of the organisation.
func (w *world) admin(t *testing.T) *vcd.Session {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 5 * time.Millisecond})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	s, err := pool.Session(w.ctx, vcd.Config{
		Site: w.sim.URL(), Org: "acme", CABundle: w.sim.CA(), Credentials: vcd.Credentials{Username: "admin", Password: "password"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	return s
}

// await waits for a task in VCD to end well.
func (w *world) await(s *vcd.Session, task vcd.Task) {
	s.Tasks.Follow("test", task, nil)
	w.Eventually(func() vcd.TaskState {
		t, _ := s.Tasks.Task("test")
		return t.State
	}, patience, "5ms").Should(Equal(vcd.TaskSucceeded))
}

// pretendGuest comes up with the addresses that VCD offers it, and reads its bootstrap data.
type pretendGuest struct{}

func (pretendGuest) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	report := vcdsim.GuestReport{Addresses: map[string]string{}, Hostname: vm.Name, ExtraConfig: map[string]string{"guestinfo.userdata": "---"}}
	for _, nic := range vm.NICs {
		if nic.Address.IsValid() {
			report.Addresses[nic.MAC] = nic.Address.String()
		}
	}
	return report, nil
}
func (pretendGuest) PowerOff(context.Context, string) {}
func (pretendGuest) Delete(context.Context, string)   {}

// fakeClient knows only the kinds that are used: it looks through all of its scheme at each write.
func fakeClient(objects ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&infrav1.VCDCluster{}, &infrav1.VCDMachine{}, &infrav1.VCDMachineTemplate{}, &infrav1.VCDIdentity{}, &infrav1.VCDClusterIdentity{}, &ipamv1.IPAddressClaim{}).Build()
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: apitypes.UID("uid-of-" + name), Labels: ofCluster(testCluster)}
}

func testIdentity(site string) *infrav1.VCDIdentity {
	i := &infrav1.VCDIdentity{ObjectMeta: meta("tenant")}
	i.Spec.Site, i.Spec.SecretRef.Name = site, "tenant-credentials"
	return i
}

func testSecret(sim *vcdsim.Simulator) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta("tenant-credentials"), Data: map[string][]byte{
		"username": []byte("capvcd"), "password": []byte("password"), "ca.crt": sim.CA(),
	}}
}

func testCAPICluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: meta(testCluster)}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "VCDCluster", Name: "vc1"}
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return c
}

func testVCDCluster(sim *vcdsim.Simulator) *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{ObjectMeta: meta("vc1")}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: testCluster, UID: "uid-of-" + testCluster}}
	c.Spec = infrav1.VCDClusterSpec{
		Site: sim.URL(), Org: "acme", OVDC: "acme-vdc", OVDCNetwork: "nodes",
		IdentityRef: infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
		Endpoint:    infrav1.EndpointSpec{Type: infrav1.EndpointKubeVIP, KubeVIP: &infrav1.KubeVIPEndpoint{Address: testVIP}},
	}
	return c
}

// testMachine returns the objects of a machine that is ready to be created.
func testMachine(name string, mods ...func(*infrav1.VCDMachine)) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: meta(name)}
	m.UID = apitypes.UID("uid-of-machine-" + name)
	m.Spec.Bootstrap.DataSecretName = ptr.To(name + "-bootstrap")
	v := &infrav1.VCDMachine{ObjectMeta: meta(name)}
	v.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID}}
	v.Spec = infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "ubuntu-2404-kube-v1.36.3", SizingPolicy: "small"}
	for _, mod := range mods {
		mod(v)
	}
	secret := &corev1.Secret{ObjectMeta: meta(name + "-bootstrap"), Data: map[string][]byte{
		"value": []byte("## template: jinja\n#cloud-config\n# " + canary + "\n"), "format": []byte("cloud-config"),
	}}
	return []client.Object{m, v, secret}
}

func (w *world) vcdCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, c)).To(Succeed())
	return c
}

func (w *world) vcdMachine(name string) *infrav1.VCDMachine {
	m := &infrav1.VCDMachine{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: name}, m)).To(Succeed())
	return m
}

func (w *world) reconcileCluster() (ctrl.Result, error) {
	return reconcile.AsReconciler(w.client, w.cluster).Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: testNamespace, Name: "vc1"}})
}

func (w *world) reconcileMachine(name string) (ctrl.Result, error) {
	return reconcile.AsReconciler(w.client, w.machine).Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: testNamespace, Name: name}})
}

// eventuallyCluster reconciles until the condition of the VCDCluster has the reason.
func (w *world) eventuallyCluster(condition, reason string) {
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.vcdCluster(), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, patience, "5ms").Should(Succeed())
}

// eventuallyMachine reconciles until the condition of the VCDMachine has the reason.
func (w *world) eventuallyMachine(name, condition, reason string) {
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.vcdMachine(name), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, patience, "5ms").Should(Succeed())
}

// deleteMachine deletes the VCDMachine and reconciles until it is gone.
func (w *world) deleteMachine(name string) {
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine(name))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		m := &infrav1.VCDMachine{}
		err = w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: name}, m)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", conditions.Get(m, clusterv1.ReadyCondition))
	}, patience, "5ms").Should(Succeed())
}

// deleteCluster deletes the VCDCluster and reconciles until it is gone.
func (w *world) deleteCluster() {
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := &infrav1.VCDCluster{}
		err = w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, c)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", conditions.Get(c, clusterv1.ReadyCondition))
	}, patience, "5ms").Should(Succeed())
}

// writes counts the requests to VCD that change something, logins apart.
func (w *world) writes() int {
	n := 0
	for _, r := range w.sim.Requests() {
		if r.Changes() {
			n++
		}
	}
	return n
}

// expectSettled makes sure that another pass changes nothing, neither here nor in VCD.
func (w *world) expectSettled(name string) {
	before, writes := w.vcdMachine(name).ResourceVersion, w.writes()
	for range 2 {
		_, err := w.reconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.writes()).To(Equal(writes))
	w.Expect(w.vcdMachine(name).ResourceVersion).To(Equal(before))
}

// eventTexts returns the events so far.
func (w *world) eventTexts() []string {
	var texts []string
	for {
		select {
		case e := <-w.events:
			texts = append(texts, e)
		default:
			return texts
		}
	}
}

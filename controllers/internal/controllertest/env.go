// SPDX-License-Identifier: Apache-2.0

// Package controllertest provides the environment for tests of reconcilers: a simulated VCD, a fake API server, and the
// reconcilers between them.
package controllertest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/identity"
	rules "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/secretcache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machinetemplate"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/zone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// Patience is how long tests wait for a result.
const Patience = testtime.Patience

// Names of the objects of an environment, and values that tests search for.
const (
	Namespace   = "team-a"
	ClusterName = "c1"
	VIP         = "192.168.100.200"
	Canary      = "canary-bootstrap-secret"
)

// An Env is a simulated VCD, a fake API server, and the reconcilers between them.
type Env struct {
	*WithT

	Ctx    context.Context //nolint:containedctx // the context of the test
	Sim    *vcdsim.Simulator
	Client client.Client
	Events chan string
	Clock  atomic.Int64  // how far the clock of sessions is ahead, in nanoseconds
	Next   time.Duration // requeue delay of the machine in the last passAt

	LookupTTL time.Duration // cache time of lookups in sessions, from the next Restart; 0 is almost none
	Between   func()        // called before each pass of a machine, if set: simulates other controllers

	Workload client.Client // API server of the workload cluster; nil: it does not respond

	Gateway   string       // edge gateway of the cluster; set by NewBalancedOn
	balancing *edge.Driver // creates load balancers as a cloud controller manager does; set by NewBalancedOn

	// Dial connects reconcilers to VCD after a Restart; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Identity *identity.Reconciler
	Cluster  *cluster.Reconciler
	Machine  *machine.Reconciler
	Template *machinetemplate.Reconciler
	Affinity *affinity.Reconciler
	Zone     *zone.Reconciler
	Domain   *zone.DomainReconciler
}

// New returns an environment with an identity, a Cluster and further objects, in which nothing takes time.
func New(t *testing.T, objects ...client.Object) *Env {
	t.Helper()
	return NewOn(t, vcdsim.Instant, objects...)
}

// NewOn returns an environment with the latencies of a profile.
func NewOn(t *testing.T, profile vcdsim.Profile, objects ...client.Object) *Env {
	t.Helper()
	return NewWith(t, vcdsim.Config{Profile: profile}, objects...)
}

// Hundredfold is the speed of VCD's clock if tasks take time, so that tests do not wait long.
const Hundredfold = 100

// NewStandingStill returns an environment in which tasks take as long as in reality. The test moves its clock.
func NewStandingStill(t *testing.T, objects ...client.Object) (*Env, *vcdsim.SimClock) {
	t.Helper()
	clock := vcdsim.NewManualClock(time.Now())
	return NewWith(t, vcdsim.Config{Profile: vcdsim.Recorded, Clock: clock}, objects...), clock
}

// NewWith returns an environment with a configured simulator. The environment shares nothing with others, so that its
// test runs in parallel.
func NewWith(t *testing.T, config vcdsim.Config, objects ...client.Object) *Env {
	t.Helper()
	t.Parallel()
	w := &Env{WithT: NewWithT(t), Ctx: t.Context()}
	observe, err := record.To(os.Getenv("VCDSIM_RECORD"))
	w.Expect(err).NotTo(HaveOccurred())
	if config.Model.Orgs == nil {
		config.Model = vcdsim.K8sTenant()
	}
	config.Guest = PretendGuest{}
	config.Observe = observe
	sim, err := vcdsim.New(config)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	w.Sim = sim
	w.Client = NewClient(append([]client.Object{
		NewIdentity(sim.URL()),
		NewSecret(sim),
		NewCAPICluster(),
		NewVCDCluster(sim),
	}, objects...)...)
	recorder := events.NewFakeRecorder(1000)
	w.Events = recorder.Events
	w.Restart(t, recorder)
	return w
}

// Restart creates new reconcilers without any state in memory.
func (w *Env) Restart(t *testing.T, recorder events.EventRecorder) { //nolint:funlen // A table with one field per line.
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{
		TaskPoll:          5 * time.Millisecond,
		LookupTTL:         max(w.LookupTTL, time.Millisecond),
		RequestsPerSecond: 1000,
		Burst:             1000,
		Clock:             aheadClock{&w.Clock},
		Dial:              w.Dial,
	})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	identities := identities.Resolver{
		Client:    w.Client,
		Live:      w.Client,
		Namespace: "capvcd-system",
		Accounts:  &tokens.Accounts{},
		Secrets:   secretcache.New(w.Client, w.Client),
	}
	sessions := session.Of(pool)
	w.Identity = &identity.Reconciler{
		Client:     w.Client,
		Identities: identities,
		Sessions:   session.Of(pool),
		Logout:     pool.Logout,
		Recorder:   recorder,
	}
	drivers := vapp.NewDrivers(func(context.Context, client.ObjectKey) (client.Client, error) {
		if w.Workload == nil {
			return nil, errors.New("no route to host")
		}
		return w.Workload, nil
	})
	endpoints := &edgeendpoint.Endpoints{}
	w.Cluster = &cluster.Reconciler{
		Endpoints:  endpoints,
		Drivers:    drivers,
		Client:     w.Client,
		Live:       w.Client,
		Secrets:    secretcache.New(w.Client, w.Client),
		Identities: identities,
		Sessions:   sessions,
		Recorder:   recorder,
	}
	settled := &rules.Settled{}
	w.Affinity = &affinity.Reconciler{
		Client:     w.Client,
		Identities: identities,
		Sessions:   sessions,
		Recorder:   recorder,
		Settled:    settled,
		Gather:     1,
	}
	w.Template = &machinetemplate.Reconciler{
		Client:     w.Client,
		Identities: identities,
		Sessions:   sessions,
		Recorder:   recorder,
	}
	w.Zone = &zone.Reconciler{Client: w.Client, Identities: identities, Sessions: sessions, Recorder: recorder}
	w.Domain = &zone.DomainReconciler{Client: w.Client, Identities: identities, Sessions: sessions, Recorder: recorder}
	w.Machine = &machine.Reconciler{
		Endpoints:  endpoints,
		Apart:      settled,
		Drivers:    drivers,
		Gather:     1,
		Client:     w.Client,
		Live:       w.Client,
		Identities: identities,
		Sessions:   sessions,
		Recorder:   recorder,
	}
}

// aheadClock is the real clock, some nanoseconds ahead.
type aheadClock struct{ by *atomic.Int64 }

func (c aheadClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (c aheadClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Admin returns a session of an administrator of the organization.
func (w *Env) Admin(t *testing.T) *vcd.Session {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 5 * time.Millisecond})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	s, err := pool.Session(w.Ctx, vcd.Config{
		Site:        w.Sim.URL(),
		Org:         "acme",
		CABundle:    w.Sim.CA(),
		Credentials: vcd.Credentials{Username: "admin", Password: "password"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	return s
}

// Await waits for a task in VCD to succeed.
func (w *Env) Await(s *vcd.Session, task vcd.Task) {
	s.Tasks.Follow("test", task, nil)
	w.Eventually(func() vcd.TaskState {
		t, _ := s.Tasks.Task("test")
		return t.State
	}, Patience, "5ms").Should(Equal(vcd.TaskSucceeded))
}

// PretendGuest is a guest that uses the addresses that VCD offers, and reads its bootstrap data.
type PretendGuest struct{}

// PowerOn reports the addresses that VCD offers, by MAC address.
func (PretendGuest) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	report := vcdsim.GuestReport{
		Addresses:   map[string]string{},
		Hostname:    vm.Name,
		ExtraConfig: map[string]string{"guestinfo.userdata": "---"},
	}
	for _, nic := range vm.NICs {
		if nic.Address.IsValid() {
			report.Addresses[nic.MAC] = nic.Address.String()
		}
	}
	return report, nil
}

// PowerOff does nothing.
func (PretendGuest) PowerOff(context.Context, string) {}

// Delete does nothing.
func (PretendGuest) Delete(context.Context, string) {}

// NewClient returns a fake client. Its scheme only contains the kinds that are used, because each write searches all of
// it.
func NewClient(objects ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme,
		ipamv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	pools := []schema.GroupVersion{
		{Group: "ipam.example.com", Version: "v1"},
		{Group: "ipam.cluster.x-k8s.io", Version: "v1alpha2"},
	}
	mapper := meta.NewDefaultRESTMapper(pools)
	for i, kind := range []string{"ExamplePool", "InClusterIPPool"} {
		scheme.AddKnownTypeWithName(pools[i].WithKind(kind), &unstructured.Unstructured{})
		mapper.Add(pools[i].WithKind(kind), meta.RESTScopeNamespace)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&infrav1.VCDCluster{}, &infrav1.VCDMachine{}, &infrav1.VCDMachineTemplate{},
			&infrav1.VCDIdentity{}, &infrav1.VCDClusterIdentity{}, &infrav1.VCDFailureDomain{},
			&infrav1.VCDDeploymentZone{}, &infrav1.VCDRemediation{}, &clusterv1.Machine{}, &ipamv1.IPAddressClaim{})
	return WithIndexes(builder).Build()
}

// WithIndexes adds the indexes of the manager's cache to a fake client.
func WithIndexes(builder *fake.ClientBuilder) *fake.ClientBuilder {
	for _, i := range index.All() {
		builder.WithIndex(i.Object, i.Field, i.Values)
	}
	return builder
}

// Meta returns the metadata of an object of the cluster. Its UID is derived from its name.
func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: Namespace,
		Name:      name,
		UID:       apitypes.UID("uid-of-" + name),
		Labels:    capicluster.Labels(ClusterName),
	}
}

// NewIdentity returns the identity of the cluster for a site, with the credentials of [NewSecret].
func NewIdentity(site string) *infrav1.VCDIdentity {
	i := &infrav1.VCDIdentity{ObjectMeta: Meta("tenant")}
	i.Spec.Site = site
	i.Spec.SecretRef.Name = "tenant-credentials"
	return i
}

// NewSecret returns a Secret with the credentials of a user of the simulator.
func NewSecret(sim *vcdsim.Simulator) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: Meta("tenant-credentials"),
		Data: map[string][]byte{
			"username": []byte("capvcd"),
			"password": []byte("password"),
			"ca.crt":   sim.CA(),
		},
	}
}

// NewCAPICluster returns the Cluster that owns the VCDCluster. Its infrastructure is provisioned.
func NewCAPICluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: Meta(ClusterName)}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "VCDCluster",
		Name:     "vc1",
	}
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return c
}

// NewVCDCluster returns a VCDCluster in the first VDC of the simulator. kube-vip provides its endpoint.
func NewVCDCluster(sim *vcdsim.Simulator) *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{ObjectMeta: Meta("vc1")}
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       ClusterName,
		UID:        "uid-of-" + ClusterName,
	}}
	c.Spec = infrav1.VCDClusterSpec{
		Site:                 sim.URL(),
		Org:                  "acme",
		OVDC:                 "acme-vdc",
		OVDCNetwork:          "nodes",
		IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: VIP},
		ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
			Type:    infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{},
		},
	}
	return c
}

// NewMachine returns the objects of a machine that is ready to be created.
func NewMachine(name string, mods ...func(*infrav1.VCDMachine)) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: Meta(name)}
	m.UID = apitypes.UID("uid-of-machine-" + name)
	m.Spec.Bootstrap.DataSecretName = ptr.To(name + "-bootstrap")
	v := &infrav1.VCDMachine{ObjectMeta: Meta(name)}
	v.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Machine",
		Name:       name,
		UID:        m.UID,
	}}
	v.Spec = infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "ubuntu-2404-kube-v1.36.3", SizingPolicy: "small"}
	for _, mod := range mods {
		mod(v)
	}
	secret := &corev1.Secret{
		ObjectMeta: Meta(name + "-bootstrap"),
		Data: map[string][]byte{
			"value":  []byte("## template: jinja\n#cloud-config\n# " + Canary + "\n"),
			"format": []byte("cloud-config"),
		},
	}
	return []client.Object{m, v, secret}
}

// VCDCluster reads the VCDCluster from the API server. The test fails if it does not exist.
func (w *Env) VCDCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: "vc1"}, c)).To(Succeed())
	return c
}

// VCDMachine reads a VCDMachine from the API server. The test fails if it does not exist.
func (w *Env) VCDMachine(name string) *infrav1.VCDMachine {
	m := &infrav1.VCDMachine{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: name}, m)).To(Succeed())
	return m
}

// ReconcileCluster reconciles the VCDCluster once.
func (w *Env) ReconcileCluster() (ctrl.Result, error) {
	return reconcile.AsReconciler(w.Client, w.Cluster).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: "vc1"}})
}

// ReconcileMachine reconciles a VCDMachine once.
func (w *Env) ReconcileMachine(name string) (ctrl.Result, error) {
	if w.Between != nil {
		w.Between()
	}
	return reconcile.AsReconciler(w.Client, w.Machine).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: name}})
}

// EventuallyCluster reconciles until the condition of the VCDCluster has the reason.
func (w *Env) EventuallyCluster(condition, reason string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.VCDCluster(), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, Patience, "5ms").Should(Succeed())
}

// EventuallyMachine reconciles until the condition of the VCDMachine has the reason.
func (w *Env) EventuallyMachine(name, condition, reason string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.VCDMachine(name), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, Patience, "5ms").Should(Succeed())
}

// DeleteMachine deletes the VCDMachine and reconciles until it is gone.
func (w *Env) DeleteMachine(name string) {
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine(name))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		m := &infrav1.VCDMachine{}
		err = w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: name}, m)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", conditions.Get(m, clusterv1.ReadyCondition))
	}, Patience, "5ms").Should(Succeed())
}

// DeleteCluster deletes the VCDCluster and reconciles until it is gone.
func (w *Env) DeleteCluster() {
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := &infrav1.VCDCluster{}
		err = w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: "vc1"}, c)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", conditions.Get(c, clusterv1.ReadyCondition))
	}, Patience, "5ms").Should(Succeed())
}

// Writes counts the requests that changed VCD, without logins.
func (w *Env) Writes() int {
	n := 0
	for _, r := range w.Sim.Requests() {
		if r.Changes() {
			n++
		}
	}
	return n
}

// ExpectSettled checks that another pass of a machine changes neither the API server nor VCD.
func (w *Env) ExpectSettled(name string) {
	before := w.VCDMachine(name).ResourceVersion
	writes := w.Writes()
	for range 2 {
		_, err := w.ReconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.Writes()).To(Equal(writes))
	w.Expect(w.VCDMachine(name).ResourceVersion).To(Equal(before))
}

// EventTexts returns and clears the recorded events.
func (w *Env) EventTexts() []string {
	var texts []string
	for {
		select {
		case e := <-w.Events:
			texts = append(texts, e)
		default:
			return texts
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	namespace  = "team-a"
	resync     = 10 * time.Minute // the manager's --sync-period
	guestBoots = 45 * time.Second // time from power-on to Node
)

// A bubble is a simulated VCD, an in-memory API server, and the reconcilers of the manager in a testing/synctest bubble
// with a fake clock.
type bubble struct {
	*WithT
	*vcdsim.Simulator

	t      *testing.T
	ctx    context.Context //nolint:containedctx // that of the test
	client client.Client   // used by users and Cluster API
}

// inBubble runs a test in a bubble. change may be nil.
func inBubble(t *testing.T, change func(*vcdsim.Config), test func(*bubble)) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		options := vcdsim.Config{
			Model:    bigTenant(),
			Guest:    fakeGuest{},
			Profile:  vcdsim.Recorded,
			Listener: network,
			Seed:     1,
		}
		if change != nil {
			change(&options)
		}
		b := &bubble{WithT: NewWithT(t), t: t}
		sim, err := vcdsim.New(options)
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(sim.Start()).To(Succeed())
		b.Simulator = sim
		api := newAPIServer()
		b.client = api
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // The test's context is canceled before cleanups.
		b.ctx = ctx
		pool := vcd.NewPool(vcd.PoolOptions{Dial: network.Dial})
		ended := b.startManager(api, pool)
		t.Cleanup(func() {
			synctest.Wait() // until queues are empty
			cancel()
			for what, err := range map[string]error{
				"stopping the manager":   <-ended,
				"closing sessions":       pool.Close(context.WithoutCancel(ctx)),
				"stopping the simulator": sim.Close(),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
		b.identity("tenant")
		test(b)
		b.Expect(sim.Unhandled()).To(BeEmpty(), "requests that the simulator does not support")
	})
}

// startManager runs the reconcilers that main runs, without webhooks, and a fake of Cluster API's core.
func (b *bubble) startManager(api *apiServer, pool *vcd.Pool) <-chan error {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://in-memory"}, ctrl.Options{
		Scheme:         api.scheme,
		MapperProvider: api.newMapper,
		NewCache:       api.newCache,
		NewClient:      api.newClient,
		Cache:          cache.Options{SyncPeriod: ptr.To(resync)},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true), CacheSyncTimeout: time.Minute},
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Logger:         logr.Discard(),
	})
	b.Expect(err).NotTo(HaveOccurred())
	r := controllers.New(controllers.Options{
		Client:    mgr.GetClient(),
		Live:      api,
		Metadata:  mgr.GetCache(),
		Recorder:  &events.FakeRecorder{},
		Pool:      pool,
		Namespace: "capvcd-system",
	})
	b.Expect(errors.Join(
		controllers.RegisterIndexes(b.ctx, mgr.GetFieldIndexer()),
		r.Identity.SetupWithManager(b.ctx, mgr, controllerOptions(b.ctx, 2)),
		r.Cluster.SetupWithManager(b.ctx, mgr, controllerOptions(b.ctx, 10)),
		r.Machine.SetupWithManager(b.ctx, mgr, controllerOptions(b.ctx, 20)),
		r.DeploymentZone.SetupWithManager(b.ctx, mgr, controllerOptions(b.ctx, 2)),
		r.FailureDomain.SetupWithManager(b.ctx, mgr, controllerOptions(b.ctx, 2)),
		core(mgr, api, controllerOptions(b.ctx, 1)),
	)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(b.ctx) }()
	b.Expect(mgr.GetCache().WaitForCacheSync(b.ctx)).To(BeTrue())
	return ended
}

// bigTenant returns a tenant with addresses for many machines.
func bigTenant() vcdsim.Model {
	model := vcdsim.K8sTenant()
	nodes := &model.Orgs[1].VDCs[0].Networks[0]
	nodes.Gateway = netip.MustParsePrefix("10.0.0.1/16")
	nodes.StaticPool = []vcdsim.Range{{From: netip.MustParseAddr("10.0.1.0"), To: netip.MustParseAddr("10.0.99.255")}}
	nodes.DHCPPool = nil
	return model
}

// A fakeGuest uses the addresses that VCD assigns, and marks its bootstrap data as read.
type fakeGuest struct{}

// PowerOn implements vcdsim.Guest.
func (fakeGuest) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
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

// PowerOff implements vcdsim.Guest.
func (fakeGuest) PowerOff(context.Context, string) {}

// Delete implements vcdsim.Guest.
func (fakeGuest) Delete(context.Context, string) {}

func (b *bubble) create(objects ...client.Object) {
	b.t.Helper()
	for _, obj := range objects {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(namespace)
		}
		obj.SetUID(types.UID(fmt.Sprintf("%T/%s/%s", obj, obj.GetNamespace(), obj.GetName())))
		b.Expect(b.client.Create(b.ctx, obj)).To(Succeed())
		synctest.Wait() // A watch of the fake buffers only a hundred events.
	}
}

// identity creates an identity for the user of the simulated tenant.
func (b *bubble) identity(name string) {
	b.t.Helper()
	b.create(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-credentials"},
			Data: map[string][]byte{
				"username": []byte("capvcd"),
				"password": []byte("password"),
				"ca.crt":   b.CA(),
			},
		},
		&infrav1.VCDIdentity{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: infrav1.VCDIdentitySpec{
				Site:      b.URL(),
				SecretRef: infrav1.LocalSecretReference{Name: name + "-credentials"},
			},
		},
	)
}

// cluster creates cluster n with a number of machines.
func (b *bubble) cluster(n, machines int, mods ...func(*infrav1.VCDCluster)) {
	b.t.Helper()
	name := fmt.Sprintf("c%d", n)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "VCDCluster",
		Name:     name,
	}
	b.create(cluster)
	c := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{clusterv1.ClusterNameLabel: name},
	}}
	c.OwnerReferences = owner(cluster, "Cluster")
	c.Spec = infrav1.VCDClusterSpec{
		Site:                 b.URL(),
		Org:                  "acme",
		OVDC:                 "acme-vdc",
		OVDCNetwork:          "nodes",
		IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: fmt.Sprintf("10.0.200.%d", n)},
		ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
			Type:    infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{},
		},
	}
	for _, mod := range mods {
		mod(c)
	}
	b.create(c)
	for i := range machines {
		b.machine(name, fmt.Sprintf("%s-m%d", name, i))
	}
}

// machine creates a machine whose bootstrap data exists.
func (b *bubble) machine(cluster, name string, mods ...func(*clusterv1.Machine)) {
	b.t.Helper()
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}}
	m := &clusterv1.Machine{ObjectMeta: meta}
	m.Spec.ClusterName = cluster
	m.Spec.Bootstrap.DataSecretName = ptr.To(name + "-bootstrap")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "VCDMachine",
		Name:     name,
	}
	for _, mod := range mods {
		mod(m)
	}
	secret := &corev1.Secret{
		ObjectMeta: *meta.DeepCopy(),
		Data:       map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")},
	}
	secret.Name = name + "-bootstrap"
	b.create(m, secret)
	v := &infrav1.VCDMachine{ObjectMeta: *meta.DeepCopy()}
	v.OwnerReferences = owner(m, "Machine")
	v.Spec = infrav1.VCDMachineSpec{Template: "ubuntu-2404-kube-v1.36.3", SizingPolicy: "small"}
	if m.Spec.FailureDomain == "" { // otherwise the zone defines the catalog
		v.Spec.Catalog = "kubernetes"
	}
	b.create(v)
}

func owner(obj client.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       kind,
		Name:       obj.GetName(),
		UID:        obj.GetUID(),
	}}
}

// ready returns the number of ready machines, and the reason why one of the others is not ready.
func (b *bubble) ready() (int, string) {
	list := &infrav1.VCDMachineList{}
	b.Expect(b.client.List(b.ctx, list)).To(Succeed())
	n := 0
	problem := ""
	for i := range list.Items {
		switch c := conditions.Get(&list.Items[i], clusterv1.ReadyCondition); {
		case c == nil:
			problem = list.Items[i].Name + " has no Ready condition"
		case c.Status != metav1.ConditionTrue:
			problem = fmt.Sprintf("%s: %s: %s", list.Items[i].Name, c.Reason, c.Message)
		default:
			n++
		}
	}
	return n, problem
}

// machineReady reports whether a machine is ready.
func (b *bubble) machineReady(name string) bool {
	m := &infrav1.VCDMachine{}
	b.Expect(b.client.Get(b.ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)).To(Succeed())
	return conditions.IsTrue(m, clusterv1.ReadyCondition)
}

// awaitReady waits until n machines are ready, and returns the elapsed time. It polls less often for many machines.
func (b *bubble) awaitReady(n int, timeout time.Duration) time.Duration {
	b.t.Helper()
	start := time.Now()
	every := 50 * time.Millisecond
	if n > 10 {
		every = 5 * time.Second
	}
	for {
		got, problem := b.ready()
		if got == n {
			return time.Since(start)
		}
		if time.Since(start) > timeout {
			b.t.Fatalf("%d of %d machines are ready after %s; %s", got, n, timeout, problem)
		}
		<-time.After(every)
	}
}

// writes returns the operations of write requests since a time. Logins do not count.
func (b *bubble) writes(since time.Time) []string {
	var writes []string
	for _, r := range b.requests(since) {
		if r.Changes() {
			writes = append(writes, r.Operation)
		}
	}
	return writes
}

// requests returns the requests since a time.
func (b *bubble) requests(since time.Time) []vcdsim.Request {
	var later []vcdsim.Request
	for _, r := range b.Requests() {
		if !r.Time.Before(since) {
			later = append(later, r)
		}
	}
	return later
}

// byOperation counts requests by operation.
func byOperation(requests []vcdsim.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Operation]++
	}
	return counts
}

// versions returns the resource versions of all objects of this provider.
func (b *bubble) versions() map[string]string {
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&infrav1.VCDClusterList{},
		&infrav1.VCDMachineList{},
		&infrav1.VCDIdentityList{},
		&infrav1.VCDDeploymentZoneList{},
		&infrav1.VCDFailureDomainList{},
	} {
		b.Expect(b.client.List(b.ctx, list)).To(Succeed())
		b.Expect(meta.EachListItem(list, func(obj runtime.Object) error {
			o, err := meta.Accessor(obj)
			if err == nil {
				versions[fmt.Sprintf("%T %s", obj, o.GetName())] = o.GetResourceVersion()
			}
			return err
		})).To(Succeed())
	}
	return versions
}

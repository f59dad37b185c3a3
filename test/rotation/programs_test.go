// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cloudprovider"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/identity"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// newPool returns the pool of VCD clients of one program. Its lookup cache expires at once, so that each lookup sends a
// request, which may require a login.
func newPool() *vcd.Pool {
	return vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 10000, Burst: 10000, LookupTTL: time.Nanosecond})
}

// A manager consists of the reconcilers of the provider's manager that log in, created as in main.
type manager struct {
	environment *environment
	identity    *identity.Reconciler
	cluster     *cluster.Reconciler
	provider    *cloudprovider.Reconciler
}

// newManager returns a manager without cached state, as after a restart.
func (h *environment) newManager() *manager {
	r := controllers.New(controllers.Options{
		Client:    h.client,
		Live:      h.client,
		Metadata:  h.client,
		Recorder:  &events.FakeRecorder{},
		Pool:      newPool(),
		Namespace: "capvcd-system",
	})
	r.CloudProvider.Workload = emptyWorkload
	r.CloudProvider.Image = "registry.example.com/ccm:v1"
	r.CloudProvider.SyncPeriod = time.Minute
	return &manager{environment: h, identity: r.Identity, cluster: r.Cluster, provider: r.CloudProvider}
}

// emptyWorkload returns a client of a workload cluster without objects.
func emptyWorkload(context.Context, client.ObjectKey) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build(), nil
}

// reconcile reconciles a cluster once with a reconciler, and returns a condition. If the condition is absent, it
// returns the zero value.
func (m *manager) reconcile(r reconcile.ObjectReconciler[*infrav1.VCDCluster], name, condition string) (metav1.Condition, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if _, err := reconcile.AsReconciler(m.environment.client, r).Reconcile(m.environment.ctx,
		ctrl.Request{NamespacedName: key}); err != nil {
		return metav1.Condition{}, err
	}
	c := &infrav1.VCDCluster{}
	if err := m.environment.client.Get(m.environment.ctx, key, c); err != nil {
		return metav1.Condition{}, err
	}
	if got := conditions.Get(c, condition); got != nil {
		return *got, nil
	}
	return metav1.Condition{}, nil
}

// ready reconciles a cluster until NetworkReady is True. Each reconcile sends a request for the network.
func (m *manager) ready(name string) {
	m.environment.t.Helper()
	m.environment.Eventually(func(g Gomega) {
		got, err := m.reconcile(m.cluster, name, infrav1.NetworkReadyCondition)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Status).To(Equal(metav1.ConditionTrue), got.Message)
	}, timeout, "5ms").Should(Succeed())
}

// blocksMove reconciles an identity, and reports whether its Secret has the annotation that makes clusterctl move wait.
func (m *manager) blocksMove(identity string) bool {
	key := client.ObjectKey{Namespace: namespace, Name: identity}
	const passes = 4 // The finalizer and the condition Paused take one pass each.
	for range passes {
		_, err := reconcile.AsReconciler(m.environment.client, m.identity).Reconcile(m.environment.ctx,
			ctrl.Request{NamespacedName: key})
		m.environment.Expect(err).NotTo(HaveOccurred())
	}
	secret := &corev1.Secret{}
	m.environment.Expect(m.environment.client.Get(m.environment.ctx, key, secret)).To(Succeed())
	_, blocked := secret.Annotations[clusterctlv1.BlockMoveAnnotation]
	return blocked
}

// A ccm consists of the parts of a cloud controller manager that log in. A namespace simulates its workload cluster.
type ccm struct {
	name     string
	clients  kubernetes.Interface
	config   vcd.Config
	sessions *cpivcd.Sessions
}

// newCCM creates the Secret with the first token from the manifests that the manager rendered, as Cluster API does, and
// starts a cloud controller manager.
func (h *environment) newCCM(cluster string) *ccm {
	clients, err := kubernetes.NewForConfig(h.RESTConfig())
	h.Expect(err).NotTo(HaveOccurred())
	c := &ccm{
		name:    "workload-of-" + cluster,
		clients: clients,
		config:  vcd.Config{Site: h.sim.URL(), Org: "acme", CABundle: h.sim.CA()},
	}
	seeded, err := addons.Parse([]byte(h.value(namespace, cluster+"-cloud-provider-seed", "manifests.yaml")))
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(seeded).To(HaveLen(1))
	token := &corev1.Secret{}
	h.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(seeded[0].Object, token)).To(Succeed())
	h.Expect(token.Name).To(Equal(addons.ServiceAccountName))
	token.Namespace = c.name
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}})
	h.create(token)
	c.restart()
	return c
}

// restart discards all cached state, as a restart of the program does.
func (c *ccm) restart() {
	account := vcd.NewServiceAccount(cpivcd.NewTokenSecret(c.clients.CoreV1().Secrets(c.name),
		addons.ServiceAccountName))
	c.sessions = cpivcd.NewSessions(newPool(), c.config, nil).As(account)
}

// sendRequest sends a request to VCD.
func (c *ccm) sendRequest(ctx context.Context) error {
	s, err := c.sessions.Session(ctx)
	if err != nil {
		return err
	}
	_, err = s.VDCs.FindVDC(ctx, "acme-vdc")
	return err
}

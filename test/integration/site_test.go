// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

const (
	timeout     = 5 * time.Minute
	longTimeout = 10 * time.Minute // for complete clusters, and while managers are killed
	vip         = "192.168.100.200"
)

// brisk is a profile that is fast, but slow enough for a test to observe running tasks.
var brisk = vcdsim.Profile{Name: "brisk", Scale: 0.03}

// A site is a simulated VCD, and the namespace with the objects that use it.
type site struct {
	*vcdsim.Simulator

	t         *testing.T
	g         *WithT
	namespace string
	replica   replica
	front     *front // the proxy in front of the simulator, or nil
}

// URL returns the address of the site.
func (s *site) URL() string {
	if s.front != nil {
		return s.front.URL
	}
	return s.Simulator.URL()
}

// CA returns the certificate authority of the site.
func (s *site) CA() []byte {
	if s.front != nil {
		return s.front.ca()
	}
	return s.Simulator.CA()
}

// newSite starts a simulator, and creates a namespace with an identity for it. The shared manager reconciles its
// objects.
func newSite(t *testing.T, mods ...func(*vcdsim.Config)) *site {
	t.Helper()
	return newSiteOf(t, shared.replica, mods...)
}

// newSiteOf is like newSite, but the given manager reconciles the objects.
func newSiteOf(t *testing.T, c replica, mods ...func(*vcdsim.Config)) *site {
	t.Helper()
	s := newBareSite(t, c, mods...)
	s.identify()
	return s
}

// newBareSite is like newSiteOf, but creates no identity.
func newBareSite(t *testing.T, c replica, mods ...func(*vcdsim.Config)) *site {
	t.Helper()
	g := NewWithT(t)
	observe, err := record.To(os.Getenv("VCDSIM_RECORD"))
	g.Expect(err).NotTo(HaveOccurred())
	config := vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant, Seed: 1, Observe: observe}
	for _, mod := range mods {
		mod(&config)
	}
	sim, err := vcdsim.New(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() {
		g.Expect(sim.Unhandled()).To(BeEmpty(), "requests that the simulator does not implement")
		g.Expect(sim.Close()).To(Succeed())
	})
	namespace := c.namespace
	if namespace == "" {
		namespace = newNamespace(t)
	}
	s := &site{Simulator: sim, t: t, g: g, namespace: namespace, replica: c}
	t.Cleanup(s.removeAll)
	return s
}

// identify creates the identity.
func (s *site) identify() {
	s.t.Helper()
	s.create(&corev1.Secret{
		ObjectMeta: s.meta("vcd"),
		StringData: map[string]string{
			infrav1.SecretUsername: "capvcd",
			infrav1.SecretPassword: s.password(),
			infrav1.SecretCABundle: string(s.CA()),
		},
	})
	s.create(&infrav1.VCDIdentity{
		ObjectMeta: s.meta("vcd"),
		Spec:       infrav1.VCDIdentitySpec{Site: s.URL(), SecretRef: infrav1.LocalSecretReference{Name: "vcd"}},
	})
}

// password returns the password of the seeded user.
func (s *site) password() string {
	return s.State().Model.Orgs[1].Users[1].Password
}

func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.namespace}
}

// newReplica starts a separate manager for the site of one test, for example one that kills it. It watches only a new
// namespace, so that it does not read the objects of all other tests. The site uses that namespace.
func newReplica(t *testing.T, name string, args ...string) replica {
	t.Helper()
	namespace := newNamespace(t)
	c := newWideReplica(t, name, append([]string{"--namespace=" + namespace}, args...)...)
	c.namespace = namespace
	return c
}

// newWideReplica is like newReplica, but the manager watches all namespaces.
func newWideReplica(t *testing.T, name string, args ...string) replica {
	t.Helper()
	g := NewWithT(t)
	m, err := shared.Manager.Replica(t.Context(), name, append([]string{"--watch-filter=" + name}, args...)...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Start(t.Context())).To(Succeed())
	t.Cleanup(func() { g.Expect(m.Stop()).To(Succeed()) })
	return replica{Manager: m, label: name, down: &sync.Mutex{}}
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	NewWithT(t).Expect(shared.client.Create(t.Context(), namespace)).To(Succeed())
	return namespace.Name
}

// create creates an object with the label of the site's manager.
func (s *site) create(obj client.Object) {
	s.t.Helper()
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.WatchLabel] = s.replica.label
	obj.SetLabels(labels)
	s.g.Eventually(func() error { return shared.client.Create(s.t.Context(), obj) }, timeout,
		"100ms").Should(Succeed())
}

// cluster creates a Cluster with its VCDCluster.
func (s *site) cluster(name string, mods ...func(*infrav1.VCDCluster)) *infrav1.VCDCluster {
	s.t.Helper()
	c := &infrav1.VCDCluster{
		ObjectMeta: s.meta(name),
		Spec: infrav1.VCDClusterSpec{
			Site:                 s.URL(),
			Org:                  "acme",
			OVDC:                 "acme-vdc",
			OVDCNetwork:          "nodes",
			IdentityRef:          infrav1.IdentityReference{Name: "vcd"},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: vip},
			ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
				Type:    infrav1.EndpointKubeVIP,
				KubeVIP: &infrav1.KubeVIPEndpoint{},
			},
			// There is no workload cluster to install a cloud controller manager in. Only testCluster has one.
			CloudProvider: infrav1.CloudProviderSpec{Mode: infrav1.CloudProviderNone},
		},
	}
	for _, mod := range mods {
		mod(c)
	}
	s.create(c)
	s.create(&clusterv1.Cluster{
		ObjectMeta: s.meta(name),
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: reference("VCDCluster", name)},
	})
	return c
}

// machine creates a Machine with its VCDMachine and bootstrap data.
func (s *site) machine(cluster, name string, mods ...func(*infrav1.VCDMachine)) *infrav1.VCDMachine {
	s.t.Helper()
	if s.get(&corev1.Secret{ObjectMeta: s.meta(name + "-bootstrap")}) != nil {
		s.bootstrap(name+"-bootstrap", "#cloud-config\nruncmd:\n- echo hello\n")
	}
	m := &infrav1.VCDMachine{
		ObjectMeta: s.meta(name),
		Spec: infrav1.VCDMachineSpec{
			Catalog:      "kubernetes",
			Template:     "ubuntu-2404-kube-v1.36.3",
			SizingPolicy: "small",
		},
	}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	for _, mod := range mods {
		mod(m)
	}
	s.create(m)
	s.create(&clusterv1.Machine{
		ObjectMeta: s.meta(name),
		Spec: clusterv1.MachineSpec{
			ClusterName:       cluster,
			InfrastructureRef: reference("VCDMachine", name),
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(name + "-bootstrap")},
		},
	})
	return m
}

func reference(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
}

// get refreshes an object from the API server.
func (s *site) get(obj client.Object) error {
	return shared.client.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj)
}

// ready waits until the Ready condition of an object is True, and checks the conditions of all objects of this provider
// in the namespace.
func (s *site) ready(obj conditioned) {
	s.t.Helper()
	s.g.Eventually(func() (string, error) { return s.state(obj, clusterv1.ReadyCondition) }, timeout,
		"50ms").Should(HavePrefix("True"))
	s.checkConditions()
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// state returns a condition as "Status Reason: Message".
func (s *site) state(obj conditioned, condition string) (string, error) {
	if err := s.get(obj); err != nil {
		return "", err
	}
	for _, c := range obj.GetConditions() {
		if c.Type == condition {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), nil
		}
	}
	return "", nil
}

// events lists the events about an object, as "Type Reason: Note".
func (s *site) events(obj client.Object) []string {
	list := &corev1.EventList{}
	s.g.Expect(shared.client.List(s.t.Context(), list, client.InNamespace(s.namespace))).To(Succeed())
	var notes []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == obj.GetName() && e.InvolvedObject.UID == obj.GetUID() {
			notes = append(notes, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	return notes
}

// delete deletes objects and waits until they are gone.
func (s *site) delete(objects ...client.Object) {
	s.t.Helper()
	for _, obj := range objects {
		s.g.Expect(client.IgnoreNotFound(shared.client.Delete(s.t.Context(), obj))).To(Succeed())
	}
	for _, obj := range objects {
		s.g.Eventually(func() bool { return client.IgnoreNotFound(s.get(obj)) == nil && s.get(obj) != nil }, timeout,
			"50ms").
			Should(BeTrue(), "%T %s still exists", obj, obj.GetName())
	}
}

// deleteMachine deletes a machine and waits until it is gone.
func (s *site) deleteMachine(name string) {
	s.t.Helper()
	s.delete(&clusterv1.Machine{ObjectMeta: s.meta(name)}, &infrav1.VCDMachine{ObjectMeta: s.meta(name)})
}

// deleteCluster deletes a cluster and waits until it is gone.
func (s *site) deleteCluster(name string) {
	s.t.Helper()
	s.delete(&clusterv1.Cluster{ObjectMeta: s.meta(name)}, &infrav1.VCDCluster{ObjectMeta: s.meta(name)})
}

// empty checks that VCD contains no VMs and vApps.
func (s *site) empty() {
	s.t.Helper()
	state := s.State()
	s.g.Expect(state.VMs).To(BeEmpty())
	s.g.Expect(state.VApps).To(BeEmpty())
}

// removeAll deletes the remaining clusters of a test, so that the manager does not keep sending requests to a stopped
// simulator.
func (s *site) removeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	clusters := &clusterv1.ClusterList{}
	if err := shared.client.List(ctx, clusters, client.InNamespace(s.namespace)); err != nil {
		s.t.Log(err)
	}
	for i := range clusters.Items {
		s.t.Log(client.IgnoreNotFound(shared.client.Delete(ctx, &clusters.Items[i])))
	}
}

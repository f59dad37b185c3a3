// SPDX-License-Identifier: Apache-2.0

// Package cpitest is the contract test suite for backends of the cloud controller manager. [Run] runs it, with the core
// and a fake API server, on a cloud that the caller provides.
package cpitest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Process is the input for the backend of a new process.
type Process struct {
	// Cluster is the ID of the cluster that the process serves. Several clusters may share a cloud.
	Cluster string
	Nodes   corelisters.NodeLister
	Clock   *clocktesting.FakeClock
}

// A Cloud is a cloud with its backend, and functions that change the cloud behind the backend's back.
type Cloud struct {
	// Start returns the backend of a new process.
	Start func(Process) cpi.Backend
	// Machines are the initial running machines by name, with their addresses. At least three are required.
	Machines map[string]string
	// PowerOff and Remove power off or delete a machine by name.
	PowerOff, Remove func(name string)
	// SetAway starts or ends an outage.
	SetAway func(bool)

	// Balancers is nil if the cloud has no load balancers.
	Balancers *Balancers
}

// Balancers inspects and changes the load balancers of a cloud.
type Balancers struct {
	// Refused changes a Service so that the cloud cannot implement it.
	Refused func(*corev1.Service)
	// Break removes a part of every load balancer.
	Break func()
	// Standing returns the addresses of the members, separated by spaces, by address and port of each load balancer.
	Standing func() map[string]string
	// Left returns the number of load balancer objects. Writes returns the number of writes so far.
	Left, Writes func() int
}

// Run runs the contract tests. start returns a new cloud for each test.
func Run(t *testing.T, start func(*testing.T) Cloud) {
	t.Helper()
	tests := map[string]func(*cluster){
		"a Node has the identity and addresses of its machine": (*cluster).nodesAreKnown,
		"a Node of another cloud is left alone":                (*cluster).foreignNodesAreLeftAlone,
		"a stopped machine is shut down, not gone":             (*cluster).shutdownIsNotGone,
		"a machine is gone when that is proved twice":          (*cluster).goneIsProvedTwice,
		"an outage removes nothing":                            (*cluster).outageRemovesNothing,
		"a load balancer is made, changed and removed":         (*cluster).lifeOfALoadBalancer,
		"two Services of one name have a load balancer each":   (*cluster).sameNameTwice,
		"members follow the nodes":                             (*cluster).membersFollowNodes,
		"what changes in the cloud is repaired":                (*cluster).driftIsRepaired,
		"a Node is withdrawn from load balancers":              (*cluster).withdrawalIsConfirmed,
		"a Node without load balancers is withdrawn":           (*cluster).withdrawalWithoutServices,
		"what cannot be is refused and heals":                  (*cluster).refusalHeals,
		"a crash at any step loses nothing":                    (*cluster).crashesLoseNothing,
		"clusters that share a location report their own":      (*cluster).clustersShareALocation,
		"a crash does not harm another cluster":                (*cluster).crashesHarmNoOtherCluster,
		"Kubernetes' controllers keep Nodes":                   (*cluster).nodesLive,
		"Kubernetes' controllers keep Services":                (*cluster).servicesLive,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			tests[name](newCluster(t, "c1", start(t), clocktesting.NewFakeClock(time.Now())))
		})
	}
}

// A cluster is the core with a backend, on a fake API server.
type cluster struct {
	*WithT

	t        *testing.T
	id       string
	cloud    Cloud
	client   *fake.Clientset
	clock    *clocktesting.FakeClock
	events   *record.FakeRecorder
	informer informers.SharedInformerFactory
	backend  cpi.Backend
	provider *cpi.Cloud
	stop     context.CancelFunc
}

// newCluster starts the program in a new cluster with a Node for each machine of a cloud.
func newCluster(t *testing.T, id string, cloud Cloud, clock *clocktesting.FakeClock) *cluster {
	t.Helper()
	c := &cluster{
		WithT:  NewWithT(t),
		t:      t,
		id:     id,
		cloud:  cloud,
		client: fake.NewClientset(),
		clock:  clock,
	}
	for name := range c.cloud.Machines {
		c.addNode(name)
	}
	c.start(nil)
	return c
}

// start restarts the program. wrap may replace the balancer; nil keeps it.
func (c *cluster) start(wrap func(cpi.Balancer) cpi.Balancer) {
	c.t.Helper()
	if c.stop != nil {
		c.stop()
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	c.stop = cancel
	c.informer = informers.NewSharedInformerFactory(c.client, 0)
	c.events = record.NewFakeRecorder(1000)
	c.backend = c.cloud.Start(Process{
		Cluster: c.id,
		Nodes:   c.informer.Core().V1().Nodes().Lister(),
		Clock:   c.clock,
	})
	if wrap != nil {
		c.backend.Balancer = wrap(c.backend.Balancer)
	}
	var err error
	c.provider, err = cpi.New(cpi.Options{
		Backend:   c.backend,
		Client:    c.client,
		Informers: c.informer,
		Recorder:  c.events,
		Metrics:   prometheus.NewPedanticRegistry(),
		Clock:     c.clock,
		Self:      &corev1.ObjectReference{Kind: "Pod", Name: "ccm"},
	})
	c.Expect(err).NotTo(HaveOccurred())
	c.informer.Core().V1().Nodes().Informer()
	c.informer.Start(ctx.Done())
	c.informer.WaitForCacheSync(ctx.Done())
}

// instances returns the implementation for Nodes.
func (c *cluster) instances() cloudprovider.InstancesV2 {
	instances, ok := c.provider.InstancesV2()
	c.Expect(ok).To(BeTrue())
	return instances
}

// balancer returns the implementation of load balancers. It skips the test if the cloud has none.
func (c *cluster) balancer() cloudprovider.LoadBalancer {
	c.t.Helper()
	balancer, ok := c.provider.LoadBalancer()
	c.Expect(ok).To(Equal(c.cloud.Balancers != nil))
	if !ok {
		c.t.Skip("the cloud makes no load balancers")
	}
	return balancer
}

// machines returns the sorted names of the machines.
func (c *cluster) machines() []string { return slices.Sorted(maps.Keys(c.cloud.Machines)) }

// addNode adds the Node of a machine, as its kubelet would.
func (c *cluster) addNode(name string) {
	c.Expect(c.client.Tracker().Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			CreationTimestamp: metav1.NewTime(c.clock.Now().Add(-48 * time.Hour)),
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{
			Type:    corev1.NodeInternalIP,
			Address: c.cloud.Machines[name],
		}}},
	})).To(Succeed())
}

// node returns a Node that has the provider ID of its machine.
func (c *cluster) node(name string) *corev1.Node {
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	if node.Spec.ProviderID == "" {
		metadata, err := c.instances().InstanceMetadata(c.t.Context(), node)
		c.Expect(err).NotTo(HaveOccurred())
		node.Spec.ProviderID = metadata.ProviderID
		_, err = c.client.CoreV1().Nodes().Update(c.t.Context(), node, metav1.UpdateOptions{})
		c.Expect(err).NotTo(HaveOccurred())
	}
	c.waitForInformers()
	return node
}

// service creates a Service in the state in which the service controller passes it to the provider.
func (c *cluster) service(namespace string, mods ...func(*corev1.Service)) *corev1.Service {
	s := template(namespace)
	for _, mod := range mods {
		mod(s)
	}
	c.Expect(c.client.Tracker().Add(s)).To(Succeed())
	c.waitForInformers()
	return s
}

// template returns a Service with one port.
func template(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  namespace,
			Name:       "web",
			UID:        types.UID("uid-" + namespace),
			Finalizers: []string{servicehelpers.LoadBalancerCleanupFinalizer},
		},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	}
}

func (c *cluster) update(s *corev1.Service) {
	_, err := c.client.CoreV1().Services(s.Namespace).Update(c.t.Context(), s, metav1.UpdateOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	c.waitForInformers()
}

// stored returns the current Service from the API server.
func (c *cluster) stored(s *corev1.Service) *corev1.Service {
	now, err := c.client.CoreV1().Services(s.Namespace).Get(c.t.Context(), s.Name, metav1.GetOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	return now
}

// waitForInformers waits until the informers have seen all changes.
func (c *cluster) waitForInformers() {
	if c.informer == nil {
		return
	}
	nodes := c.informer.Core().V1().Nodes().Informer().GetStore()
	services := c.informer.Core().V1().Services().Informer().GetStore()
	c.Eventually(func(g Gomega) {
		stored, err := c.client.CoreV1().Services("").List(c.t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		all, err := c.client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(services.List()).To(HaveLen(len(stored.Items)))
		g.Expect(nodes.List()).To(HaveLen(len(all.Items)))
		for i := range stored.Items {
			stored.Items[i].ManagedFields = nil // not cached
			cached, _, _ := services.Get(&stored.Items[i])
			g.Expect(equality.Semantic.DeepEqual(cached, &stored.Items[i])).To(BeTrue())
		}
		for i := range all.Items {
			all.Items[i].ManagedFields = nil // not cached
			cached, _, _ := nodes.Get(&all.Items[i])
			g.Expect(equality.Semantic.DeepEqual(cached, &all.Items[i])).To(BeTrue())
		}
	}, "10s", "1ms").Should(Succeed())
}

// ensured retries, as the service controller does, until the load balancer exists. It publishes the status and returns
// the address.
func (c *cluster) ensured(s *corev1.Service) string {
	c.t.Helper()
	balancer := c.balancer()
	status := (*corev1.LoadBalancerStatus)(nil)
	c.Eventually(func() (err error) {
		status, err = balancer.EnsureLoadBalancer(c.t.Context(), "", c.stored(s), nil)
		return err
	}, "30s", "5ms").Should(Succeed())
	c.Expect(status.Ingress).To(HaveLen(1))
	now := c.stored(s)
	now.Status.LoadBalancer = *status
	_, err := c.client.CoreV1().Services(s.Namespace).UpdateStatus(c.t.Context(), now, metav1.UpdateOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	c.waitForInformers()
	return status.Ingress[0].IP
}

// removed deletes a Service, and retries until all its objects are removed.
func (c *cluster) removed(s *corev1.Service) {
	c.t.Helper()
	now := c.stored(s)
	deleted := metav1.NewTime(c.clock.Now())
	now.DeletionTimestamp = &deleted
	c.update(now)
	c.Eventually(func() error { return c.balancer().EnsureLoadBalancerDeleted(c.t.Context(), "", now) }, "30s",
		"5ms").Should(Succeed())
	_, exists, err := c.balancer().GetLoadBalancer(c.t.Context(), "", now)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(exists).To(BeFalse())
	c.Expect(c.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("services"), s.Namespace,
		s.Name)).To(Succeed())
	c.waitForInformers()
}

// membersExcept returns the expected members of a load balancer: all machines, except for the given ones.
func (c *cluster) membersExcept(but ...string) string {
	var members []string
	for _, name := range c.machines() {
		if !slices.Contains(but, name) {
			members = append(members, c.cloud.Machines[name])
		}
	}
	slices.Sort(members)
	return strings.Join(members, " ")
}

// dyingBalancer is a balancer whose process dies before or after its n-th step.
type dyingBalancer struct {
	cpi.Balancer

	left  int
	after bool
}

var errDied = errors.New("the process has died")

// Run runs a step, unless the process is dead.
func (d *dyingBalancer) Run(ctx context.Context, location string, step loadbalancer.Step) error {
	if d.left <= 0 {
		return errDied
	}
	d.left--
	if d.left == 0 && !d.after {
		return errDied
	}
	if err := d.Balancer.Run(ctx, location, step); err != nil {
		return err
	}
	if d.left == 0 {
		return errDied
	}
	return nil
}

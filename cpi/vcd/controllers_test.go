// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	cloudapi "k8s.io/cloud-provider/api"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A cluster runs the node controllers of k8s.io/cloud-provider on Nodes of a pretend API server and VMs of a simulated
// VCD.
type cluster struct {
	*site

	t      *testing.T
	client *fake.Clientset
	asked  *asked
}

// asked counts how often it was asked whether machines exist.
type asked struct {
	cloudprovider.InstancesV2

	times atomic.Int64
}

func (a *asked) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	defer a.times.Add(1)
	return a.InstancesV2.InstanceExists(ctx, node)
}

// An askedCloud counts questions.
type askedCloud struct {
	*cpi.Cloud

	asked *asked
}

func (c askedCloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c.asked, true }

func kubeletNode(name string, mods ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{
			Key:    cloudapi.TaintExternalCloudProvider,
			Value:  "true",
			Effect: corev1.TaintEffectNoSchedule,
		}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type:   corev1.NodeReady,
			Status: corev1.ConditionTrue,
		}}},
	}
	for _, mod := range mods {
		mod(node)
	}
	return node
}

func (s *site) start(t *testing.T, options []func(*MachineOptions), nodes ...*corev1.Node) *cluster {
	t.Helper()
	objects := []runtime.Object{}
	for _, node := range nodes {
		objects = append(objects, node)
	}
	c := &cluster{site: s, t: t, client: fake.NewSimpleClientset(objects...)}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	informer := factory.Core().V1().Nodes()
	known := func(o *MachineOptions) {
		o.Nodes = func() Nodes {
			var out Nodes
			all, _ := informer.Lister().List(labels.Everything())
			for _, node := range all {
				if node.Spec.ProviderID == "" {
					out.Nameless = append(out.Nameless, node.Name)
				} else {
					out.ProviderIDs = append(out.ProviderIDs, node.Spec.ProviderID)
				}
			}
			return out
		}
	}
	provider, err := cpi.New(cpi.Options{
		Backend: cpi.Backend{
			Name:     ProviderName,
			Machines: s.machines(append(options, known)...),
			Explain:  Explain("vcd"),
			Services: (&Dialect{}).Defaults("c1", false, false),
		},
		Informers: factory,
		Recorder:  record.NewFakeRecorder(1000),
		Clock:     s.clock,
	})
	c.Expect(err).NotTo(HaveOccurred())
	instances, _ := provider.InstancesV2()
	c.asked = &asked{InstancesV2: instances}
	cloud := askedCloud{provider, c.asked}
	node, err := nodecontroller.NewCloudNodeController(informer, c.client, cloud, time.Hour, 4, 4)
	c.Expect(err).NotTo(HaveOccurred())
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(informer, c.client, cloud, 10*time.Millisecond)
	c.Expect(err).NotTo(HaveOccurred())
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	var running sync.WaitGroup
	running.Go(func() { node.Run(t.Context().Done(), controllersmetrics.NewControllerManagerMetrics("test")) })
	running.Go(func() { lifecycle.Run(t.Context(), controllersmetrics.NewControllerManagerMetrics("test")) })
	t.Cleanup(running.Wait)
	return c
}

func (c *cluster) node(name string) *corev1.Node {
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.Expect(err).NotTo(HaveOccurred())
	return node
}

func initialized(node *corev1.Node) bool { return len(node.Spec.Taints) == 0 }

// notReady is the condition of a Node whose kubelet does not respond.
func (c *cluster) notReady(name string) {
	node := c.node(name)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	_, err := c.client.CoreV1().Nodes().UpdateStatus(c.t.Context(), node, metav1.UpdateOptions{})
	c.Expect(err).NotTo(HaveOccurred())
}

// monitor lets the lifecycle controller ask for machines of Nodes that are not ready, a while later.
func (c *cluster) monitor(after time.Duration) {
	c.t.Helper()
	c.clock.SetTime(c.clock.Now().Add(after))
	before := c.asked.times.Load()
	c.Eventually(c.asked.times.Load, testtime.Patience, "5ms").Should(BeNumerically(">", before+1))
}

const fleet = "acme-vdc-vapp-000"

func TestNodesAreInitialized(t *testing.T) {
	s := newSite(t, 1, 3)
	c := s.start(t, []func(*MachineOptions){inVApps(fleet), func(o *MachineOptions) { o.Region = "north" }},
		kubeletNode(fleet+"-000", func(n *corev1.Node) { n.Spec.ProviderID = s.providerID(fleet + "-000") }),
		kubeletNode(fleet+"-001"),
		kubeletNode("elsewhere", func(n *corev1.Node) { n.Spec.ProviderID = "static://elsewhere" }),
		kubeletNode("unknown"),
	)

	for _, name := range []string{fleet + "-000", fleet + "-001"} {
		c.Eventually(func(g Gomega) {
			node := c.node(name)
			g.Expect(initialized(node)).To(BeTrue())
			g.Expect(node.Spec.ProviderID).To(Equal(s.providerID(name)))
			g.Expect(node.Labels).To(And(
				HaveKeyWithValue(corev1.LabelTopologyZone, "acme-vdc"),
				HaveKeyWithValue(corev1.LabelTopologyRegion, "north"),
				HaveKeyWithValue(corev1.LabelInstanceTypeStable, ContainSubstring("cpu"))))
			g.Expect(node.Status.Addresses).To(Equal([]corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: s.vm(name).NICs[0].Address},
				{Type: corev1.NodeHostName, Address: name},
			}))
		}, testtime.Patience, "20ms").Should(Succeed())
	}
	c.Expect(initialized(c.node("elsewhere"))).To(BeFalse(), "it is for another cloud to initialise")
	c.Expect(initialized(c.node("unknown"))).To(BeFalse())
}

func TestNodesOfLostAndStoppedMachines(t *testing.T) {
	s := newSite(t, 1, 4)
	var nodes []*corev1.Node
	for i := range 4 {
		nodes = append(nodes, kubeletNode(fmt.Sprintf("%s-%03d", fleet, i)))
	}
	c := s.start(t, []func(*MachineOptions){inVApps(fleet)}, nodes...)
	for _, n := range nodes {
		c.Eventually(func() bool { return initialized(c.node(n.Name)) }, testtime.Patience, "20ms").Should(BeTrue())
	}

	s.sim.Edit(func(e *vcdsim.Editor) {
		e.PowerOff(e.VM(fleet + "-001"))
		e.DeleteVM(e.VM(fleet + "-002"))
	})
	for i := 1; i < 4; i++ {
		c.notReady(fmt.Sprintf("%s-%03d", fleet, i))
	}
	c.Eventually(func(g Gomega) { // the controller has seen it when it taints
		c.monitor(time.Minute)
		g.Expect(c.node(fleet + "-001").Spec.Taints).To(ContainElement(HaveField("Key", cloudapi.TaintNodeShutdown)))
		g.Expect(c.node(fleet + "-002")).To(BeNil())
	}, testtime.Patience, "20ms").Should(Succeed())
	c.Expect(c.node(fleet + "-003")).NotTo(BeNil())
	c.Expect(c.node(fleet+"-003").Spec.Taints).To(BeEmpty(), "a machine that runs is none that is shut down")
}

func TestLosingRightsDeletesNoNode(t *testing.T) {
	for name, fault := range map[string]vcdsim.Fault{
		"everything is forbidden": {Status: 403},
		"nothing is found":        {Status: 404},
		"the password is refused": {Status: 401},
		"VCD fails":               {Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, 2)
			c := s.start(t, []func(*MachineOptions){inVApps(fleet)}, kubeletNode(fleet+"-000"),
				kubeletNode(fleet+"-001"))
			c.Eventually(func() bool { return initialized(c.node(fleet+"-000")) && initialized(c.node(fleet+"-001")) },
				testtime.Patience, "20ms").Should(BeTrue())
			s.sim.Faults().Add(fault)
			c.notReady(fleet + "-000")

			for range 6 {
				c.monitor(5 * time.Minute)
			}

			c.Expect(c.node(fleet + "-000")).NotTo(BeNil())
		})
	}
}

func TestCostOf500Nodes(t *testing.T) {
	s := newSite(t, 2, 250)
	var nodes []*corev1.Node
	names := []string{}
	for i := range 500 {
		names = append(names, fmt.Sprintf("acme-vdc-vapp-%03d-%03d", i/250, i%250))
		nodes = append(nodes, kubeletNode(names[i]))
	}
	s.sim.Edit(func(e *vcdsim.Editor) { // the pool is not made for so many
		for i, name := range names {
			e.VM(name).NICs[0].Address = fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		}
	})
	s.sim.ResetCounters()
	c := s.start(t, []func(*MachineOptions){inVApps("acme-vdc-vapp-000", "acme-vdc-vapp-001")}, nodes...)
	c.Eventually(func() int {
		list, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		c.Expect(err).NotTo(HaveOccurred())
		n := 0
		for i := range list.Items {
			if initialized(&list.Items[i]) {
				n++
			}
		}
		return n
	}, testtime.Patience, "100ms").Should(Equal(500))

	c.Expect(s.queries()).To(BeNumerically("<=", 10), "%v", s.sim.Counters())
	for call, n := range s.sim.Counters() {
		c.Expect(strings.HasPrefix(call, "GET /api/vApp/")).To(BeFalse(), "%s: %d", call, n)
	}
	t.Logf("500 nodes: %d inventory queries, all calls: %v", s.queries(), s.sim.Counters())

	s.sim.ResetCounters()
	c.notReady(names[0])
	for range 10 {
		c.monitor(31 * time.Second)
	}
	for call := range s.sim.Counters() {
		c.Expect(call).To(HavePrefix("GET /api/query"), "at rest queries only")
	}
	t.Logf("at rest: %v", s.sim.Counters())
}

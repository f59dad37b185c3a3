// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// managersUser is the VCD user of the manager. Cloud controller managers have separate users.
const managersUser = "capvcd"

// TestLoadBalancersGoWithTheirCluster deletes clusters whose real cloud controller manager has created a load balancer,
// while the Service still exists.
func TestLoadBalancersGoWithTheirCluster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"on all gateways, with a cloud controller manager that recreates objects", testRecreatedObjectsAreDeleted},
		{"while the manager is killed at each step", testKilledDuringDeletion},
		{"while the manager is killed during an outage of VCD", testKilledDuringOutage},
		{"unless an annotation keeps them", testLoadBalancersKept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

func testRecreatedObjectsAreDeleted(t *testing.T) {
	t.Helper()
	c := newBalancedCluster(t, shared.replica)
	c.createBalancer()
	c.createFurtherBalancer()
	c.deleteCluster()
	// The final check, 20 s after the removal, deletes objects that the cloud controller manager has recreated by then. The
	// fault prevents it in the meantime.
	c.g.Eventually(c.balancerObjects, longTimeout, "20ms").Should(BeEmpty(), "the existing load balancers are deleted")
	c.Faults().Add(vcdsim.Fault{
		Operation: "GET /cloudapi/*",
		User:      managersUser,
		Status:    http.StatusServiceUnavailable,
	})

	c.change(func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, port("more", 8080)) })
	c.g.Eventually(c.balancerObjects, timeout, "100ms").ShouldNot(BeEmpty(), "the cloud controller manager recreates objects")
	c.g.Expect(c.process.Err()).NotTo(HaveOccurred())
	c.stopAPIServer()
	c.Faults().Clear()

	c.waitUntilGone()
	c.g.Expect(c.balancerObjects()).To(BeEmpty())
	c.g.Expect(c.events(c.remembered)).To(ContainElement(ContainSubstring("LoadBalancersDeleted")))
}

func testKilledDuringDeletion(t *testing.T) {
	t.Helper()
	c := newBalancedCluster(t, newReplica(t, "balancers", quickPoll))
	c.createBalancer()
	k := chaos.New(t, chaos.Options{Victim: c.replica, Flow: "delete"})
	c.SetGate(func(ctx context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		return !isBalancerRequest(r) || k.Gate(ctx, m, r)
	})

	c.deleteCluster()
	k.During("delete", func() {
		c.killCCMWithLastVM()
		c.waitUntilGone()
	})

	c.g.Expect(c.balancerObjects()).To(BeEmpty())
	c.g.Expect(k.Writes("delete")).NotTo(BeEmpty())
	for _, w := range k.Writes("delete") {
		c.g.Expect(k.Killed(vcdsim.Arrived, w)).To(BeTrue(), "the manager was not killed before %v", w)
		c.g.Expect(k.Killed(vcdsim.Worked, w)).To(BeTrue(), "the manager was not killed after %v", w)
	}
}

func testKilledDuringOutage(t *testing.T) {
	t.Helper()
	c := newBalancedCluster(t, newReplica(t, "outage", quickPoll))
	c.createBalancer()
	c.Faults().Add(vcdsim.Fault{
		Operation: "GET /cloudapi/1.0.0/edgeGateways*",
		User:      managersUser,
		Status:    http.StatusServiceUnavailable,
	})
	c.deleteCluster()
	c.killCCMWithLastVM()
	for range 2 {
		c.g.Eventually(c.waitsForVCD, longTimeout, "100ms").Should(BeTrue())
		c.g.Expect(c.replica.Kill()).To(Succeed())
		c.g.Expect(c.replica.Start(t.Context())).To(Succeed())
	}
	c.g.Expect(c.balancerObjects()).NotTo(BeEmpty())
	c.Faults().Clear()

	c.waitUntilGone()

	c.g.Expect(c.balancerObjects()).To(BeEmpty())
}

func testLoadBalancersKept(t *testing.T) {
	t.Helper()
	c := newBalancedCluster(t, shared.replica)
	c.createBalancer()
	objects := c.balancerObjects()
	c.expectRejectedCredentialsReported()
	c.patch(&infrav1.VCDCluster{ObjectMeta: c.meta(c.name)},
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, infrav1.KeepLoadBalancersAnnotation))

	c.deleteCluster()
	c.killCCMWithLastVM()
	c.waitUntilGone()

	c.g.Expect(c.balancerObjects()).To(Equal(objects))
	c.g.Expect(c.events(c.remembered)).To(ContainElement(And(ContainSubstring("Warning "+
		infrav1.LoadBalancersNotDeletedReason), ContainSubstring(c.remembered.Spec.InfraID))))
}

// createBalancer starts the cloud controller manager, and waits until it has created a load balancer for a Service with
// two ports.
func (c *balancedCluster) createBalancer() {
	c.t.Helper()
	c.remembered = c.vcdCluster()
	c.g.Expect(c.balancerObjects()).To(BeEmpty())
	c.start()
	service := c.service("shop")
	c.g.Expect(shared.client.Create(c.t.Context(), service)).To(Succeed())
	c.t.Cleanup(func() { c.removeService("shop") })
	c.g.Eventually(func(g Gomega) {
		g.Expect(c.testCluster.get(service)).To(Succeed())
		g.Expect(service.Status.LoadBalancer.Ingress).To(HaveLen(1))
	}, timeout, "100ms").Should(Succeed())
	c.g.Expect(c.balancerObjects()).To(HaveLen(2*2+1), "a pool and a virtual service for each port, and the IP set of the cluster")
}

// createFurtherBalancer waits until the cloud controller manager has created a load balancer on the further gateway,
// which it finds in the configuration from the manager.
func (c *balancedCluster) createFurtherBalancer() {
	c.t.Helper()
	service := c.service("api")
	metav1.SetMetaDataAnnotation(&service.ObjectMeta, "service.beta.kubernetes.io/vcloud-gateway", further)
	c.g.Expect(shared.client.Create(c.t.Context(), service)).To(Succeed())
	c.t.Cleanup(func() { c.removeService("api") })
	c.g.Eventually(func(g Gomega) {
		g.Expect(c.testCluster.get(service)).To(Succeed())
		g.Expect(service.Status.LoadBalancer.Ingress).To(ConsistOf(HaveField("IP", HavePrefix("203.0.113.2"))),
			"an address of that gateway")
	}, timeout, "100ms").Should(Succeed())
	c.g.Expect(c.balancerObjects()).To(HaveLen(2*(2*2+1)), "each gateway has its own IP set")
}

// expectRejectedCredentialsReported changes the password of the cloud controller manager in VCD. Events on its pod and
// on a waiting Service must report the rejected credentials.
func (c *balancedCluster) expectRejectedCredentialsReported() {
	c.t.Helper()
	c.Edit(func(e *vcdsim.Editor) {
		e.SetPassword("acme", e.Model.Orgs[1].Users[2].Name, "another")
		e.ExpireSessions()
	})
	c.g.Expect(shared.client.Create(c.t.Context(), c.service("late"))).To(Succeed())
	c.t.Cleanup(func() { c.removeService("late") })
	const rejected = "VCDCredentialsRejected"
	c.g.Eventually(func() []string { return c.warnings(addons.Namespace, "Pod", c.name) }, timeout,
		"100ms").Should(ContainElement(rejected))
	c.g.Eventually(func() []string { return c.warnings(c.namespace, "Service", "late") }, timeout,
		"100ms").Should(ContainElement(rejected))
	c.g.Expect(c.warnings(c.namespace, "Service", "shop")).NotTo(ContainElement(rejected), "the Service is up to date and does not wait")
	c.g.Expect(c.warnings(c.namespace, "Service", "late")).NotTo(ContainElement("LoadBalancerRejected"),
		"the Service is valid")
}

// warnings returns the reasons of Warning events about an object.
func (c *balancedCluster) warnings(namespace, kind, name string) []string {
	list := &corev1.EventList{}
	c.g.Expect(shared.client.List(c.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	var out []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == kind &&
			e.InvolvedObject.Name == name {
			out = append(out, e.Reason)
		}
	}
	return out
}

// service returns a Service with two ports.
func (c *balancedCluster) service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: c.labeledMeta(name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{port("http", 80), port("https", 443)},
		},
	}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
}

// change updates the Service "shop".
func (c *balancedCluster) change(change func(*corev1.Service)) {
	c.t.Helper()
	c.g.Eventually(func() error {
		service := &corev1.Service{ObjectMeta: c.meta("shop")}
		if err := c.testCluster.get(service); err != nil {
			return err
		}
		change(service)
		return shared.client.Update(c.t.Context(), service)
	}, timeout, "100ms").Should(Succeed())
}

// deleteCluster deletes the cluster, but not its Service. It does not wait.
func (c *balancedCluster) deleteCluster() {
	c.t.Helper()
	c.g.Expect(shared.client.Delete(c.t.Context(), &clusterv1.Cluster{ObjectMeta: c.meta(c.name)})).To(Succeed())
}

// killCCMWithLastVM waits until no VMs exist, and stops the cloud controller manager, which ran on one of them.
func (c *balancedCluster) killCCMWithLastVM() {
	c.t.Helper()
	c.g.Eventually(func() []vcdsim.VM { return c.State().VMs }, longTimeout, "50ms").Should(BeEmpty())
	c.g.Expect(c.process.Kill()).To(Succeed())
}

// waitUntilGone waits until the cluster is gone.
func (c *balancedCluster) waitUntilGone() {
	c.t.Helper()
	c.g.Eventually(func() error { return c.testCluster.get(&clusterv1.Cluster{ObjectMeta: c.meta(c.name)}) }, longTimeout,
		"250ms").ShouldNot(Succeed())
	c.empty()
}

// waitsForVCD reports whether the deletion of load balancers waits for VCD.
func (c *balancedCluster) waitsForVCD() (bool, error) {
	state, err := c.state(&infrav1.VCDCluster{ObjectMeta: c.meta(c.name)}, infrav1.LoadBalancersDeletedCondition)
	return strings.HasPrefix(state, "Unknown "), err
}

// isBalancerRequest reports whether a request concerns load balancers.
func isBalancerRequest(r vcdsim.Request) bool {
	return strings.Contains(r.Path, "/loadBalancer/") || strings.Contains(r.Path, "/firewallGroups")
}

// balancerObjects lists the objects of load balancers in VCD, sorted by path.
func (c *balancedCluster) balancerObjects() []string {
	var out []string
	for _, d := range c.State().Documents {
		if strings.Contains(string(d.Body), "cluster="+c.remembered.Spec.InfraID) {
			out = append(out, d.Path+" "+d.ID)
		}
	}
	slices.Sort(out)
	return out
}

func (c *balancedCluster) removeService(name string) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	ctx := context.WithoutCancel(c.t.Context())
	if err := shared.client.Get(ctx, keyOf(service), service); err != nil {
		c.t.Log(err)
		return
	}
	service.Finalizers = nil
	c.g.Expect(shared.client.Update(ctx, service)).To(Succeed())
	c.g.Expect(shared.client.Delete(ctx, service)).To(Succeed())
}

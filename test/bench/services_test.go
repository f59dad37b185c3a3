// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	// oneService is the maximum ratio of the time for a Service to the time of the tasks of its gateway.
	oneService = 1.15
	// taskPoll is the default of --vcd-task-poll.
	taskPoll = 750 * time.Millisecond
)

// serviceBackoff is the initial backoff of the service controller.
const serviceBackoff = 5 * time.Second

func TestServiceTakesLittleLongerThanItsGatewayTasks(t *testing.T) {
	for _, ports := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d ports", ports), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				first := balanced("first", ports)
				second := balanced("second", ports)
				gateways := []vcdconfig.Gateway{{EdgeGateway: vcdconfig.EdgeGateway{Network: "nodes"}}}
				balancers, sim := newBalancers(t, vcdsim.K8sTenant(), gateways, first, second)
				for _, s := range []*corev1.Service{first, second} { // The first one also looks up its gateway.
					began := time.Now()

					took := serve(t, balancers, s)

					path := busy(sim.State().Tasks, began)
					ratio := took.Seconds() / path.Seconds()
					t.Logf("the %s Service, %d ports: %.1f s, tasks of the gateway %.1f s, ratio %.3f", s.Name, ports,
						took.Seconds(), path.Seconds(), ratio)
					g.Expect(ratio).To(BeNumerically(">=", 1))
					g.Expect(ratio).To(BeNumerically("<=", oneService))
				}
			})
		})
	}
}

// newBalancers returns the load balancers of a cluster with the given Services, and their simulated VCD.
func newBalancers(t *testing.T, model vcdsim.Model, gateways []vcdconfig.Gateway, all ...*corev1.Service) (
	*cpi.LoadBalancers, *vcdsim.Simulator,
) {
	t.Helper()
	g := NewWithT(t)
	network := newPipes()
	sim, err := vcdsim.New(vcdsim.Config{
		Model:    model,
		Profile:  vcdsim.Recorded,
		Listener: network,
		Seed:     1,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	pool := vcd.NewPool(vcd.PoolOptions{Dial: network.Dial, TaskPoll: taskPoll})
	t.Cleanup(func() {
		g.Expect(pool.Close(context.WithoutCancel(t.Context()))).To(Succeed())
		g.Expect(sim.Close()).To(Succeed())
	})
	sessions := cpivcd.NewSessions(pool, vcd.Config{Site: sim.URL(), Org: "acme", CABundle: sim.CA()},
		func() (vcd.Credentials, string, error) {
			return vcd.Credentials{Username: "ccm", Password: "password"}, "1", nil
		})
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	services := factory.Core().V1().Services()
	nodes := factory.Core().V1().Nodes()
	for _, s := range all {
		g.Expect(client.Tracker().Add(s)).To(Succeed())
		g.Expect(services.Informer().GetStore().Add(s)).To(Succeed())
	}
	g.Expect(nodes.Informer().GetStore().Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "192.168.100.11"},
		}},
	})).To(Succeed())
	return cpi.NewLoadBalancers(cpi.LoadBalancerOptions{
		Balancer: cpivcd.NewBalancer(cpivcd.BalancerOptions{
			Session:   sessions.Session,
			Driver:    edge.New(sessions.Session, edge.Options{}),
			ClusterID: "c1",
			VDCs:      []string{"acme-vdc"},
			Gateways:  gateways,
		}),
		Client:   client,
		Services: services.Lister(),
		Nodes:    nodes.Lister(),
		Recorder: record.NewFakeRecorder(100),
		Defaults: (&cpivcd.Dialect{Gateways: gateways}).Defaults("c1", false, false),
	}), sim
}

// serve creates the load balancer of a Service with the retries of Kubernetes' service controller, and returns the
// elapsed time.
func serve(t *testing.T, balancers *cpi.LoadBalancers, s *corev1.Service) time.Duration {
	t.Helper()
	g := NewWithT(t)
	began := time.Now()
	for {
		status, err := balancers.EnsureLoadBalancer(t.Context(), "", s, nil)
		if err == nil {
			g.Expect(status.Ingress).To(HaveLen(1))
			return time.Since(began)
		}
		var retry interface{ RetryAfter() time.Duration }
		pause := serviceBackoff
		if errors.As(err, &retry) {
			pause = retry.RetryAfter()
		}
		t.Logf("after %s: %v: retry in %s", time.Since(began), err, pause)
		g.Expect(time.Since(began)).To(BeNumerically("<", time.Hour))
		<-time.After(pause)
	}
}

// balanced returns a Service of type LoadBalancer with a number of ports.
func balanced(name string, ports int) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	for i := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name:     fmt.Sprintf("p%d", i),
			Protocol: corev1.ProtocolTCP,
			Port:     int32(80 + i),
			NodePort: int32(30080 + i),
		})
	}
	return s
}

// busy returns the total time since a time in which at least one task was running. VCD runs the tasks of a gateway
// sequentially.
func busy(all []vcdsim.Task, since time.Time) time.Duration {
	tasks := slices.DeleteFunc(slices.Clone(all),
		func(t vcdsim.Task) bool { return t.Started.Before(since) || t.Ended.IsZero() })
	slices.SortFunc(tasks, func(a, b vcdsim.Task) int { return a.Started.Compare(b.Started) })
	var total time.Duration
	var until time.Time
	for _, task := range tasks {
		from := task.Started
		if from.Before(until) {
			from = until
		}
		if task.Ended.After(from) {
			total += task.Ended.Sub(from)
			until = task.Ended
		}
	}
	return total
}

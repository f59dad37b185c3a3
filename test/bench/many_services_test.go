// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	// manyServices is the number of Services that are created and deleted at the same time.
	manyServices = 100
	// serviceWorkers is the default of --concurrent-service-syncs.
	serviceWorkers = 100
	// serviceBackoffLimit is the maximum backoff of the service controller.
	serviceBackoffLimit = 5 * time.Minute
	// manyGatewaysRatio is the maximum ratio of the time for ten Services on each of ten gateways to the time of the
	// tasks of one gateway. It is higher than oneService, because the gateways share the rate limit of requests, and
	// the last observation matters more with few Services per gateway.
	manyGatewaysRatio = 1.25
	gatewayAnnotation = "service.beta.kubernetes.io/vcloud-gateway"
	virtualServices   = "1.0.0/loadBalancer/virtualServices"
)

// TestManyServicesTakeLittleLongerThanTheirGatewayTasks creates and deletes 100 Services at the same time. A gateway
// runs one task at a time, so the critical path is the sum of the tasks of the busiest gateway. Each gateway already
// has a Service, because the first one also needs the lookup of the gateway and the IP set of the nodes.
func TestManyServicesTakeLittleLongerThanTheirGatewayTasks(t *testing.T) {
	for gateways, limit := range map[int]float64{1: oneService, 10: manyGatewaysRatio} {
		t.Run(fmt.Sprintf("%d gateways", gateways), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				first := servicesOver("first", gateways, gateways)
				services := servicesOver("service", manyServices, gateways)
				balancers, sim := newBalancers(t, manyGateways(gateways), gatewayConfig(gateways),
					slices.Concat(first, services)...)
				create := func(s *corev1.Service) error {
					_, err := balancers.EnsureLoadBalancer(t.Context(), "", s, nil)
					return err
				}
				inWorkers(t, first, create)

				began := time.Now()
				created := inWorkers(t, services, create)
				checkPath(t, "creation", limit, created, busiestGateway(sim.State(), began))
				g.Expect(countVirtualServices(sim.State())).To(Equal(manyServices + gateways))

				began = time.Now()
				deleted := inWorkers(t, services, func(s *corev1.Service) error {
					return balancers.EnsureLoadBalancerDeleted(t.Context(), "", s)
				})
				checkPath(t, "deletion", limit, deleted, busiestGateway(sim.State(), began))
				g.Expect(countVirtualServices(sim.State())).To(Equal(gateways))
			})
		})
	}
}

// servicesOver returns Services that are distributed among a number of gateways.
func servicesOver(name string, count, gateways int) []*corev1.Service {
	var out []*corev1.Service
	for i := range count {
		s := balanced(fmt.Sprintf("%s-%d", name, i), 1)
		s.Spec.Ports[0].NodePort += int32(i)
		s.Annotations = map[string]string{gatewayAnnotation: gatewayName(i % gateways)}
		out = append(out, s)
	}
	return out
}

func gatewayName(index int) string { return fmt.Sprintf("gateway-%d", index) }

func gatewayConfig(count int) []vcdconfig.Gateway {
	var out []vcdconfig.Gateway
	for i := range count {
		out = append(out, vcdconfig.Gateway{
			Name:        gatewayName(i),
			EdgeGateway: vcdconfig.EdgeGateway{ID: gatewayName(i)},
		})
	}
	return out
}

// manyGateways returns a tenant whose edge gateways have 200 addresses each. The networks are behind the first gateway.
func manyGateways(count int) vcdsim.Model {
	m := vcdsim.K8sTenant()
	internet := &m.ExternalNetworks[0]
	subnet := &internet.Subnets[0]
	subnet.Gateway = netip.MustParsePrefix("198.18.0.1/16")
	subnet.Pool = []vcdsim.Range{{From: netip.MustParseAddr("198.18.0.10"), To: netip.MustParseAddr("198.18.255.250")}}
	vdc := &m.Orgs[1].VDCs[0]
	first := vdc.EdgeGateways[0]
	vdc.EdgeGateways = nil
	for i := range count {
		gateway := first
		gateway.Name = gatewayName(i)
		own := vcdsim.Range{
			From: netip.AddrFrom4([4]byte{198, 18, byte(i), 10}),
			To:   netip.AddrFrom4([4]byte{198, 18, byte(i), 210}),
		}
		gateway.Uplinks = []vcdsim.Uplink{{
			Network: internet.Name,
			Subnets: []vcdsim.UplinkSubnet{{
				Gateway:   subnet.Gateway,
				Addresses: []vcdsim.Range{own},
				Primary:   own.From,
			}},
		}}
		vdc.EdgeGateways = append(vdc.EdgeGateways, gateway)
	}
	for i := range vdc.Networks {
		if vdc.Networks[i].Edge == first.Name {
			vdc.Networks[i].Edge = gatewayName(0)
		}
	}
	return m
}

// inWorkers processes all Services with a rate-limited queue and workers, like the service controller of Kubernetes. It
// returns the time until the last Service is done.
func inWorkers(t *testing.T, services []*corev1.Service, work func(*corev1.Service) error) time.Duration {
	t.Helper()
	began := time.Now()
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[*corev1.Service](serviceBackoff, serviceBackoffLimit))
	var pending sync.WaitGroup
	for _, s := range services {
		pending.Add(1)
		queue.Add(s)
	}
	var workers sync.WaitGroup
	for range serviceWorkers {
		workers.Go(func() {
			for {
				s, closed := queue.Get()
				if closed {
					return
				}
				if finish(queue, s, work(s)) {
					pending.Done()
				}
			}
		})
	}
	pending.Wait()
	took := time.Since(began)
	queue.ShutDown()
	workers.Wait()
	return took
}

// finish requeues a Service after an error. It reports whether the Service is done.
func finish(queue workqueue.TypedRateLimitingInterface[*corev1.Service], s *corev1.Service, err error) bool {
	defer queue.Done(s)
	var retry interface{ RetryAfter() time.Duration }
	switch {
	case err == nil:
		queue.Forget(s)
		return true
	case errors.As(err, &retry):
		queue.AddAfter(s, retry.RetryAfter())
	default:
		queue.AddRateLimited(s)
	}
	return false
}

// checkPath checks the ratio of the time of an operation to the critical path of its tasks.
func checkPath(t *testing.T, operation string, limit float64, took, path time.Duration) {
	t.Helper()
	ratio := took.Seconds() / path.Seconds()
	t.Logf("%s of %d Services: %.1f s, tasks of the busiest gateway %.1f s, ratio %.3f", operation, manyServices,
		took.Seconds(), path.Seconds(), ratio)
	NewWithT(t).Expect(ratio).To(BeNumerically("<=", limit))
}

func countVirtualServices(state vcdsim.State) int {
	count := 0
	for _, d := range state.Documents {
		if d.Path == virtualServices {
			count++
		}
	}
	return count
}

// busiestGateway returns the longest total time of the tasks of a gateway since a time.
func busiestGateway(state vcdsim.State, since time.Time) time.Duration {
	var longest time.Duration
	for _, gateway := range state.Model.Orgs[1].VDCs[0].EdgeGateways {
		tasks := slices.DeleteFunc(slices.Clone(state.Tasks), func(t vcdsim.Task) bool {
			return !slices.Contains(t.Locks, gateway.ID)
		})
		longest = max(longest, busy(tasks, since))
	}
	return longest
}

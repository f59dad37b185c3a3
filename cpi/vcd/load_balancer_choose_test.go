// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestConcurrentServicesGetDifferentAddresses(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	var all []*corev1.Service
	for i := range 8 {
		all = append(all, c.service(fmt.Sprintf("shop-%d", i),
			func(s *corev1.Service) { s.UID = types.UID(fmt.Sprintf("uid-%d", i)) }))
	}

	var wait sync.WaitGroup
	for _, s := range all {
		wait.Go(func() { c.ensured(t, s) })
	}
	wait.Wait()

	seen := map[string]bool{}
	for _, s := range all {
		seen[s.Status.LoadBalancer.Ingress[0].IP] = true
	}
	c.Expect(seen).To(HaveLen(len(all)))
}

func TestServicesThatShareAFloatingIPComeTogether(t *testing.T) {
	c := newCluster(t, vcdsim.IPSpaces(), network("", "nodes"))
	var all []*corev1.Service
	for i := range 4 {
		all = append(all, c.service(fmt.Sprintf("shop-%d", i), func(s *corev1.Service) {
			s.UID = types.UID(fmt.Sprintf("uid-%d", i))
			s.Spec.Ports = s.Spec.Ports[:1]
			s.Spec.Ports[0].Port += int32(i)
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"share-ip", "web")
		}))
	}

	var wait sync.WaitGroup
	for _, s := range all {
		wait.Go(func() { c.ensured(t, s) })
	}
	wait.Wait()

	for _, s := range all {
		c.Expect(s.Status.LoadBalancer.Ingress[0].IP).To(Equal(all[0].Status.LoadBalancer.Ingress[0].IP))
	}
}

func TestInternalServicesShareAnAddress(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	internal := func(uid types.UID, port int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.UID = uid
			s.Spec.Ports = s.Spec.Ports[:1]
			s.Spec.Ports[0].Port = port
			for name, value := range map[string]string{
				"internal":        "true",
				"internal-subnet": "192.168.9.0/24",
				"share-ip":        "web",
			} {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+name, value)
			}
		}
	}
	address := c.ensured(t, c.service("shop", internal("uid-1", 80)))

	c.Expect(c.ensured(t, c.service("blog", internal("uid-2", 81)))).To(Equal(address))
	c.Expect(c.ensured(t, c.service("wiki", internal("uid-3", 82), func(s *corev1.Service) {
		s.Spec.LoadBalancerIP = address
	}))).To(Equal(address))
}

func TestAServiceMayRequestAnAddressThatNoOtherServiceGets(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	probe := c.service("probe")
	address := c.ensured(t, probe)
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", probe)).To(Succeed())
	c.Expect(c.services.Delete(probe)).To(Succeed())

	asking := c.service("shop", func(s *corev1.Service) {
		s.UID = "uid-2"
		s.Spec.LoadBalancerIP = address
	})
	other := c.service("blog", func(s *corev1.Service) { s.UID = "uid-3" })

	c.Expect(c.ensured(t, other)).NotTo(Equal(address))
	c.Expect(c.ensured(t, asking)).To(Equal(address))
}

func TestTheAddressOfAServiceInDeletionIsNotGivenToAnother(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	going := c.service("shop")
	coming := c.service("blog", func(s *corev1.Service) { s.UID = "uid-2" })
	arrived := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	c.sim.SetGate(func(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		if m == vcdsim.Arrived && r.Operation == "POST /cloudapi/1.0.0/loadBalancer/virtualServices" {
			once.Do(func() {
				close(arrived)
				<-release
			})
		}
		return true
	})
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = c.them.EnsureLoadBalancer(t.Context(), "", going, nil) })
	<-arrived
	deleted := going.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	c.Expect(c.services.Update(deleted)).To(Succeed())

	wait.Go(func() { c.ensured(t, coming) })
	c.Eventually(func() string { return c.records(t)[coming.UID] }).Should(ContainSubstring("addresses"))
	close(release)
	wait.Wait()

	c.Expect(c.events.Events).To(BeEmpty())
	c.Expect(c.ensured(t, coming)).NotTo(BeEmpty())
}

func TestARecordedAddressDoesNotBlockAPublishedOne(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	loser := c.service("shop")
	address := c.ensured(t, loser)
	c.copyRecord(t, loser.UID, "uid-2") // of another Service, which never came to use the address
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", loser)).To(Succeed())

	other := c.service("blog", func(s *corev1.Service) { s.UID = "uid-2" })
	c.configure(t, network("", "nodes"))
	c.node("a", "192.168.100.11")
	c.Expect(c.services.Add(loser)).To(Succeed())
	c.Expect(c.services.Add(other)).To(Succeed())

	c.Expect(c.ensured(t, loser)).To(Equal(address))
}

func TestAPublishedAddressIsKeptForItsServiceWhenVCDHasLostIt(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	loser := c.service("shop")
	address := c.ensured(t, loser)
	// as a person might, or a restored backup
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", loser)).To(Succeed())

	newcomer := c.service("blog", func(s *corev1.Service) { s.UID = "uid-2" })

	c.Expect(c.ensured(t, newcomer)).NotTo(Equal(address), "clients of the other Service know it")
	c.Expect(c.ensured(t, loser)).To(Equal(address))
}

func TestAnInternalAddressIsNotThatOfAVM(t *testing.T) {
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 1}
	c := newCluster(t, model, network("", "nodes"))
	vm := c.sim.State().VMs[0].NICs[0].Address
	for address, user := range map[string]string{
		vm:               c.sim.State().VMs[0].Name,
		"192.168.100.11": `node "a"`,
		"192.168.100.1":  "gateway of network nodes",
	} {
		s := c.service("shop-"+address, func(s *corev1.Service) { s.Spec.LoadBalancerIP = address })

		_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)

		event := ""
		c.Expect(c.events.Events).To(Receive(&event))
		c.Expect(err).To(MatchError(ContainSubstring("AddressInUse")), event)
		c.Expect(event).To(And(ContainSubstring(address), ContainSubstring(user)))
	}
	c.Expect(c.writes()).To(BeZero())
	free := c.service("shop", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "192.168.100.250" })
	c.Expect(c.ensured(t, free)).To(Equal("192.168.100.250"))
}

func TestARejectedServiceReservesNoAddresses(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	var all []string
	for i := range 254 {
		all = append(all, fmt.Sprintf("203.0.113.%d", i+1))
	}
	greedy := c.service("dev", func(s *corev1.Service) {
		s.UID = "uid-2"
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"load-balancer-ip", strings.Join(all, ", "))
	})
	_, err := c.them.EnsureLoadBalancer(t.Context(), "", greedy, nil)
	c.Expect(err).To(MatchError(ContainSubstring("InvalidAnnotation")))

	c.Expect(c.ensured(t, c.service("shop"))).NotTo(BeEmpty())
}

func TestAnIncompleteLoadBalancerIsCompletedAlthoughAnotherRequestsItsAddress(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop")
	address := c.ensured(t, s)
	for _, d := range c.sim.State().Documents {
		if d.Path == "1.0.0/loadBalancer/virtualServices" && strings.Contains(string(d.Body), "port=udp-53") {
			c.sim.Edit(func(e *vcdsim.Editor) { c.Expect(e.DeleteDocument(d.ID)).To(BeTrue()) })
		}
	}
	s.Status = corev1.ServiceStatus{}
	c.configure(t, network("", "nodes")) // another leader
	c.node("a", "192.168.100.11")
	c.Expect(c.services.Add(s)).To(Succeed())
	other := c.service("dev", func(s *corev1.Service) {
		s.UID = "uid-2"
		s.Spec.Ports = s.Spec.Ports[1:]
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"load-balancer-ip", address)
	})

	c.Expect(c.ensured(t, s)).To(Equal(address))
	c.Expect(c.events.Events).To(BeEmpty())

	_, err := c.them.EnsureLoadBalancer(t.Context(), "", other, nil)
	c.Expect(err).To(MatchError(ContainSubstring("AddressInUse")))
}

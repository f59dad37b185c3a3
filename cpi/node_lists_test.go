// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

func TestARejoinedNodeKeepsItsAddresses(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	var lists nodeLists
	newEvents := func(at time.Time) []string {
		nodes, _, err := lists.next(corelisters.NewNodeLister(indexer), at)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(nodes).To(HaveLen(1))
		var all []string
		for _, a := range service.InternalIPs(nodes[0]) {
			all = append(all, a.String())
		}
		return all
	}
	joins := func(uid types.UID, addresses ...corev1.NodeAddress) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:              "worker",
			UID:               uid,
			CreationTimestamp: metav1.NewTime(now),
		}}
		n.Status.Addresses = addresses
		g.Expect(indexer.Add(n)).To(Succeed())
	}

	joins("first")
	g.Expect(newEvents(now)).To(BeEmpty(), "it is unknown")
	joins("first", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"})
	g.Expect(newEvents(now)).To(Equal([]string{"10.0.0.1"}))
	joins("second")
	g.Expect(newEvents(now)).To(Equal([]string{"10.0.0.1"}), "it is another object of the same machine")
	g.Expect(newEvents(now)).To(Equal([]string{"10.0.0.1"}), "also the next time")
	joins("second", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.2"})
	g.Expect(newEvents(now)).To(Equal([]string{"10.0.0.2"}))
	joins("second")
	g.Expect(newEvents(now)).To(BeEmpty(), "it lost its address")
	joins("second", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.2"})
	g.Expect(newEvents(now)).To(Equal([]string{"10.0.0.2"}))
	joins("third")
	g.Expect(newEvents(now.Add(time.Hour))).To(BeEmpty(), "it never gets one")
}

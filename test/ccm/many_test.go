// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// benchmark enables measurements that take longer than make test allows.
var benchmark = flag.Bool("ccm-bench", false,
	"measure the memory of the cloud controller manager with 500 nodes and 200 Services")

const (
	manyNodes    = 500
	manyServices = 200
	// quickQPS and quickBurst effectively disable the rate limit for requests to the API server.
	quickQPS, quickBurst = "--kube-api-qps=300", "--kube-api-burst=600"
)

// TestManyNodes starts a controller with 500 uninitialized nodes. With -ccm-bench, it adds 200 Services and measures
// the memory of the controller.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := ownCluster(t, "many")
	w, err := startFixture(t.Context(), "many", fixtureOption{
		cluster:  h,
		machines: manyNodes,
		args:     []string{nodeControllers, quickQPS, quickBurst, "--concurrent-node-syncs=10"},
		vcd:      []vcdOption{instant},
		settings: settings{"nodes.maxAge": "10m", "loadbalancer.driftInterval": "30s"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(w.end()).To(Succeed()) })
	g.Expect(w.controller.Stop()).To(Succeed())
	for _, m := range w.cloud.machines()[:baseNodes] { // the machines of every cluster
		g.Expect(h.client.Delete(t.Context(), kubelet(m))).To(Succeed())
	}
	parallel(t, w.cloud.machines(),
		func(ctx context.Context, m machine) error { return h.createNode(ctx, kubelet(m, balanced)) })
	w.cloud.forget()

	began := time.Now()
	g.Expect(w.controller.Start(t.Context())).To(Succeed())
	g.Eventually(func() (int, error) { return waitingNodes(t.Context(), h.client) }, 2*timeout,
		time.Second).Should(BeZero())

	reads := describe(w.cloud.requests(), reading)
	queries := 0
	single := 0
	for _, r := range reads {
		switch {
		case strings.Contains(r, "/api/query"):
			queries++
		case strings.Contains(r, "/api/vApp"):
			single++
		}
	}
	used, err := w.controller.memory()
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("%d nodes were initialized in %s with %d inventory queries and %d reads of a single machine; memory: %s",
		manyNodes, time.Since(began).Round(time.Second), queries, single, used)
	g.Expect(queries).To(BeNumerically("<=", 10))
	g.Expect(single).To(BeZero(), "the inventory query should replace reads of single machines")
	g.Expect(describe(w.cloud.requests(), writing)).To(BeEmpty())

	if *benchmark {
		measureServices(t, w)
	}
}

// measureServices adds Services and measures the peak memory of the controller.
func measureServices(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	ns := w.namespace(t)
	var all []*service
	for i := range manyServices {
		all = append(all, w.serviceIn(t, ns, fmt.Sprintf("web-%d", i), ports(port("http", 80), port("https", 443))))
	}
	for _, s := range all {
		s.awaitServed()
	}
	<-time.After(45 * time.Second) // time for a resync of nodes and a drift check of load balancers
	used, err := w.controller.memory()
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("%d nodes and %d Services: memory: %s", manyNodes, manyServices, used)
	g.Expect(used.Peak).To(BeNumerically("<", 100), "MiB")
	for _, s := range all {
		g.Expect(s.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metaOf(s)})).To(Succeed())
	}
	for _, s := range all {
		s.delete()
	}
}

// waitingNodes counts nodes that are not initialized.
func waitingNodes(ctx context.Context, c client.Client) (int, error) {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return 0, err
	}
	waiting := manyNodes - len(nodes.Items)
	for i := range nodes.Items {
		for _, taint := range nodes.Items[i].Spec.Taints {
			if taint.Key == uninitialized {
				waiting++
			}
		}
	}
	return waiting, nil
}

// parallel calls do for each item, with limited concurrency.
func parallel[T any](t *testing.T, all []T, do func(context.Context, T) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	NewWithT(t).Expect(group.Wait()).To(Succeed())
}

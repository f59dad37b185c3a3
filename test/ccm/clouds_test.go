// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

// otherClouds returns functions that start clouds other than VMware Cloud Director, with a number of machines. Tiers of
// VPCs are only tested with -ccm-long.
func otherClouds() map[string]func(context.Context, int) (cloud, error) {
	out := map[string]func(context.Context, int) (cloud, error){
		"cloudstack": func(_ context.Context, n int) (cloud, error) { return newCloudStack(n, ""), nil },
		"vsphere":    func(ctx context.Context, n int) (cloud, error) { return newVSphere(ctx, n) },
	}
	if *longForms {
		out["cloudstack-vpc"] = func(_ context.Context, n int) (cloud, error) {
			return newCloudStack(n, cloudstacksim.VPCID), nil
		}
	}
	return out
}

// TestOtherClouds runs the scenarios of Nodes and Services on each other cloud, each in a separate cluster with the
// permissions of the cloud's manifest. Scenarios that need a missing capability are skipped, with the reason.
func TestOtherClouds(t *testing.T) {
	t.Parallel()
	for name, start := range otherClouds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c, err := start(t.Context(), fleet)
			g.Expect(err).NotTo(HaveOccurred())
			h := clusterOf(t, name, c.manifest(), c.machines()[:baseNodes])
			t.Cleanup(func() { g.Expect(h.auditRights()).To(Succeed()) })
			w := newFixture(t, name, fixtureOption{cluster: h, cloud: c, args: []string{nodeControllers}})
			nodeScenarios(t, w)
			for _, s := range scenarios() {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					for _, need := range []capability{balancers, s.needs} {
						if reason, lacking := c.lacks()[need]; lacking {
							t.Skipf("%s has no %s: %s", name, need, reason)
						}
					}
					s.run(t, w, by(""))
				})
			}
		})
	}
}

// TestMemoryOnOtherClouds measures the memory of the process with 500 nodes and, where the cloud has load balancers,
// with 200 Services. It requires -ccm-bench.
func TestMemoryOnOtherClouds(t *testing.T) {
	if !*benchmark {
		t.Skip("-ccm-bench is not set")
	}
	for name, start := range otherClouds() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, err := start(t.Context(), manyNodes)
			g.Expect(err).NotTo(HaveOccurred())
			h := clusterOf(t, "many-"+name, c.manifest(), nil)
			parallel(t, c.machines(),
				func(ctx context.Context, m machine) error { return h.createNode(ctx, kubelet(m, balanced)) })
			w := newFixture(t, "many-"+name, fixtureOption{
				cluster:  h,
				cloud:    c,
				args:     []string{nodeControllers, quickQPS, quickBurst, "--concurrent-node-syncs=10"},
				settings: settings{"nodes.maxAge": "30s", "loadbalancer.driftInterval": "30s"},
			})
			g.Eventually(func() (int, error) { return waitingNodes(t.Context(), h.client) }, 2*timeout,
				time.Second).Should(BeZero())

			if _, none := c.lacks()[balancers]; !none {
				measureServices(t, w)
				return
			}
			<-time.After(45 * time.Second) // time for a resync of nodes
			used, err := w.controller.memory()
			g.Expect(err).NotTo(HaveOccurred())
			t.Logf("%d nodes: memory: %s", manyNodes, used)
			g.Expect(used.Peak).To(BeNumerically("<", 100), "MiB")
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// TestScaleDownOfRealNodes removes a worker, adds another one, and removes one again, while clients use a Service.
func TestScaleDownOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) { o.workers = 2 })
	for round := range 2 {
		s.run(fmt.Sprintf("a worker is removed without failed requests, round %d", round+1), (*realCluster).testScaleDown)
		s.scaleWorkers(2)
	}
	s.deleteCluster()
}

func (s *realCluster) testScaleDown() {
	web := s.probe("LoadBalancer", s.q.website)
	started := time.Now()
	s.scaleWorkers(1)
	s.t.Logf("the worker is gone after %s", time.Since(started).Round(time.Second))
	web.finish(s.t)
	s.Expect(web.failed).To(BeZero(), "failed requests")
}

// scaleWorkers changes the number of workers, and waits until the VMs of the cluster are its control plane and these.
func (s *realCluster) scaleWorkers(workers int) {
	s.manage("", "scale", "machinedeployment", clusterName+"-md-0", fmt.Sprintf("--replicas=%d", workers))
	s.Eventually(s.vmIDs, rolloutWithin, pollTest).Should(HaveLen(1 + workers))
	s.waitUntilReady(1+workers, rolloutWithin)
}

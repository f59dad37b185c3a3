// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

var auditedPods = flag.Int("pods", 0, "number of pods with which to measure the cost of the pod proxy policies")

// TestCostOfPodProxyPolicies measures the latency of pod creation without policies, with them, and in a namespace with
// separate parameters. docs/networking/proxy.md contains the results.
func TestCostOfPodProxyPolicies(t *testing.T) {
	if *auditedPods == 0 {
		t.Skip("takes a minute: go test ./addons -run Cost -pods 1000 -v")
	}
	p := startProxyCluster(t, "")
	p.namespace("plain", nil, nil)
	p.namespace("own", nil, map[string]string{"noProxy": "mysql"})
	p.measure(t, "without policies", "plain")
	p.install("v1")
	p.Eventually(func() []string { return env(p.create("own", nil).Spec.Containers[0].Env) }, testtime.Patience).
		Should(ContainElement(HaveSuffix(",mysql")))
	p.measure(t, "with policies", "plain")
	p.measure(t, "with policies and parameters of the namespace", "own")
}

// measure creates pods with three containers sequentially, and logs the latencies.
func (p proxyCluster) measure(t *testing.T, what, namespace string) {
	t.Helper()
	took := make([]time.Duration, 0, *auditedPods)
	for range *auditedPods {
		began := time.Now()
		p.create(namespace, func(pod *corev1.Pod) {
			variables := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C", Value: "3"}}
			pod.Spec.Containers = []corev1.Container{
				{Name: "main", Image: "busybox", Env: variables},
				{Name: "sidecar", Image: "busybox", Env: variables},
			}
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "busybox", Env: variables}}
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	at := func(percent int) string { return fmt.Sprintf("%.2f ms", took[len(took)*percent/100].Seconds()*1000) }
	t.Logf("%s: median %s, 90th percentile %s, 99th %s", what, at(50), at(90), at(99))
}

// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
)

// withPodProxy returns the replacements for a cluster with a proxy, a Kubernetes version and a kubeadm configuration.
func withPodProxy(pods, version, config string) []string {
	return []string{
		"  controlPlaneLoadBalancer: {type: KubeVIP}\n",
		"  controlPlaneLoadBalancer: {type: KubeVIP}\n  proxy: {httpsProxy: 'http://proxy:3128', pods: " + pods + "}\n",
		"spec: {replicas: 3, machineTemplate:",
		"spec: {version: " + version + ", kubeadmConfigSpec: " + config + ", replicas: 3, machineTemplate:",
		"ubuntu-2404-kube-v1.36.3",
		"ubuntu-2404-kube-" + version,
	}
}

func TestPodsWithoutTheProxyCauseAWarning(t *testing.T) {
	const enabled = `{clusterConfiguration: {apiServer: {extraArgs: [
  {name: feature-gates, value: "Other=true,MutatingAdmissionPolicy=true"},
  {name: runtime-config, value: admissionregistration.k8s.io/v1beta1=true}]}}}`
	const half = `{clusterConfiguration: {apiServer: {extraArgs: [
  {name: feature-gates, value: "MutatingAdmissionPolicy=true"}]}}}`
	for name, tt := range map[string]struct {
		pods, version, config string
		says, remedy          string
	}{
		"version 1.33":                            {"Inject", "v1.33.4", "{}", "v1.33.4 does not serve", "spec.proxy.pods"},
		"version 1.34 without arguments":          {"Inject", "v1.34.1", "{}", "only if arguments", "KubeadmControlPlane demo-control-plane"},
		"version 1.35 with only the feature gate": {"Inject", "v1.35.0", half, "only if arguments", "runtime-config="},
		"version 1.35 with arguments":             {"Inject", "v1.35.0", enabled, "", ""},
		"version 1.36":                            {"Inject", "v1.36.3", "{}", "", ""},
		"no proxy for pods":                       {"None", "v1.33.4", "{}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fault{text: withPodProxy(tt.pods, tt.version, tt.config)})

			warnings := findingsOf(s.run(t), "manifest")

			if tt.says == "" {
				s.Expect(warnings).To(BeEmpty())
				return
			}
			s.Expect(warnings).To(ConsistOf(And(
				HaveField("Severity", doctor.Warning),
				HaveField("Message", ContainSubstring(tt.says)),
				HaveField("Remedy", ContainSubstring(tt.remedy)),
			)))
		})
	}
}

func TestTheClassConfiguresThePodProxyInEverySupportedVersion(t *testing.T) {
	for version, warned := range map[string]bool{"v1.33.4": true, "v1.34.1": false, "v1.35.0": false, "v1.36.3": false} {
		t.Run(version, func(t *testing.T) {
			s := startTopology(t, fault{text: []string{
				"v1.36.3",
				version,
				"      - name: image\n",
				"      - name: proxy\n        value: {httpsProxy: 'http://proxy:3128'}\n      - name: image\n",
			}})

			warnings := findingsOf(s.run(t), "manifest")

			if warned {
				s.Expect(warnings).To(HaveLen(1))
			} else {
				s.Expect(warnings).To(BeEmpty())
			}
		})
	}
}

// findingsOf returns the findings of one check about pods.
func findingsOf(report doctor.Report, check string) []doctor.Finding {
	var list []doctor.Finding
	for _, f := range report.Findings {
		if f.Check == check && strings.HasPrefix(f.Message, "pods ") {
			list = append(list, f)
		}
	}
	return list
}

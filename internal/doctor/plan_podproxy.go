// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// The first Kubernetes versions that serve MutatingAdmissionPolicies.
var (
	policiesBeta   = version.MustParseGeneric("1.34") // as a beta API that must be enabled
	policiesServed = version.MustParseGeneric("1.36") // by default
)

// podsWithoutProxy returns the reason why pods of a cluster get no proxy settings, and a remedy. Both are empty if pods
// get the settings or no proxy is planned.
func podsWithoutProxy(c *infrav1.VCDCluster, groups []machineGroup) (message, remedy string) {
	proxy := c.Spec.Proxy
	if proxy.HTTPProxy == "" && proxy.HTTPSProxy == "" || proxy.Pods == infrav1.PodProxyNone {
		return "", ""
	}
	for _, group := range groups {
		kubernetes, err := version.ParseGeneric(group.version)
		switch {
		case !group.controlPlane || err != nil || kubernetes.AtLeast(policiesServed):
		case kubernetes.LessThan(policiesBeta):
			return "pods get no proxy, because Kubernetes " + group.version + " does not serve MutatingAdmissionPolicies", "set spec.proxy.pods of the VCDCluster to None, or use Kubernetes 1.36"
		case !enables(group.apiServerArgs):
			return "pods get no proxy, because Kubernetes " + group.version + " serves MutatingAdmissionPolicies only if arguments of the API server enable them", "set feature-gates=MutatingAdmissionPolicy=true and runtime-config=admissionregistration.k8s.io/v1beta1=true in extraArgs of the API server of " +
				group.name
		}
	}
	return "", ""
}

// enables reports whether arguments of an API server enable the beta API of MutatingAdmissionPolicies.
func enables(args map[string][]string) bool {
	hasOne := func(argument string, values ...string) bool {
		return slices.ContainsFunc(args[argument], func(v string) bool { return slices.Contains(values, v) })
	}
	return hasOne("feature-gates", "MutatingAdmissionPolicy=true", "AllBeta=true") &&
		hasOne("runtime-config", "admissionregistration.k8s.io/v1beta1=true", "admissionregistration.k8s.io/v1beta1",
			"api/beta=true", "api/all=true")
}

// apiServerArgs returns the arguments of the API server in a KubeadmControlPlane: their values, split at commas, by
// name.
func apiServerArgs(controlPlane *unstructured.Unstructured) map[string][]string {
	all := map[string][]string{}
	list, _, _ := unstructured.NestedSlice(controlPlane.Object, "spec", "kubeadmConfigSpec", "clusterConfiguration",
		"apiServer", "extraArgs")
	for _, item := range list {
		arg, _ := item.(map[string]any)
		name, _ := arg["name"].(string)
		value, _ := arg["value"].(string)
		all[name] = append(all[name], strings.Split(value, ",")...)
	}
	return all
}

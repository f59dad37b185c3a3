// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
)

const (
	ciliumSet = `
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: cni-cilium}
spec: {clusterSelector: {matchLabels: {cni: cilium}}}
`
	calicoSet = `
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: cni-calico}
spec: {clusterSelector: {matchLabels: {cni: calico}}}
`
	setForAll = `
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: all}
spec: {clusterSelector: {}}
`
	ciliumChart = `
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: cni-cilium}
spec: {clusterSelector: {matchExpressions: [{key: cni, operator: In, values: [cilium, other]}]}}
`
)

func TestANetworkPluginThatWillNotBeInstalledIsAWarning(t *testing.T) {
	empty := newManagementCluster(t, "")
	for name, tt := range map[string]struct {
		cluster string // metadata of the Cluster
		more    string // in the manifest
		list    doctor.List
		says    string
	}{
		"no label":                       {"{name: demo}", "", empty.list, ""},
		"no plug-in":                     {"{name: demo, labels: {cni: none}}", "", empty.list, ""},
		"a ClusterResourceSet":           {"{name: demo, labels: {cni: cilium}}", "", newManagementCluster(t, ciliumSet).list, ""},
		"a HelmChartProxy":               {"{name: demo, labels: {cni: cilium}}", "", newManagementCluster(t, ciliumChart).list, ""},
		"in the manifest":                {"{name: demo, labels: {cni: cilium}}", ciliumSet, empty.list, ""},
		"an unreachable cluster":         {"{name: demo, labels: {cni: cilium}}", "", unreachable, ""},
		"nothing":                        {"{name: demo, labels: {cni: cilium}}", "", empty.list, "label cni=cilium"},
		"another plug-in":                {"{name: demo, labels: {cni: cilium}}", "", newManagementCluster(t, calicoSet).list, "label cni=cilium"},
		"an add-on of all the clusters":  {"{name: demo, labels: {cni: cilium}}", "", newManagementCluster(t, setForAll).list, "label cni=cilium"},
		"no management cluster is given": {"{name: demo, labels: {cni: cilium}}", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fault{text: []string{"kind: Cluster\nmetadata: {name: demo}", "kind: Cluster\nmetadata: " + tt.cluster}})

			plan, err := doctor.ReadPlan(t.Context(), doctor.Sources{
				Manifests: []io.Reader{strings.NewReader(s.manifest), strings.NewReader(tt.more)},
				List:      tt.list,
			})

			s.Expect(err).NotTo(HaveOccurred())
			findings := s.check(t, plan).Findings
			if tt.says == "" {
				s.Expect(findings).To(BeEmpty())
				return
			}
			s.Expect(findings).To(ConsistOf(And(
				HaveField("Severity", doctor.Warning),
				HaveField("Check", "manifest"),
				HaveField("Message", ContainSubstring(tt.says)),
				HaveField("Remedy", ContainSubstring("cni-cilium.yaml")),
			)))
		})
	}
}

// list has the objects of all namespaces.
func (c *managementCluster) list(
	_ context.Context, kind schema.GroupVersionKind, _ string,
) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, object := range c.objects {
		if object.GroupVersionKind() == kind {
			found = append(found, object)
		}
	}
	return found, nil
}

func unreachable(context.Context, schema.GroupVersionKind, string) ([]*unstructured.Unstructured, error) {
	return nil, errors.New("connection refused")
}

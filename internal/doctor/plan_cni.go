// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// The templates set label cni of a Cluster, which selects a network plug-in, or none.
const (
	networkPluginLabel = "cni"
	noNetworkPlugin    = "none"
)

// installers are the kinds that install add-ons in the Clusters that their clusterSelector selects. Clusters with Cluster
// API's add-on provider for Helm have the second one.
var installers = []schema.GroupVersionKind{
	addonsv1.GroupVersion.WithKind("ClusterResourceSet"),
	{Group: addonsv1.GroupVersion.Group, Version: "v1alpha1", Kind: "HelmChartProxy"},
}

// A List reads the objects of a kind in a namespace of a management cluster. An empty namespace is that of the
// kubeconfig context. There are no objects of a kind that is not installed.
type List func(context.Context, schema.GroupVersionKind, string) ([]*unstructured.Unstructured, error)

// missingNetworkPlugin returns the network plug-in that the Cluster of a manifest selects, if neither the manifest nor the
// management cluster has an object that installs it. It returns nothing if the management cluster cannot be read.
func missingNetworkPlugin(ctx context.Context, manifest []*unstructured.Unstructured, list List) string {
	at := slices.IndexFunc(manifest, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Cluster" })
	if at < 0 || list == nil {
		return ""
	}
	cluster := manifest[at]
	plugin := cluster.GetLabels()[networkPluginLabel]
	if plugin == "" || plugin == noNetworkPlugin {
		return ""
	}
	candidates := manifest
	for _, kind := range installers {
		found, err := list(ctx, kind, cluster.GetNamespace())
		if err != nil {
			return ""
		}
		candidates = slices.Concat(candidates, found)
	}
	for _, candidate := range candidates {
		if installsNetworkPlugin(candidate, cluster.GetLabels()) {
			return ""
		}
	}
	return plugin
}

// installsNetworkPlugin reports whether an object installs an add-on by the label of network plug-ins of a Cluster.
func installsNetworkPlugin(object *unstructured.Unstructured, cluster labels.Set) bool {
	kind := object.GroupVersionKind().GroupKind()
	if !slices.ContainsFunc(installers, func(i schema.GroupVersionKind) bool { return i.GroupKind() == kind }) {
		return false
	}
	raw, _, _ := unstructured.NestedMap(object.Object, "spec", "clusterSelector")
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &parsed); err != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return false
	}
	requirements, _ := selector.Requirements()
	byPlugin := slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == networkPluginLabel })
	return byPlugin && selector.Matches(cluster)
}

// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Alive maps the IDs of clusters that exist in management clusters to their names.
type Alive map[string]string

// Has reports whether a cluster exists.
func (a Alive) Has(cluster string) bool { return a[cluster] != "" }

// versions are the API versions of VCDClusters, of this provider and of CAPVCD.
var versions = []string{"v1beta4", "v1beta3", "v1beta2", "v1beta1"}

// idFields are the fields of a VCDCluster, in any version, whose values may mark its objects in VCD.
var idFields = [][]string{
	{"metadata", "uid"},
	{"spec", "infraID"},
	{"spec", "infraId"},
	{"status", "infraId"},
	{"spec", "rdeId"},
	{"status", "rdeId"},
	{"spec", "rde", "id"},
	{"status", "rde", "id"},
}

var errNoClusters = errors.New("the management cluster has no kind VCDCluster, so the existing clusters are unknown")

// Add adds the clusters of a management cluster, in all namespaces.
func (a Alive) Add(ctx context.Context, c client.Reader, management string) error {
	for _, version := range versions {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{
			Group:   "infrastructure.cluster.x-k8s.io",
			Version: version,
			Kind:    "VCDClusterList",
		})
		err := c.List(ctx, list)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing VCDClusters of %s: %w", management, err)
		}
		for _, item := range list.Items {
			a.addCluster(item, management)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", management, errNoClusters)
}

func (a Alive) addCluster(c unstructured.Unstructured, management string) {
	for _, field := range idFields {
		id, found, err := unstructured.NestedString(c.Object, field...)
		if err == nil && found && id != "" {
			a[id] = management + ": " + c.GetNamespace() + "/" + c.GetName()
		}
	}
}

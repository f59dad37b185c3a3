// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An item identifies an object in a workload cluster.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func itemOf(u unstructured.Unstructured) item {
	return item{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (i item) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(i.APIVersion, i.Kind))
	u.SetNamespace(i.Namespace)
	u.SetName(i.Name)
	return u
}

// String returns the kind and the name of the object.
func (i item) String() string {
	return strings.TrimSpace(i.Kind + " " + strings.TrimPrefix(i.Namespace+"/"+i.Name, "/"))
}

func itemsOf(objects []unstructured.Unstructured) []item {
	items := make([]item, 0, len(objects))
	for _, u := range objects {
		items = append(items, itemOf(u))
	}
	return items
}

// itemNames returns the names of items, sorted.
func itemNames(items []item) []string {
	all := make([]string, 0, len(items))
	for _, i := range items {
		all = append(all, i.String())
	}
	slices.Sort(all)
	return all
}

// same reports whether two items are the same object, regardless of the API version.
func (i item) same(other item) bool {
	group := func(i item) string {
		g, _, found := strings.Cut(i.APIVersion, "/")
		if !found {
			return ""
		}
		return g
	}
	return group(i) == group(other) && i.Kind == other.Kind && i.Namespace == other.Namespace && i.Name == other.Name
}

// without returns the items that are not among others, without duplicates.
func without(items, others []item) []item {
	var left []item
	for _, i := range items {
		if !slices.ContainsFunc(others, i.same) && !slices.ContainsFunc(left, i.same) {
			left = append(left, i)
		}
	}
	return left
}

// readItems reads a list of items from an annotation. An invalid annotation yields no items.
func readItems(annotation string) []item {
	var items []item
	if json.Unmarshal([]byte(annotation), &items) != nil {
		return nil
	}
	return items
}

func writeItems(items []item) (string, error) {
	if len(items) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return "", fmt.Errorf("writing a list of objects: %w", err)
	}
	return string(raw), nil
}

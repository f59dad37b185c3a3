// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers"
)

// An indexedClient reads from the API server, and selects objects by the indexes of the manager's cache. Without a
// cache, a reconcile sees all earlier writes of a test.
type indexedClient struct {
	client.Client

	values map[indexKey]client.IndexerFunc
}

type indexKey struct {
	kind  reflect.Type
	field string
}

func newIndexedClient(ctx context.Context, c client.Client) (client.Client, error) {
	i := &indexedClient{Client: c, values: map[indexKey]client.IndexerFunc{}}
	return i, controllers.RegisterIndexes(ctx, i)
}

// IndexField implements [client.FieldIndexer].
func (c *indexedClient) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	c.values[indexKey{reflect.TypeOf(obj), field}] = values
	return nil
}

// List implements [client.Reader].
func (c *indexedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	if o.FieldSelector == nil {
		return c.Client.List(ctx, list, opts...)
	}
	wanted := o.FieldSelector.Requirements()
	o.FieldSelector = nil
	if err := c.Client.List(ctx, list, o); err != nil {
		return err
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return err
	}
	var found []runtime.Object
	for _, item := range items {
		obj, _ := item.(client.Object) // all kinds with indexes are
		matches := true
		for _, r := range wanted {
			values, ok := c.values[indexKey{reflect.TypeOf(obj), r.Field}]
			if !ok {
				return fmt.Errorf("%T has no index %s", obj, r.Field)
			}
			matches = matches && slices.Contains(values(obj), r.Value)
		}
		if matches {
			found = append(found, item)
		}
	}
	return apimeta.SetList(list, found)
}

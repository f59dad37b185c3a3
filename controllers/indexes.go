// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
)

// RegisterIndexes adds the indexes that the reconcilers use to the cache of a manager. It must run before the manager
// starts.
func RegisterIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return index.Register(ctx, indexer)
}

// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// RemoveDocumentsOf removes all documents of a parent.
func RemoveDocumentsOf(s *cloud.Cloud, parent string) {
	for path := range s.Store.Documents {
		s.Store.Documents[path] = slices.DeleteFunc(slices.Clone(s.Store.Documents[path]),
			func(d *store.Object) bool { return d.Parent == parent })
	}
}

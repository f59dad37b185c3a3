// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// VDCToChange returns the VDC in the path and the parsed body. It refuses callers other than providers; right is the
// right that the error mentions.
func VDCToChange(r *api.Request, right string) (*store.Org, *store.VDC, *xmltree.Node, error) {
	if err := r.ByProvider(right); err != nil {
		return nil, nil, nil, err
	}
	org, v, err := OwnVDC(r)
	if err != nil {
		return nil, nil, nil, err
	}
	tree, err := r.Tree()
	return org, v, tree, err
}

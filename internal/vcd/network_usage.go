// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/url"
)

// A NetworkUsage is how much of the static pools of a network is used.
type NetworkUsage struct {
	Ref

	Status    Realization
	Addresses Amount // of the static pools; a limit of 0 is none
}

type wireUsage struct {
	wireRef

	Status Realization `json:"status"`
	Total  *int        `json:"totalIpCount"`
	Used   *int        `json:"usedIpCount"`
}

// Usage reads how much of the static pools of a network is used.
func (n *Networks) Usage(ctx context.Context, network Ref) (NetworkUsage, error) {
	return read(ctx, n.client, "network", network.Name, networksPath+"/"+url.PathEscape(network.ID),
		func(w *wireUsage) NetworkUsage {
			return NetworkUsage{
				Ref:       refOf(&w.wireRef),
				Status:    w.Status,
				Addresses: Amount{Used: number(w.Used), Limit: number(w.Total)},
			}
		})
}

// List returns the networks that VMs of a VDC can be connected to, sorted by name, without those of its VDC group.
func (n *Networks) List(ctx context.Context, vdc VDC) ([]Ref, error) {
	return listAs(ctx, n.client, listing{
		path:  networksPath,
		what:  "networks",
		of:    " of VDC " + vdc.Name,
		sort:  "name",
		size:  networksPage,
		terms: []term{is("ownerRef.id", vdc.ID), is("_context", "includeAccessible")},
	}, func(w *wireUsage) Ref { return refOf(&w.wireRef) })
}

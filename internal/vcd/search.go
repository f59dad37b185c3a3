// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A Search selects the VMs that match any of its fields.
type Search struct {
	VApps  []string // names of vApps in the VDCs
	Prefix string   // prefix of names of vApps in the VDCs; empty: none
	Names  []string // names of VMs in the VDCs
	IDs    []string // URNs of VMs anywhere in the organization
}

// SearchVMs returns all VMs that a search selects, sorted by name, or an error. It sends as few queries as the length
// of URLs permits, and does not query VMs by their URN that it has already found in the VDCs.
func (i *Inventory) SearchVMs(ctx context.Context, vdcs []VDC, search Search) ([]VMRecord, error) {
	found := map[string]VMRecord{}
	filters, err := i.filtersInVDCs(vdcs, search)
	if err != nil {
		return nil, err
	}
	if err := i.collectVMs(ctx, filters, found); err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(search.IDs), func(id string) bool {
		_, ok := found[id]
		return ok || urn.UUID(id) == ""
	})
	filters = nil
	for _, chunk := range fiql.AnyOfChunks("id", missing, api.MaxFilter) {
		filters = append(filters, fiql.AnyOf(chunk...))
	}
	if err := i.collectVMs(ctx, filters, found); err != nil {
		return nil, err
	}
	all := make([]VMRecord, 0, len(found))
	for _, record := range found {
		all = append(all, record)
	}
	slices.SortFunc(all, func(a, b VMRecord) int { return compareRefs(a.Ref, b.Ref) })
	return all, nil
}

// filtersInVDCs returns the filters for the fields of a search that only apply to VDCs.
func (i *Inventory) filtersInVDCs(vdcs []VDC, search Search) ([]string, error) {
	if len(vdcs) == 0 {
		return nil, nil
	}
	var within []fiql.Term
	for _, vdc := range vdcs {
		within = append(within, fiql.Is("vdc", vdc.ID))
	}
	for _, name := range slices.Concat(search.VApps, search.Names) {
		if err := fiql.CheckName("VM or vApp", name, ""); err != nil {
			return nil, err
		}
	}
	terms := []string{}
	if search.Prefix != "" {
		if err := fiql.CheckName("vApp", search.Prefix, ""); err != nil {
			return nil, err
		}
		terms = append(terms, fiql.Is("containerName", search.Prefix).String()+"*") // the asterisk is VCD's wildcard
	}
	for _, name := range search.VApps {
		terms = append(terms, fiql.Is("containerName", name).String())
	}
	for _, name := range search.Names {
		terms = append(terms, fiql.Is("name", name).String())
	}
	var filters []string
	for chunk := range chunksOf(terms, api.MaxFilter) {
		filters = append(filters, fiql.AnyOf(within...)+";("+strings.Join(chunk, ",")+")")
	}
	return filters, nil
}

// chunksOf splits terms into chunks whose total length is below limit.
func chunksOf(terms []string, limit int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(terms) > 0 {
			n := 0
			length := 0
			for n < len(terms) && (n == 0 || length+len(terms[n]) <= limit) {
				length += len(terms[n]) + 1
				n++
			}
			if !yield(terms[:n]) {
				return
			}
			terms = terms[n:]
		}
	}
}

func (i *Inventory) collectVMs(ctx context.Context, filters []string, into map[string]VMRecord) error {
	for _, filter := range filters {
		records, err := i.queryVMs(ctx, filter+";"+fiql.AllOf(fiql.Is("isVAppTemplate", "false")))
		i.site.Metrics.InventoryQueried(err)
		if err != nil {
			return err
		}
		for _, record := range records {
			if row := vmRecord(record); !record.VAppTemplate && !record.Deleted {
				into[row.ID] = row
			}
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// logicalGroups returns the collection of logical VM groups. A logical VM group combines VM groups of several clusters
// under one name.
func logicalGroups() *documents.Collection {
	return &documents.Collection{
		Path:     "1.0.0/logicalVmGroups",
		Kind:     "logicalVmGroup",
		Right:    "LOGICAL_VM_GROUP",
		Provider: true,
		Unique:   []string{"name"},
		Required: []string{"name", "pvdcId"},
		Fixed:    []string{"pvdcId"},
		Defaults: map[string]any{"description": nil, "namedVmGroupReferences": []any{}},
		Check:    checkLogicalGroup,
		Free:     checkLogicalGroupUnused,
	}
}

// NamedGroupID returns the ID by which policies refer to a VM group.
func NamedGroupID(s *cloud.Cloud, name string) string { return s.IDs.Named("namedVmGroup", name) }

func checkLogicalGroup(r *api.Request, body map[string]any) error {
	if store.Bare(store.Text(body, "pvdcId")) != ProviderID(r.Cloud) {
		return store.Forbidden("PROVIDER_VDC_VIEW", store.Text(body, "pvdcId"))
	}
	for _, id := range documents.Members(body, "namedVmGroupReferences") {
		if !slices.ContainsFunc(VMGroups, func(name string) bool { return NamedGroupID(r.Cloud, name) == id }) {
			return store.BadRequest("The VM group %q does not exist.", id)
		}
	}
	return nil
}

// checkLogicalGroupUnused refuses to delete a logical VM group that a placement policy refers to.
func checkLogicalGroupUnused(s *cloud.Cloud, d *store.Object) error {
	for _, p := range s.Store.Model.Policies {
		maps, _ := p.Fields["pvdcLogicalVmGroupsMap"].([]any)
		for _, x := range maps {
			entry, _ := x.(map[string]any)
			if slices.ContainsFunc(documents.Members(entry, "logicalVmGroups"),
				func(id string) bool { return strings.EqualFold(id, store.Bare(d.ID())) }) {
				return documents.InUse("logical VM group", store.Text(d.Body, "name"), "compute policy "+p.Name)
			}
		}
	}
	return nil
}

// Collections returns the collections of network pools and logical VM groups.
func Collections() []*documents.Collection {
	return []*documents.Collection{poolCollection(), logicalGroups()}
}

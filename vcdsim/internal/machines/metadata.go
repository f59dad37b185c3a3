// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"maps"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// commitMetadata sets and removes metadata entries of an entity.
func commitMetadata(s *cloud.Cloud, t *store.Task) error {
	m := MetadataOf(s, t.Owner)
	if m == nil {
		return store.Forbidden("METADATA_UPDATE", t.Owner.ID)
	}
	maps.Copy(m, t.Work.Metadata)
	for _, k := range t.Work.Forget {
		delete(m, k)
	}
	return nil
}

// MetadataOf returns the metadata of an entity, or nil if the entity does not exist. Changes of the map change the
// entity.
func MetadataOf(s *cloud.Cloud, e store.Entity) map[string]store.Metadata {
	live := func(m *map[string]store.Metadata) map[string]store.Metadata {
		if *m == nil {
			*m = map[string]store.Metadata{}
		}
		return *m
	}
	switch e.Kind {
	case "vapp":
		if v := s.Store.VApps[e.ID]; v != nil {
			return live(&v.Metadata)
		}
	case "vm":
		if vm := s.Store.VMs[e.ID]; vm != nil {
			return live(&vm.Metadata)
		}
	case "disk":
		if d := s.Store.Disks[e.ID]; d != nil {
			return live(&d.Metadata)
		}
	default:
		if s.Store.Metadata[e.ID] == nil {
			s.Store.Metadata[e.ID] = map[string]store.Metadata{}
		}
		return s.Store.Metadata[e.ID]
	}
	return nil
}

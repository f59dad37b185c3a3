// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"sync"

	"k8s.io/utils/lru"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// keptEntities bounds the memory of recent entities: one takes about 30 KiB.
const keptEntities = 100

// recentEntities holds the entities that this process wrote most recently, with their ETags. A later write of one needs
// no read before it. The zero value is usable.
type recentEntities struct {
	once  sync.Once
	cache *lru.Cache
}

// get returns the last written version of an entity; nil if it is not held.
func (r *recentEntities) get(id string) *vcd.Entity {
	value, ok := r.entities().Get(id)
	if !ok {
		return nil
	}
	entity, _ := value.(*vcd.Entity)
	return entity
}

// put holds the current version of an entity. An entity that VCD has yet to resolve, or that has no ETag, is dropped:
// its next write must read it.
func (r *recentEntities) put(entity vcd.Entity) {
	if entity.State != vcd.EntityResolved || entity.ETag == "" {
		r.drop(entity.ID)
		return
	}
	r.entities().Add(entity.ID, &entity)
}

// drop removes an entity.
func (r *recentEntities) drop(id string) { r.entities().Remove(id) }

func (r *recentEntities) entities() *lru.Cache {
	r.once.Do(func() { r.cache = lru.New(keptEntities) })
	return r.cache
}

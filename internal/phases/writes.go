// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// cacheDelay is the time after which a pass over an outdated object is tried again. Usually the event of the write
	// triggers the pass earlier.
	cacheDelay = 100 * time.Millisecond
	// awaitedFor is the time that passes wait for the event of a write. After that, they use the object as it is: a
	// watch that is down must not stop them.
	awaitedFor = 10 * time.Second
	// maxAwaited is the maximum number of objects whose last write is remembered.
	maxAwaited = 10_000
)

// Writes remembers the last write of this process to each object until the cache contains it. A pass over an older
// version of the object would repeat the write, which fails with a conflict.
type Writes struct {
	versions *cache.LRUExpireCache // the resource version that the last write returned, by UID
}

// NewWrites returns a Writes without any writes.
func NewWrites() *Writes { return newWrites(clock.RealClock{}) }

func newWrites(c clock.PassiveClock) *Writes {
	return &Writes{versions: cache.NewLRUExpireCacheWithClock(maxAwaited, c)}
}

// remember records the resource version of an object, which is the response to a write.
func (w *Writes) remember(response client.Object) {
	if w != nil {
		w.versions.Add(response.GetUID(), response.GetResourceVersion(), awaitedFor)
	}
}

// reached reports whether an object from the cache already contains the last write to it. It returns true if that is
// unknown.
func (w *Writes) reached(cached client.Object) bool {
	if w == nil {
		return true
	}
	written, found := w.versions.Get(cached.GetUID())
	if !found {
		return true
	}
	version, _ := written.(string)
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), version)
	if err == nil && order < 0 {
		return false
	}
	w.versions.Remove(cached.GetUID())
	return true
}

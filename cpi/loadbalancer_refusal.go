package cpi

import (
	"crypto/sha256"
	"encoding/json"
	"time"
)

// longestRefusal is after what time at most a step that was refused is tried again.
const longestRefusal = 10 * time.Minute

// A refusal is what the cloud refused to do: each try may build something, and tear it down again. As long as the wish is the same, the
// next try comes later each time.
type refusal struct {
	wish  [sha256.Size]byte
	until time.Time
	pause time.Duration
}

// remember notes that a step of the wish was refused.
func (e *ensuring) remember() {
	wish := e.wished()
	e.memories.change(e.service.UID, func(m *memory) {
		if m.refusal.wish != wish {
			m.refusal = refusal{wish: wish}
		}
		m.refusal.pause = min(max(2*m.refusal.pause, later), longestRefusal)
		m.refusal.until = e.opts.Clock.Now().Add(m.refusal.pause)
	})
}

// patience returns an error if it is too early to try what was refused.
func (e *ensuring) patience() error {
	r := e.memories.of(e.service.UID).refusal
	if left := r.until.Sub(e.opts.Clock.Now()); left > 0 && r.wish == e.wished() && !e.wish.DryRun {
		return again(left, "the cloud has refused a step, see the events of the Service: it is tried again when the Service changes, else after %s", r.pause)
	}
	return nil
}

// wished tells wishes apart; what the controller writes itself does not count.
func (e *ensuring) wished() [sha256.Size]byte {
	d := e.wish.Desired
	d.Intent, d.Published, d.Reserved, d.Generation = nil, nil, nil, 0
	text, err := json.Marshal(struct {
		Place string
		Wish  any
	}{e.at, d})
	if err != nil {
		return [sha256.Size]byte{} // every try counts as the same
	}
	return sha256.Sum256(text)
}

// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// trustAge is how long a site whose certificate was refused is not called before the next attempt to open a session.
const trustAge = 10 * time.Second

// trust holds whether the certificate of a site was trusted at the last call. A token outlives a change of the
// certificate, so that a session could be opened with which every call fails.
type trust struct {
	mu    sync.Mutex
	err   error // failure.ErrTLS; nil: trusted
	asked time.Time
}

// record takes the result of a call.
func (t *trust) record(err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.err = nil
	case errors.Is(err, failure.ErrTLS):
		t.err = err
		t.asked = now
	}
}

// refused returns why the certificate is not trusted, and whether it is time to call the site again to see whether it
// is now. The caller that is asked to does so alone.
func (t *trust) refused(now time.Time) (err error, due bool) { //nolint:revive // the error is the value
	t.mu.Lock()
	defer t.mu.Unlock()
	due = t.err != nil && now.Sub(t.asked) >= trustAge
	if due {
		t.asked = now
	}
	return t.err, due
}

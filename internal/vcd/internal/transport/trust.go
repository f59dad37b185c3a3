// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// trustAge is how long no session is opened to a site after its certificate was rejected.
const trustAge = 10 * time.Second

// trust records whether the certificate of a site was trusted in the last request. A token outlives a change of the
// certificate, so that a session could be opened with which every request fails.
type trust struct {
	mu        sync.Mutex
	err       error // wraps failure.ErrTLS; nil: trusted
	checkedAt time.Time
}

// record records the result of a request.
func (t *trust) record(err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.err = nil
	case errors.Is(err, failure.ErrTLS):
		t.err = err
		t.checkedAt = now
	}
}

// refused returns the reason why the certificate is not trusted, and whether the caller must check it again. It returns
// due=true to only one caller in each period of trustAge.
func (t *trust) refused(now time.Time) (err error, due bool) { //nolint:revive // the error is the value
	t.mu.Lock()
	defer t.mu.Unlock()
	due = t.err != nil && now.Sub(t.checkedAt) >= trustAge
	if due {
		t.checkedAt = now
	}
	return t.err, due
}

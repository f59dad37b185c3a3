// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzReadErrorBody reads errors of arbitrary servers on the path to VCD.
func FuzzReadErrorBody(f *testing.F) {
	f.Add([]byte(`<Error xmlns="http://www.vmware.com/vcloud/v1.5" message="[ 1 ] m" minorErrorCode="BUSY_ENTITY"/>`))
	f.Add([]byte(`{"minorErrorCode":"X","message":"m"}`))
	f.Add([]byte("<html><style>\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := NewStatusError("op", 500, nil, body, time.Now())
		if text := err.Error(); text == "" || utf8.Valid(body) && !utf8.ValidString(text) {
			t.Fatalf("%q became %q", body, text)
		}
	})
}

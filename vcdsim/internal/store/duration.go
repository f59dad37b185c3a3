// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Duration is a length of time, written as "168h" in a file.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler. A number is in nanoseconds, as in older dumps.
func (d *Duration) UnmarshalJSON(encoded []byte) error {
	if json.Unmarshal(encoded, (*int64)(d)) == nil {
		return nil
	}
	var text string
	if err := json.Unmarshal(encoded, &text); err != nil {
		return fmt.Errorf("a length of time is text such as 168h: %w", err)
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("reading a length of time: %w", err)
	}
	*d = Duration(length)
	return nil
}

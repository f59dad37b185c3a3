// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"strings"
	"time"
)

// plainFault is a Fault without its methods.
type plainFault Fault

// FaultJSON is a Fault in JSON. Durations are strings such as "1m30s".
type FaultJSON struct {
	plainFault

	Delay    string `json:"delay,omitempty"`
	SlowBody string `json:"slowBody,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (f Fault) MarshalJSON() ([]byte, error) {
	out := FaultJSON{plainFault: plainFault(f)}
	if f.Delay > 0 {
		out.Delay = f.Delay.String()
	}
	if f.SlowBody > 0 {
		out.SlowBody = f.SlowBody.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler. Unknown fields are errors.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var in FaultJSON
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return err
	}
	*f = Fault(in.plainFault)
	for _, d := range []struct {
		text string
		into *time.Duration
	}{{in.Delay, &f.Delay}, {in.SlowBody, &f.SlowBody}} {
		if d.text == "" {
			continue
		}
		parsed, err := time.ParseDuration(d.text)
		if err != nil {
			return err
		}
		*d.into = parsed
	}
	return nil
}

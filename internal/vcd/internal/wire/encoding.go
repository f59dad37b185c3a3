// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// EncodeXML writes a document.
func EncodeXML(what any) ([]byte, error) {
	body, err := xml.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return append([]byte(xmlHeader), body...), nil
}

// DecodeXML reads a document. What is no XML was not written by VCD: see [errNotXML].
func DecodeXML(body []byte, into any) error {
	if xml.Unmarshal(body, into) != nil {
		return errNotXML
	}
	return nil
}

// EncodeJSON writes values as they are: what VCD wrote into an object that we change goes back as it came.
func EncodeJSON(what any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return out.Bytes(), nil
}

// DecodeJSON reads a document. What is no JSON was not written by VCD: see [ErrNotJSON].
func DecodeJSON(body []byte, into any) error {
	if json.Unmarshal(body, into) != nil {
		return ErrNotJSON
	}
	return nil
}

// The answer has another format than VCD's: something in front of it answered.
var (
	errNotXML  = failure.Unavailable("the response is not XML from VCD")
	ErrNotJSON = failure.Unavailable("the response is not JSON from VCD")
)

// Root returns the name of the outermost element of a document; empty if there is none.
func Root(body []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// Time reads a time as VCD writes it; the zero time if there is none.
func Time(value string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999Z0700"} {
		if t, err := time.Parse(layout, value); err == nil {
			return t
		}
	}
	return time.Time{}
}

// Number returns a number that may be left out; 0 then.
func Number(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

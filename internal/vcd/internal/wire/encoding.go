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

// EncodeXML encodes a document.
func EncodeXML(what any) ([]byte, error) {
	body, err := xml.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return append([]byte(xmlHeader), body...), nil
}

// DecodeXML decodes a document. It returns [errNotXML] if the body is not XML, because such a response does not come
// from VCD.
func DecodeXML(body []byte, into any) error {
	if xml.Unmarshal(body, into) != nil {
		return errNotXML
	}
	return nil
}

// EncodeJSON encodes a value without escaping HTML, so that fields of an object that we change go back as VCD wrote
// them.
func EncodeJSON(what any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return out.Bytes(), nil
}

// DecodeJSON decodes a document. It returns [ErrNotJSON] if the body is not JSON, because such a response does not come
// from VCD.
func DecodeJSON(body []byte, into any) error {
	if json.Unmarshal(body, into) != nil {
		return ErrNotJSON
	}
	return nil
}

// Errors of a response in a format other than VCD's, which comes from something in front of VCD.
var (
	errNotXML  = failure.Unavailable("the response is not XML from VCD")
	ErrNotJSON = failure.Unavailable("the response is not JSON from VCD")
)

// Root returns the local name of the outermost element of a document, or the empty string.
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

// Time parses a time in one of VCD's formats. It returns the zero time if value is not one.
func Time(value string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999Z0700"} {
		if t, err := time.Parse(layout, value); err == nil {
			return t
		}
	}
	return time.Time{}
}

// Number returns the value of an optional number, or 0 if it is nil.
func Number(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

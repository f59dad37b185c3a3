// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// emptyYAML is the value that cloud-init leaves in a redacted key. It is read as no value.
const emptyYAML = "---"

// ignitionKey is the key of an Ignition configuration, which replaces cloud-init user data.
const ignitionKey = "ignition.config.data"

// maxDecoded is the maximum size of a decompressed value, in bytes, so that a small key cannot exhaust memory.
const maxDecoded = 16 << 20

// guestinfo is a VM's extra configuration, as seen from inside the guest.
type guestinfo map[string]string

// get returns a key's value without trailing white space. It returns "" for an empty or redacted key.
func (g guestinfo) get(key string) string {
	value := strings.TrimRight(g["guestinfo."+key], " \t\r\n\v\f")
	if value == emptyYAML {
		return ""
	}
	return value
}

// decode returns a key's value, decoded with the encoding in the companion key ".encoding".
func (g guestinfo) decode(key string) (string, error) {
	value := g.get(key)
	if value == "" {
		return "", nil
	}
	encoding := g.get(key + ".encoding")
	if key == ignitionKey {
		encoding = ignitionEncoding(encoding)
	}
	text, err := decodeAs(encoding, value)
	if err != nil {
		return "", fmt.Errorf("guestinfo.%s: %w", key, err)
	}
	return text, nil
}

// ignition returns the configuration for Ignition, or "" if Ignition has read and deleted it.
func (g guestinfo) ignition() (string, error) {
	if g.get(ignitionKey) == deletedIgnition {
		return "", nil
	}
	return g.decode(ignitionKey)
}

// decodeAs decodes an encoding of cloud-init's VMware datasource. cloud-init treats unknown encodings as plain text,
// which is then neither metadata nor user data. Here they are an error.
func decodeAs(encoding, value string) (string, error) {
	var data []byte
	var err error
	switch encoding {
	case "gzip+base64", "gz+b64":
		if data, err = decodeBase64(value); err == nil {
			data, err = gunzip(data)
		}
	case "base64", "b64":
		data, err = decodeBase64(value)
	case "", "none":
		data = []byte(value)
	default:
		return "", fmt.Errorf("encoding %q is not one of base64, b64, gzip+base64, gz+b64", encoding)
	}
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("decoded value is not UTF-8 text (encoding is %q)", encoding)
	}
	return string(data), nil
}

// ignitionEncoding maps the names of encodings that only Ignition supports to those of cloud-init.
func ignitionEncoding(encoding string) string {
	switch encoding {
	case "gz+base64", "gzip+b64":
		return "gz+b64"
	default:
		return encoding
	}
}

func decodeBase64(value string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
	if err != nil {
		return nil, errors.New("value is not base64")
	}
	return data, nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("value is not gzip data")
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err != nil {
		return nil, errors.New("gzip data is damaged")
	}
	if len(plain) > maxDecoded {
		return nil, fmt.Errorf("value is larger than %d bytes once decompressed", maxDecoded)
	}
	return plain, nil
}

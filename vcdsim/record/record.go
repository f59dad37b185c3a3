// SPDX-License-Identifier: Apache-2.0

// Package record stores the exchanges of simulators as files, one per shape: exchanges that differ only in names, IDs
// and numbers are stored once. Checks of the wire format read them, independent of the test that recorded them.
package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// To returns an observer for vcdsim.Config that writes to dir, and creates dir. For an empty dir it returns nil,
// which records nothing. Several processes may write to one directory.
func To(dir string) (func(vcdsim.Exchange), error) {
	if dir == "" {
		return nil, nil // A nil observer records nothing.
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the directory of exchanges: %w", err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(x vcdsim.Exchange) {
		name := Shape(x)
		mu.Lock()
		known := seen[name]
		seen[name] = true
		mu.Unlock()
		if !known {
			write(filepath.Join(dir, name+".json"), x)
		}
	}, nil
}

// write writes a file unless it exists. A failed recording costs a check, but must not fail the run: readers report
// how many exchanges they have.
func write(path string, x vcdsim.Exchange) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	data, err := json.Marshal(x)
	if err != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return
	}
	_, werr := tmp.Write(data)
	if err := errors.Join(werr, tmp.Close()); err != nil || os.Rename(tmp.Name(), path) != nil {
		_ = os.Remove(tmp.Name()) // losing it wastes only space
	}
}

// Read returns the exchanges that were recorded in dir, ordered by shape.
func Read(dir string) ([]vcdsim.Exchange, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing exchanges: %w", err)
	}
	var out []vcdsim.Exchange
	for _, f := range files {
		data, err := os.ReadFile(f) //nolint:gosec // from the requested directory
		if err != nil {
			return nil, fmt.Errorf("reading an exchange: %w", err)
		}
		var x vcdsim.Exchange
		if err := json.Unmarshal(data, &x); err != nil {
			return nil, fmt.Errorf("reading the exchange %s: %w", f, err)
		}
		out = append(out, x)
	}
	return out, nil
}

// Shape returns the same name for all exchanges that differ only in names, IDs and numbers.
func Shape(x vcdsim.Exchange) string {
	h := sha256.New()
	query := ""
	if _, q, ok := strings.Cut(x.URI, "?"); ok {
		query = parameters(q)
	}
	// Writing to a hash never fails.
	_, _ = fmt.Fprintf(h, "%s %d %s %s\n%s\n%s", x.Operation, x.Status, x.ContentType, query, shape(x.Request),
		shape(x.Response))
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// parameters returns the names in a query string.
func parameters(query string) string {
	var out []string
	for _, pair := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, "&")
}

func shape(body []byte) string {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return ""
	case body[0] == '<':
		return xmlShape(body)
	}
	var v any
	if json.Unmarshal(body, &v) != nil {
		return "text"
	}
	return jsonShape(v)
}

// word matches values of enumerations. Exchanges with different words have different shapes.
var word = regexp.MustCompile(`^[A-Z][A-Z_]{1,39}$`)

func jsonShape(v any) string {
	switch x := v.(type) {
	case map[string]any:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(x)) {
			b.WriteString(ids.ReplaceAllString(k, "#") + ":" + jsonShape(x[k]) + ",")
		}
		return "{" + b.String() + "}"
	case []any:
		kinds := map[string]bool{}
		for _, item := range x {
			kinds[jsonShape(item)] = true
		}
		return "[" + strings.Join(slices.Sorted(maps.Keys(kinds)), ",") + "]"
	case string:
		if word.MatchString(x) {
			return x
		}
		return "s"
	default:
		return fmt.Sprintf("%T", v)
	}
}

var ids = regexp.MustCompile(`[0-9a-f-]{36}|[0-9]+`)

// xmlShape lists elements and attributes. Equal neighbors are listed once.
func xmlShape(body []byte) string {
	stack := []*level{{}}
	dec := xml.NewDecoder(bytes.NewReader(body))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return stack[0].text.String()
		}
		if err != nil {
			return "broken"
		}
		switch t := tok.(type) {
		case xml.StartElement:
			stack = append(stack, opened(t))
		case xml.EndElement:
			stack[len(stack)-2].add(stack[len(stack)-1].text.String() + ">")
			stack = stack[:len(stack)-1]
		}
	}
}

// A level is an open element in xmlShape.
type level struct {
	text strings.Builder
	last string
}

func opened(t xml.StartElement) *level {
	l := &level{}
	l.text.WriteString("<" + t.Name.Local)
	for _, a := range t.Attr {
		l.text.WriteString(" " + a.Name.Local)
		if a.Name.Local == "status" || a.Name.Local == "rel" || word.MatchString(a.Value) {
			l.text.WriteString("=" + a.Value)
		}
	}
	return l
}

func (l *level) add(child string) {
	if child != l.last {
		l.text.WriteString(child)
		l.last = child
	}
}

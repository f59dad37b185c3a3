// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// event is an output at a time, in seconds since the start.
type event struct {
	at   float64
	data string
}

// header is the first line of an asciicast: https://docs.asciinema.org/manual/asciicast/v2.
type header struct {
	Version int `json:"version"`
	Width   int `json:"width"`
	Height  int `json:"height"`
}

// write writes events as an asciicast, version 2.
func write(file string, events []event) error {
	var b strings.Builder
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	err := lines.Encode(header{2, columns, rows})
	for _, e := range events {
		err = errors.Join(err, lines.Encode([]any{e.at, "o", e.data}))
	}
	if err = errors.Join(err, os.WriteFile(file, []byte(b.String()), 0o600)); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

// read reads the events of an asciicast.
func read(file string) ([]event, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	defer func() { _ = content.Close() }()
	var events []event
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "[") {
			continue // the header
		}
		var e event
		kind := ""
		if err := json.Unmarshal(lines.Bytes(), &[]any{&e.at, &kind, &e.data}); err != nil {
			return nil, fmt.Errorf("reading the recording %s: %w", file, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

// redact replaces the folders of this machine, and returns an error if the output names them otherwise.
func redact(events []event, root, home string) ([]event, error) {
	replacer := strings.NewReplacer(root, "~/cluster-api-provider-vcd", home, "~")
	var all strings.Builder
	redacted := make([]event, len(events))
	for i, e := range events {
		redacted[i] = event{e.at, replacer.Replace(e.data)}
		_, _ = all.WriteString(redacted[i].data)
	}
	for _, private := range []string{root, home} {
		if strings.Contains(all.String(), private) {
			return nil, fmt.Errorf("the recording names %s, which is this machine's", private)
		}
	}
	return redacted, nil
}

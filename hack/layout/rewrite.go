// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/format"
	"os"
	"slices"
)

// An edit replaces a part of the text of a file.
type edit struct {
	from, to int
	text     string
}

// rewrite changes files in place. It splits assignments first, because a value may be a literal.
func rewrite(files []*source, calls bool) error {
	for _, f := range files {
		changed, err := apply(f, splitAssignments(f, calls))
		if err != nil {
			return err
		}
		if changed, err = apply(changed, unpackLiterals(changed)); err != nil {
			return err
		}
		if string(changed.text) == string(f.text) {
			continue
		}
		if err := os.WriteFile(f.path, changed.text, 0o644); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	return nil
}

// apply returns the file with the edits applied and formatted.
func apply(s *source, edits []edit) (*source, error) {
	if len(edits) == 0 {
		return s, nil
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var text []byte
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue // it overlaps an applied edit: the next run applies it
		}
		text = append(text, s.text[at:e.from]...)
		text = append(text, e.text...)
		at = e.to
	}
	text = append(text, s.text[at:]...)
	formatted, err := format.Source(text)
	if err != nil {
		return nil, fmt.Errorf("formatting %s: %w", s.path, err)
	}
	return reparse(s, formatted)
}

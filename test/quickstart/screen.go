// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// A screen shows views: in place on a terminal, otherwise one line per change.
type screen struct {
	quickstart *quickstart
	drawn      int
	last       []string
}

func (s *screen) show(v *view) {
	lines := v.lines()
	if s.quickstart.interactive {
		s.draw(lines, v.calls)
		return
	}
	for _, line := range lines {
		if !slices.Contains(s.last, line) {
			s.quickstart.printf("%s (%d VCD calls)", line, v.calls)
		}
	}
	s.last = lines
}

// draw overwrites the previous view. It truncates lines, because a wrapped line would change their number.
func (s *screen) draw(lines []string, calls int) {
	q := s.quickstart
	width := s.width()
	var b strings.Builder
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines = append(lines, fmt.Sprintf("%s elapsed, %d VCD calls", time.Since(q.started).Round(time.Second), calls))
	for _, line := range lines {
		_, _ = fmt.Fprintf(&b, "\r\x1b[K  %s\n", cut(line, width-3))
	}
	b.WriteString("\x1b[J")
	_, _ = fmt.Fprint(q.out, b.String())
	s.drawn = len(lines)
}

// width returns the number of columns of the terminal.
func (s *screen) width() int {
	width, _, err := term.GetSize(int(s.quickstart.out.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}

// table returns the output of a program without trailing spaces. On a terminal, it truncates lines so that they do not
// wrap.
func (s *screen) table(output []byte) string {
	lines := strings.Split(string(output), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
		if s.quickstart.interactive {
			lines[i] = strings.TrimRight(cut(lines[i], s.width()), " ")
		}
	}
	return strings.Join(lines, "\n")
}

func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// finish keeps the last view on the screen.
func (s *screen) finish() {
	s.drawn = 0
}

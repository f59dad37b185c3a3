package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen shows views: on a terminal in place, elsewhere a line for each change.
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
			s.quickstart.say("%s (%d VCD calls)", line, v.calls)
		}
	}
	s.last = lines
}

// draw overwrites what was drawn before; no line may wrap, or the count of lines is wrong.
func (s *screen) draw(lines []string, calls int) {
	q := s.quickstart
	width, _, err := term.GetSize(int(q.out.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	var b strings.Builder
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines = append(lines, fmt.Sprintf("%s elapsed, %d VCD calls", time.Since(q.began).Round(time.Second), calls))
	for _, line := range lines {
		_, _ = fmt.Fprintf(&b, "\r\x1b[K  %s\n", cut(line, width-3))
	}
	b.WriteString("\x1b[J")
	_, _ = fmt.Fprint(q.out, b.String())
	s.drawn = len(lines)
}

func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// finish leaves the last view on the screen.
func (s *screen) finish() {
	s.drawn = 0
}

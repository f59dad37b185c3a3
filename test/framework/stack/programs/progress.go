// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows the progress of a build: a single changing line on a terminal, otherwise one line per program.
type progress struct {
	out   io.Writer
	live  bool
	every time.Duration
	n, of int
	mu    sync.Mutex
}

func newProgress(out io.Writer, of int) *progress {
	p := &progress{out: out, of: of, every: 30 * time.Second}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.live = true
		p.every = time.Second
	}
	return p
}

// start announces a step and returns the function that ends it.
func (p *progress) start(what, name string) func(error) {
	p.n++
	label := fmt.Sprintf("%s %s (%d of %d)", what, name, p.n, p.of)
	began := time.Now()
	p.print(label+" ...", true)
	stop := make(chan struct{})
	go p.tick(label, began, stop)
	return func(err error) {
		close(stop)
		if err == nil {
			p.print(fmt.Sprintf("%s: done in %s", label, round(time.Since(began))), false)
		} else if p.live {
			p.print(label+": failed", false)
		}
	}
}

// copied reports a program that was copied from the machine.
func (p *progress) copied(name, version, from string) {
	p.n++
	p.print(fmt.Sprintf("Taking %s %s from %s (%d of %d)", name, version, from, p.n, p.of), false)
}

func (p *progress) tick(label string, began time.Time, stop <-chan struct{}) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			p.print(fmt.Sprintf("%s ... %s", label, round(time.Since(began))), true)
		}
	}
}

// print prints a line. On a terminal, the next line overwrites a passing one.
func (p *progress) print(line string, passing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.live:
		_, _ = fmt.Fprintln(p.out, line)
	case passing:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	default:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s\n", line)
	}
}

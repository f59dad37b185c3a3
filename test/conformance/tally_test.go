// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A result is the outcome of a test.
type result struct {
	outcome  string // PASS, FAIL, SKIP …; empty while it runs
	requests int
	needs    int // minimum number of requests for the test to count as passed
	output   string
}

func (r result) passed() bool { return r.outcome == "PASS" && r.requests >= r.needs }

func (r result) String() string {
	switch {
	case r.outcome == "":
		return "did not end"
	case r.outcome == "PASS" && !r.passed():
		return "passed without a request"
	}
	return fmt.Sprintf("%s after %d requests", r.outcome, r.requests)
}

type results map[string]result

// A format is the output format of a test binary. The last group of both expressions is the name of the test.
type format struct {
	started *regexp.Regexp
	ended   *regexp.Regexp // outcome, name
	needs   int            // minimum number of requests per test
}

// A tally reads the output of a test binary and counts the requests of each test. It is the handler of the simulator's
// log. Before it counts a request, it reads all pending output, so that the request is assigned to the running test.
type tally struct {
	format format
	read   *os.File
	write  *os.File

	mu      sync.Mutex
	output  bytes.Buffer
	parsed  int // number of parsed bytes of output
	current string
	starts  map[string]int // offsets in output at which tests start
	results results
}

func newTally(t *testing.T, f format) *tally {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = read.Close()
		_ = write.Close()
	})
	return &tally{format: f, read: read, write: write, starts: map[string]int{}, results: results{}}
}

// Enabled implements slog.Handler.
func (*tally) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (c *tally) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c *tally) WithGroup(string) slog.Handler { return c }

// Handle implements slog.Handler. The simulator logs a request before it responds.
func (c *tally) Handle(_ context.Context, rec slog.Record) error {
	if rec.Message != "Request" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	if r, ok := c.results[c.current]; ok && r.outcome == "" {
		r.requests++
		c.results[c.current] = r
	}
	return nil
}

// drain reads and parses the current content of the pipe without blocking.
func (c *tally) drain() {
	conn, err := c.read.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) // fails with EAGAIN if the pipe is empty
			return true
		})
		if err != nil || n <= 0 {
			break
		}
		c.output.Write(buf[:n])
	}
	c.parse()
}

func (c *tally) parse() {
	for {
		rest := c.output.Bytes()[c.parsed:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return
		}
		c.parseLine(strings.TrimSpace(string(rest[:end])))
		c.parsed += end + 1
	}
}

func (c *tally) parseLine(line string) {
	if m := c.format.started.FindStringSubmatch(line); m != nil {
		c.current = m[len(m)-1]
		c.starts[c.current] = c.parsed
		c.results[c.current] = result{needs: c.format.needs}
		return
	}
	if m := c.format.ended.FindStringSubmatch(line); m != nil {
		r := c.results[m[2]]
		r.outcome = m[1]
		c.results[m[2]] = r
	}
}

// follow reads the output until the binary exits. It returns the error of the binary.
func (c *tally) follow(done <-chan error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.drain()
			for name, r := range c.results {
				r.output = c.excerpt(name)
				c.results[name] = r
			}
			return err
		case <-ticker.C:
			c.mu.Lock()
			c.drain()
			c.mu.Unlock()
		}
	}
}

// excerpt returns the last 3000 bytes of the output of a test.
func (c *tally) excerpt(name string) string {
	from, ok := c.starts[name]
	if !ok {
		return ""
	}
	text := c.output.String()[from:]
	if next := c.format.started.FindStringIndex(text[1:]); next != nil {
		text = text[:next[0]+1]
	}
	if over := len(text) - 3000; over > 0 {
		text = "…" + text[over:]
	}
	return text
}

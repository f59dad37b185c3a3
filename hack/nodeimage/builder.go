// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// A builder makes artefacts: folders below dir whose names end in a hash of what decides their content.
type builder struct {
	root    string // the source tree
	cache   string // of programs that others build, too
	dir     string // where artefacts are
	mirror  string // of Debian; empty for the machine's own
	created time.Time
	own     ownImages
	out     io.Writer
}

// unfinished is how the folder of an artefact is called while it is made.
const unfinished = ".unfinished-"

// lock keeps other builders out and removes what a killed one left.
func (b *builder) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of images: %w", err)
	}
	unlock, err = process.LockWait(ctx, filepath.Join(b.dir, "lock"), func(holder string) {
		fmt.Fprintf(b.out, "Another process (%s) is making images, waiting for it.\n", holder)
	})
	if err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(b.dir, unfinished+"*"))
	if err != nil {
		return unlock, err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			unlock()
			return nil, fmt.Errorf("removing what an earlier run left: %w", err)
		}
	}
	return unlock, nil
}

// artefact returns the folder of that name and hash. Where there is none, fill makes its content under another name:
// what has the right name is complete.
func (b *builder) artefact(label, name, hash string, fill func(dir string) error) (string, error) {
	name += "-" + hash
	target := filepath.Join(b.dir, name)
	temp := filepath.Join(b.dir, unfinished+name)
	if _, err := os.Stat(target); err == nil {
		return name, nil
	}
	began := time.Now()
	stop := b.announce(label, began)
	defer stop()
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", name, err)
	}
	if err := fill(temp); err != nil {
		return "", err
	}
	stop()
	if err := os.Rename(temp, target); err != nil {
		return "", fmt.Errorf("naming %s: %w", name, err)
	}
	fmt.Fprintf(b.out, "%s: done in %s\n", label, round(time.Since(began)))
	return name, nil
}

// announce prints what is being made, and every half minute for how long, until the function that it returns is called.
func (b *builder) announce(label string, began time.Time) (stop func()) {
	fmt.Fprintf(b.out, "%s ...\n", label)
	ticker := time.NewTicker(30 * time.Second)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.out, "%s ... %s\n", label, round(time.Since(began)))
			}
		}
	}()
	return sync.OnceFunc(func() {
		ticker.Stop()
		close(done)
		<-ended
	})
}

// digest names what the parts decide.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// round rounds a duration for output.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

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

// A builder builds artifacts: folders in dir whose names end in a hash of their inputs.
type builder struct {
	root    string // root of the source tree
	cache   string // shared cache for programs
	dir     string // folder of artifacts
	mirror  string // Debian mirror; empty means the machine's own
	created time.Time
	own     ownImages
	out     io.Writer
}

// unfinished is the name prefix of artifacts that are being built.
const unfinished = ".unfinished-"

// lock excludes other builders and removes unfinished artifacts of a killed one.
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

// artifact returns the artifact with a name and hash. If it does not exist, fill creates its content under a temporary
// name, so that an artifact with its final name is always complete.
func (b *builder) artifact(label, name, hash string, fill func(dir string) error) (string, error) {
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

// announce prints the label of a step, and every half minute its duration, until the returned function is called.
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

// digest returns a hash of the parts.
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

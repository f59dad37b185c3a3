// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A LockedError is returned if another process holds the lock.
type LockedError struct {
	Path, Holder string
}

// Error implements error.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by another process (%s)", e.Path, e.Holder)
}

// Lock acquires a lock file without waiting. The system releases it when the process ends, even if it is killed.
func Lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's folder
	if err != nil {
		return nil, fmt.Errorf("opening a lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		holder, _ := io.ReadAll(file) // only for the error message
		return nil, &LockedError{Path: path, Holder: strings.TrimSpace(string(holder))}
	}
	err = errors.Join(file.Truncate(0), func() error {
		_, err := fmt.Fprintf(file, "pid %d\n", os.Getpid())
		return err
	}())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing a lock file: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// LockWait acquires a lock file. While another process holds it, LockWait calls waiting once and waits.
func LockWait(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for notified := false; ; notified = true {
		unlock, err := Lock(path)
		var locked *LockedError
		if !errors.As(err, &locked) {
			return unlock, err
		}
		if !notified {
			waiting(locked.Holder)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// FreeSpace returns the free space for this user on the disk of a folder, in bytes. The second result reports whether
// it is known.
func FreeSpace(dir string) (uint64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), true //nolint:gosec // a block size is positive
}

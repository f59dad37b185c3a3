// SPDX-License-Identifier: Apache-2.0

package ccmconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// rereadAfter is the maximum age of what was read of the files. Reading some small files costs nothing.
const rereadAfter = 5 * time.Second

// Files are credentials in the files of a mounted Secret. They are read again when they are asked for and may have
// changed.
type Files[T any] struct {
	Dir string
	// Names of the files. A file may be absent.
	Names []string
	// Parse makes credentials of the contents of the files, by name. Its errors contain no secrets.
	Parse func(map[string]string) (T, error)
	Now   func() time.Time

	mu      sync.Mutex
	last    T
	version string
	err     error
	read    time.Time
}

// Current returns the credentials in the files, and a version that differs between any two contents.
func (f *Files[T]) Current() (credentials T, version string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.Now(); f.read.IsZero() || now.Sub(f.read) >= rereadAfter {
		f.read = now
		if f.last, f.version, err = f.readAll(); err != nil {
			err = fmt.Errorf("credentials in %s: %w", f.Dir, err)
		}
		f.err = err
	}
	return f.last, f.version, f.err
}

// Mounted returns where the files of a mounted Secret are now. The kubelet replaces all of them at once by one link:
// files behind it belong together.
func Mounted(dir string) string {
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		return target
	}
	return dir
}

func (f *Files[T]) readAll() (credentials T, version string, err error) {
	dir := Mounted(f.Dir)
	contents := map[string]string{}
	hash := sha256.New()
	for _, name := range f.Names {
		data, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // The administrator names the directory.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return credentials, "", fmt.Errorf("reading %s: %w", name, err)
		}
		contents[name] = strings.TrimRight(string(data), "\r\n")
		fmt.Fprintf(hash, "%q", contents[name])
	}
	credentials, err = f.Parse(contents)
	return credentials, hex.EncodeToString(hash.Sum(nil)[:8]), err
}

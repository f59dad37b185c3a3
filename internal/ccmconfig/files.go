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

// rereadAfter is the maximum age of the cached files. Reading some small files is cheap.
const rereadAfter = 5 * time.Second

// Files reads credentials from the files of a mounted Secret. Files are read again if the cached content is too old.
type Files[T any] struct {
	Dir string
	// Names of the files. A file may be absent.
	Names []string
	// Parse returns the credentials in the contents of the files, which it gets by name. Its errors must not contain
	// secrets.
	Parse func(map[string]string) (T, error)
	Now   func() time.Time

	mu      sync.Mutex
	last    T
	version string
	err     error
	read    time.Time
}

// Current returns the credentials in the files, and a version that differs for different contents.
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

// Mounted returns the directory with the current files of a mounted Secret. The kubelet replaces all files at once with
// one link, so the files behind it are consistent.
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

// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// Keys are the API key and the secret key of a user.
type Keys struct{ API, Secret string }

// KeyFileOptions configure a [KeyFile].
type KeyFileOptions struct {
	// Path of the configuration file.
	Path string
	// First are the keys that the file contained at startup.
	First Keys
	// Parse returns the keys in the file. Its errors must not contain secrets.
	Parse func(file []byte) (Keys, error)
	Now   func() time.Time // nil: the real time
}

// A KeyFile reads keys from a configuration file, in which they may be rotated. If the file is invalid or missing, the
// previous keys remain in use.
type KeyFile struct {
	files *ccmconfig.Files[Keys]

	mu     sync.Mutex
	last   Keys
	broken bool
}

// NewKeyFile returns a KeyFile for a configuration file.
func NewKeyFile(o KeyFileOptions) *KeyFile {
	if o.Now == nil {
		o.Now = time.Now
	}
	name := filepath.Base(o.Path)
	return &KeyFile{
		last: o.First,
		files: &ccmconfig.Files[Keys]{
			Dir:   filepath.Dir(o.Path),
			Names: []string{name},
			Parse: func(contents map[string]string) (Keys, error) { return o.Parse([]byte(contents[name])) },
			Now:   o.Now,
		},
	}
}

// Current returns the API key and the secret key in the file, or the last valid ones.
func (f *KeyFile) Current() (api, secret string) {
	now, _, err := f.files.Current()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil && !f.broken:
		klog.ErrorS(err, "Cannot reload the keys of CloudStack; the previous keys stay in use")
	case err == nil && now != f.last:
		klog.InfoS("Loaded the changed keys of CloudStack from the configuration")
	}
	if f.broken = err != nil; !f.broken {
		f.last = now
	}
	return f.last.API, f.last.Secret
}

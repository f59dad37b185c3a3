// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

const (
	// secretAge is how long a Secret is cached, so that it is read at most once a minute.
	secretAge = time.Minute
	// secretTimeout limits requests to the API server.
	secretTimeout = 10 * time.Second
	// maxCredential is the maximum size of a file in a mounted Secret, in bytes.
	maxCredential = 1 << 20
)

// CredentialSource reads the credentials for one vCenter. It checks the Secret, the directory and the configuration in
// this order, and uses the first that has credentials.
type CredentialSource struct {
	Host       string
	Secrets    corev1client.SecretsGetter // nil: no API server
	Namespace  string
	Secret     string // empty: none
	Directory  string // of a mounted Secret; empty: none
	Configured Credentials
	Now        func() time.Time

	mu   sync.Mutex
	last map[string][]byte // of the Secret
	read time.Time
}

// Current returns the current credentials, with a version that differs for different credentials.
func (s *CredentialSource) Current(ctx context.Context) (Credentials, string, error) {
	var missing []error
	for _, source := range []func(context.Context) (map[string][]byte, string, error){s.fromSecret, s.fromDirectory} {
		data, where, err := source(ctx)
		if where == "" {
			continue
		}
		if err == nil {
			if found, ok := CredentialsIn(data, s.Host); ok {
				return found, version(found), nil
			}
			err = fmt.Errorf("%s has no keys %s.username and %s.password", where, s.Host, s.Host)
		}
		missing = append(missing, err)
	}
	if s.Configured.User != "" {
		return s.Configured, version(s.Configured), nil
	}
	if len(missing) == 0 {
		return Credentials{}, "", errors.New("no credentials: configure a Secret, or mount one")
	}
	return Credentials{}, "", errors.Join(missing...)
}

// fromSecret returns the data of the Secret. While the API server does not respond, it returns the cached data.
func (s *CredentialSource) fromSecret(ctx context.Context) (data map[string][]byte, where string, err error) {
	if s.Secret == "" || s.Secrets == nil {
		return nil, "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	where = fmt.Sprintf("Secret %s/%s", s.Namespace, s.Secret)
	if now := s.Now(); s.last != nil && now.Sub(s.read) < secretAge {
		return s.last, where, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	secret, err := s.Secrets.Secrets(s.Namespace).Get(ctx, s.Secret, metav1.GetOptions{})
	switch {
	case err == nil:
		s.last = secret.Data
		s.read = s.Now()
		return s.last, where, nil
	case s.last != nil:
		return s.last, where, nil
	}
	if apierrors.IsForbidden(err) {
		return nil, where, fmt.Errorf("the service account of the cloud controller manager lacks the permission get on %s: grant it with a Role and a RoleBinding in namespace %s: %w", where, s.Namespace, err)
	}
	return nil, where, fmt.Errorf("reading %s: %w", where, err)
}

// fromDirectory returns the files of a mounted Secret.
func (s *CredentialSource) fromDirectory(context.Context) (data map[string][]byte, where string, err error) {
	if s.Directory == "" {
		return nil, "", nil
	}
	dir := ccmconfig.Mounted(s.Directory)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	where = "directory " + s.Directory
	if err != nil {
		return nil, where, fmt.Errorf("reading %s: %w", where, err)
	}
	data = map[string][]byte{}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxCredential {
			continue
		}
		if data[entry.Name()], err = os.ReadFile(path); err != nil { //nolint:gosec // The administrator names the directory.
			return nil, where, fmt.Errorf("reading %s: %w", where, err)
		}
	}
	return data, where, nil
}

// CredentialsIn returns the credentials for a host from the data of a Secret. The keys are <host>.username,
// <host>.password and so on, or server_<name>, username_<name> and password_<name> for hosts that cannot be part of a
// key.
func CredentialsIn(data map[string][]byte, host string) (Credentials, bool) {
	text := func(key string) string { return strings.TrimRight(string(data[key]), "\r\n") }
	for key := range data {
		var c Credentials
		if name, ok := strings.CutPrefix(key, "server_"); ok && sameHost(text(key), host) {
			c.User = text("username_" + name)
			c.Password = text("password_" + name)
		} else if name, ok := strings.CutSuffix(key, ".username"); ok && sameHost(name, host) {
			c.User = text(key)
			c.Password = text(name + ".password")
		} else if name, ok := strings.CutSuffix(key, ".vc-session-manager-url"); ok && sameHost(name, host) {
			c.SharedSession = text(key)
			c.SharedToken = text(name + ".vc-session-manager-token")
		}
		if c.complete() {
			return c, true
		}
	}
	return Credentials{}, false
}

// complete reports whether the credentials suffice for a login.
func (c Credentials) complete() bool {
	return c.SharedSession != "" || c.User != "" && c.Password != ""
}

// sameHost reports whether two hostnames or addresses are equal. It ignores case and brackets.
func sameHost(a, b string) bool {
	return strings.EqualFold(strings.Trim(strings.TrimSpace(a), "[]"), strings.Trim(b, "[]"))
}

// version returns a text that differs for different credentials.
func version(c Credentials) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q", []string{c.User, c.Password, c.SharedSession, c.SharedToken}))
	return hex.EncodeToString(hash[:8])
}

package config

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

// Credentials are what the controller logs in with. The token wins.
type Credentials struct {
	Username string // user or org/user
	Password string
	APIToken string
	Version  string // differs between any two contents
}

const redacted = "REDACTED"

// String keeps credentials out of everything that prints a value.
func (Credentials) String() string { return redacted }

// GoString keeps credentials out of everything that prints a value in detail.
func (Credentials) GoString() string { return redacted }

// MarshalText keeps credentials out of everything that writes JSON, such as logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// rereadAfter is how old what was read of the files may be. Reading three small files costs nothing.
const rereadAfter = 5 * time.Second

// A Keyring reads credentials from the files of a Secret, anew when they are asked for and may have changed.
type Keyring struct {
	dir    string
	org    string // of users that name none; empty: the cluster's
	inline Credentials
	now    func() time.Time

	mu   sync.Mutex
	last Credentials
	err  error
	read time.Time
}

// NewKeyring returns the credentials in the files username, password and refreshToken of dir. What the configuration says is
// used where there is no file.
func NewKeyring(dir string, c Config, now func() time.Time) *Keyring {
	return &Keyring{dir: dir, org: c.UserOrg, inline: c.inlineUser, now: now}
}

// Current returns the credentials as the files have them now. An error says which file is wrong, never what is in it.
func (k *Keyring) Current() (Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); k.read.IsZero() || now.Sub(k.read) >= rereadAfter {
		k.read = now
		k.last, k.err = k.readAll()
	}
	return k.last, k.err
}

func (k *Keyring) readAll() (Credentials, error) {
	// kubelet swaps all files of a Secret at once by one link: those that belong together are read behind it.
	dir := k.dir
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = target
	}
	c := k.inline
	var problems []error
	for name, into := range map[string]*string{"username": &c.Username, "password": &c.Password, "refreshToken": &c.APIToken} {
		data, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the directory is the administrator's choice
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, fmt.Errorf("reading %s of the credentials: %w", name, err))
		case len(data) > 0:
			*into = strings.TrimRight(string(data), "\r\n")
		}
	}
	problems = append(problems, completeUser(&c, k.org))
	if err := errors.Join(problems...); err != nil {
		return Credentials{}, fmt.Errorf("credentials in %s: %w", k.dir, err)
	}
	hash := sha256.Sum256([]byte(c.Username + "\x00" + c.Password + "\x00" + c.APIToken))
	c.Version = hex.EncodeToString(hash[:8])
	return c, nil
}

// completeUser checks credentials and adds the organisation of the user.
func completeUser(c *Credentials, org string) error {
	switch {
	case c.APIToken == "" && (c.Username == "" || c.Password == ""):
		return errors.New("there is neither a refreshToken nor a username with a password: write one of them into the Secret")
	case strings.Count(c.Username, "/") > 1:
		return errors.New("username has more than one slash: write user, or org/user")
	case strings.HasPrefix(c.Username, "/") || strings.HasSuffix(c.Username, "/"):
		return errors.New("username lacks what must be before or after its slash: write user, or org/user")
	case org != "" && !strings.Contains(c.Username, "/"):
		c.Username = org + "/" + c.Username
	}
	return nil
}

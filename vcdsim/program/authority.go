// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// trust configures the certificate of the servers: the one of --tls-cert, or one that the authority of --ca-file
// signs. If the files of the authority do not exist, it creates the authority and writes them.
func (o options) trust(cfg *vcdsim.Config) error {
	if o.certFile != "" {
		pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
		if err != nil {
			return fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
		}
		cfg.Certificate = &pair
		if _, err := os.Stat(o.caFile); err != nil {
			return fmt.Errorf("reading the certificate authority of --ca-file: %w", err)
		}
		return nil
	}
	var err error
	cfg.Authority, err = keptAuthority(o.caFile, o.caFile+".key")
	return err
}

// keptAuthority reads the authority of an earlier start, or creates one and writes its files.
func keptAuthority(certFile, keyFile string) (*vcdsim.Authority, error) {
	certificate, certErr := os.ReadFile(certFile) //nolint:gosec // the caller's own flag
	key, keyErr := os.ReadFile(keyFile)           //nolint:gosec // the caller's own flag
	switch {
	case certErr == nil && keyErr == nil:
		authority, err := vcdsim.ParseAuthority(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%w: remove %s and %s to create a new one", err, certFile, keyFile)
		}
		return authority, nil
	case errors.Is(certErr, fs.ErrNotExist):
		return newAuthority(certFile, keyFile)
	case certErr != nil:
		return nil, fmt.Errorf("reading --ca-file: %w", certErr)
	default:
		return nil, fmt.Errorf("--ca-file %s exists without its key: %w", certFile, keyErr)
	}
}

// newAuthority creates an authority. It writes the key first, because a certificate without a key is not treated as
// an authority of vcdsim.
func newAuthority(certFile, keyFile string) (*vcdsim.Authority, error) {
	authority, err := vcdsim.NewAuthority()
	if err != nil {
		return nil, err
	}
	key, err := authority.Key()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(certFile), 0o700)
	}
	if err == nil {
		err = os.WriteFile(keyFile, key, 0o600)
	}
	if err == nil {
		err = os.WriteFile(certFile, authority.Certificate(), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("storing the authority for the next start: %w", err)
	}
	return authority, nil
}

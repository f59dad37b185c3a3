// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"errors"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
)

// An Authority signs the certificates of a simulator's servers. Keep it across restarts, so that clients continue to
// trust a restarted simulator.
type Authority = tlsserver.Authority

// NewAuthority creates an authority with a new key. It is valid for ten years.
func NewAuthority() (*Authority, error) { return tlsserver.NewAuthority() }

// ParseAuthority reads an authority from the PEM of its certificate and private key. It returns an error if the
// certificate has expired or is not allowed to sign certificates.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	return tlsserver.ParseAuthority(certificate, key)
}

// signer returns the authority of all servers.
func (c *Config) signer() (*Authority, error) {
	switch {
	case c.Authority != nil && c.Certificate != nil:
		return nil, errors.New("an authority cannot be combined with a certificate")
	case c.Certificate != nil:
		return tlsserver.FixedAuthority(*c.Certificate)
	case c.Authority != nil:
		return c.Authority, nil
	default:
		return NewAuthority()
	}
}

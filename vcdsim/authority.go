// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"errors"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
)

// An Authority signs the certificates of a simulator's servers. One that is kept makes a simulator that starts again
// known to the clients of the earlier one.
type Authority = tlsserver.Authority

// NewAuthority makes an authority with a key of its own, valid for ten years.
func NewAuthority() (*Authority, error) { return tlsserver.NewAuthority() }

// ParseAuthority reads an authority from the PEM of its certificate and of its private key. It refuses one that has
// expired or may not sign.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	return tlsserver.ParseAuthority(certificate, key)
}

// signer is the authority of all servers.
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

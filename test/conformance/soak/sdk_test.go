// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/govcd"
)

// An sdk is VMware's Go client, used as by programs of an administrator of an organization.
type sdk struct {
	number int // of all clients of its kind
	rng    *rand.Rand
	client *govcd.VCDClient
	author *govcd.VCDClient // whose role allows entities
	org    *govcd.Org
	vdc    *govcd.Vdc
	edge   *govcd.NsxtEdgeGateway
}

func newSDK(a assignment) (client, error) {
	site, err := url.Parse(a.sim.URL() + "/api")
	if err != nil {
		return nil, err
	}
	return &sdk{
		number: a.number,
		rng:    a.rng,
		client: govcd.NewVCDClient(*site, true),
		author: govcd.NewVCDClient(*site, true),
	}, nil
}

func (s *sdk) kinds() []kind {
	return []kind{
		{name: "machine", create: s.createMachine},
		{name: "disk", create: s.createDisk},
		{name: "network", create: s.createNetwork},
		{name: "balancer", alone: true, create: s.createBalancer},
		{name: "NAT rule", create: s.createNAT},
		{name: "IP set", create: s.createIPSet},
		{name: "tunnel", create: s.createTunnel},
		{name: "entity", create: s.createEntity},
		{name: "allocation", alone: true, create: s.createAllocation},
	}
}

// login opens the sessions of both users, and looks up where the client works.
func (s *sdk) login() (err error) {
	if err := s.client.Authenticate("admin", "password", "acme"); err != nil {
		return err
	}
	if err := s.author.Authenticate("capvcd", "password", "acme"); err != nil {
		return err
	}
	if s.org, err = s.client.GetOrgByName("acme"); err != nil {
		return fmt.Errorf("finding the organization: %w", err)
	}
	if s.vdc, err = s.org.GetVDCByName("acme-vdc", false); err != nil {
		return fmt.Errorf("finding the VDC: %w", err)
	}
	if s.edge, err = s.vdc.GetNsxtEdgeGatewayByName("acme-vdc-gateway"); err != nil {
		return fmt.Errorf("finding the edge gateway: %w", err)
	}
	return nil
}

func (s *sdk) logout() error { return errors.Join(s.client.Disconnect(), s.author.Disconnect()) }

func (s *sdk) expected(err error) bool { return busy(err) }

// busy reports whether a call failed because another operation is running on the object. VMware's client does not keep
// the error code.
func busy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "BUSY_ENTITY") || strings.Contains(err.Error(), " is busy") ||
		strings.Contains(err.Error(), "Unable to perform this action. Contact your cloud administrator."))
}

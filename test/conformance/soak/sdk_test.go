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

// An sdk uses VMware's Go client like the programs of an organization's administrator.
type sdk struct {
	number     int // index among the clients of the same program
	rng        *rand.Rand
	client     *govcd.VCDClient
	entityUser *govcd.VCDClient // a user with the rights to entities
	org        *govcd.Org
	vdc        *govcd.Vdc
	edge       *govcd.NsxtEdgeGateway
}

func newSDK(a assignment) (client, error) {
	site, err := url.Parse(a.sim.URL() + "/api")
	if err != nil {
		return nil, err
	}
	return &sdk{
		number:     a.number,
		rng:        a.rng,
		client:     govcd.NewVCDClient(*site, true),
		entityUser: govcd.NewVCDClient(*site, true),
	}, nil
}

func (s *sdk) kinds() []kind {
	return []kind{
		{name: "machine", create: s.createMachine},
		{name: "disk", create: s.createDisk},
		{name: "network", create: s.createNetwork},
		{name: "balancer", single: true, create: s.createBalancer},
		{name: "NAT rule", create: s.createNAT},
		{name: "IP set", create: s.createIPSet},
		{name: "tunnel", create: s.createTunnel},
		{name: "entity", create: s.createEntity},
		{name: "allocation", single: true, create: s.createAllocation},
	}
}

// login opens the sessions of both users, and looks up the objects that the client needs.
func (s *sdk) login() (err error) {
	if err := s.client.Authenticate("admin", "password", "acme"); err != nil {
		return err
	}
	if err := s.entityUser.Authenticate("capvcd", "password", "acme"); err != nil {
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

func (s *sdk) logout() error { return errors.Join(s.client.Disconnect(), s.entityUser.Disconnect()) }

func (s *sdk) expected(err error) bool { return busy(err) }

// busy reports whether a call failed because another operation is running on the object. It matches texts, because
// VMware's client discards the error code.
func busy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "BUSY_ENTITY") || strings.Contains(err.Error(), " is busy") ||
		strings.Contains(err.Error(), "Unable to perform this action. Contact your cloud administrator."))
}

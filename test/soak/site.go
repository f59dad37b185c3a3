// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// The simulated sites, as indexes.
const (
	siteServices = iota // one VDC with all features for Services and addresses
	siteZones           // three VDCs in a data center group
	sites
)

const (
	// cells is the number of cells of each site.
	cells = 2
	// olderVersion is the Kubernetes version from which clusters are upgraded.
	olderVersion = "v1.35.4"
	// managersUser and ccmUser are the users of the manager and of cloud controller managers in each site.
	managersUser = "capvcd"
	ccmUser      = "ccm"
)

// A site is a simulated VCD with its current credentials.
type site struct {
	*vcdsim.Simulator

	index  int
	before map[string]string // everything in it before the run

	mu        sync.Mutex
	rotations int // number of rotations of credentials
}

// startSite starts a simulated VCD. Its clock runs pace times as fast as real time.
func startSite(index int, pace float64, seed uint64, guests *workload.Workloads) (*site, error) {
	simulator, err := vcdsim.New(vcdsim.Config{
		Model:   model(index),
		Profile: vcdsim.Recorded,
		Seed:    int64(seed%1000)*sites + int64(index) + 1,
		Clock:   vcdsim.NewClock(pace),
		Guest:   guests,
		Cells:   cells,
		Version: vcdsim.Version105,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing site %d: %w", index, err)
	}
	if err := simulator.Start(); err != nil {
		return nil, fmt.Errorf("starting site %d: %w", index, err)
	}
	s := &site{Simulator: simulator, index: index}
	s.before, err = inventory(simulator.State())
	return s, err
}

// model returns a tenant with addresses for many machines, node images of two versions and two operating systems, and
// room for a load balancer of each cluster.
func model(index int) vcdsim.Model {
	m := vcdsim.CloudProvider()
	if index == siteZones {
		m = vcdsim.ThreeZones()
	}
	vdc := &m.Orgs[1].VDCs[0]
	nodes := &vdc.Networks[0]
	nodes.Gateway = netip.MustParsePrefix("10.0.0.1/16")
	nodes.StaticPool = []vcdsim.Range{addresses("10.0.1.0", "10.0.99.255")}
	nodes.DHCPPool = nil
	outside := netip.MustParsePrefix("100.64.0.1/16")
	pool := addresses("100.64.1.0", "100.64.9.255")
	m.ExternalNetworks[0].Subnets[0] = vcdsim.ExternalSubnet{Gateway: outside, Pool: []vcdsim.Range{pool}}
	vdc.EdgeGateways[0].Uplinks[0].Subnets[0] = vcdsim.UplinkSubnet{
		Gateway:   outside,
		Addresses: []vcdsim.Range{pool},
		Primary:   pool.From,
	}
	m.ServiceEngineGroups[0].MaxService = 2000
	for i := range m.IPSpaces {
		m.IPSpaces[i].RangeQuota = -1
	}
	for i := range vdc.Networks {
		if vdc.Networks[i].Name == "nodes-2" {
			vdc.Networks[i].Gateway = netip.MustParsePrefix("10.2.0.1/16")
			vdc.Networks[i].StaticPool = []vcdsim.Range{addresses("10.2.1.0", "10.2.99.255")}
		}
	}
	for i := range m.Orgs[1].Catalogs {
		addImages(&m.Orgs[1].Catalogs[i])
	}
	return m
}

func addresses(from, to string) vcdsim.Range {
	return vcdsim.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
}

// addImages adds the node images of all versions and operating systems to a catalog.
func addImages(catalog *vcdsim.Catalog) {
	first := catalog.Templates[0]
	for _, image := range []string{ubuntu, flatcar} {
		for _, version := range []string{olderVersion, programs.KubernetesVersion} {
			name := image + version
			if name == first.Name {
				continue
			}
			template := first
			template.Name = name
			template.KubernetesVersion = version
			template.VMs = slices.Clone(template.VMs)
			template.VMs[0].Name = name
			catalog.Templates = append(catalog.Templates, template)
		}
	}
}

// password returns the current password of the users of the site, and token their current API token.
func (s *site) password() string { return s.credential("password") }

func (s *site) token(user string) string { return s.credential(user + "-api-token") }

func (s *site) credential(first string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotations == 0 {
		return first
	}
	return fmt.Sprintf("%s-%d", first, s.rotations)
}

// rotate changes the passwords and API tokens of both users in VCD, and ends their sessions.
func (s *site) rotate() {
	s.mu.Lock()
	s.rotations++
	s.mu.Unlock()
	s.setCredentials()
}

// restoreCredentials sets the first passwords and tokens again, for the comparison at the end.
func (s *site) restoreCredentials() {
	s.mu.Lock()
	s.rotations = 0
	s.mu.Unlock()
	s.setCredentials()
}

func (s *site) setCredentials() {
	password := s.password()
	tokens := map[string]string{managersUser: s.token(managersUser), ccmUser: s.token(ccmUser)}
	s.Edit(func(e *vcdsim.Editor) {
		for user, token := range tokens {
			e.SetPassword("acme", user, password)
			e.SetAPITokens("acme", user, token)
		}
		e.ExpireSessions()
	})
}

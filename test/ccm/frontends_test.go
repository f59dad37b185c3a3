// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Paths of the documents in VCD that belong to the cloud controller manager.
const (
	poolsPath        = "1.0.0/loadBalancer/pools"
	servicesPath     = "1.0.0/loadBalancer/virtualServices"
	natPath          = "1.0.0/edgeGateways/{gateway}/nat/rules"
	profilesPath     = "1.0.0/applicationPortProfiles"
	groupsPath       = "1.0.0/firewallGroups"
	certificatesPath = "1.0.0/ssl/certificateLibrary"
)

// ourPaths are the kinds of documents that the cloud controller manager creates.
var ourPaths = map[string]string{
	poolsPath:        "pool",
	servicesPath:     "virtual service",
	natPath:          "NAT rule",
	profilesPath:     "port profile",
	groupsPath:       "IP set",
	certificatesPath: "certificate",
}

// A ref refers to a document.
type ref struct{ ID, Name string }

// Documents of the VCD API, with the fields that these tests use.
type (
	virtualService struct {
		VirtualIPAddress     string
		IPv6VirtualIPAddress string
		LoadBalancerPoolRef  ref
		GatewayRef           ref
		CertificateRef       ref
		TransparentMode      bool `json:"transparentModeEnabled"`
		ApplicationProfile   struct{ Type string }
		ServicePorts         []struct {
			PortStart     int
			TCPUDPProfile struct{ Type string } `json:"tcpUdpProfile"`
		}
	}
	pool struct {
		DefaultPort        int
		Members            []struct{ IPAddress string }
		MemberGroupRef     ref
		HealthMonitors     []struct{ Type string }
		PersistenceProfile struct{ Type string }
	}
	natRule struct {
		ExternalAddresses, InternalAddresses, DNATExternalPort string

		ApplicationPortProfile ref
	}
	portProfile struct {
		ApplicationPorts []struct{ Protocol string }
	}
	ipSet struct{ IPAddresses []string }
)

func decode[T any](d vcdsim.Document) T {
	var out T
	if err := json.Unmarshal(d.Body, &out); err != nil {
		panic(err) // The simulator wrote the document.
	}
	return out
}

// frontends implements loadBalancing. Clients reach a virtual service directly or through a DNAT rule.
func (v *vcd) frontends(uid string) []frontend {
	wanted := ownedBy(uid)
	documents := v.State().Documents
	byID := map[string]vcdsim.Document{}
	for _, d := range documents {
		byID[d.ID] = d
	}
	var out []frontend
	for _, d := range documents {
		if d.Path != servicesPath || !wanted(decode[struct{ Description string }](d).Description) {
			continue
		}
		for _, f := range serviceFrontends(decode[virtualService](d), byID) {
			out = append(out, throughNAT(f, d.Parent, byID)...)
		}
	}
	slices.SortFunc(out, func(a, b frontend) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func serviceFrontends(vs virtualService, byID map[string]vcdsim.Document) []frontend {
	var out []frontend
	p := decode[pool](byID[vs.LoadBalancerPoolRef.ID])
	for _, text := range []string{vs.VirtualIPAddress, vs.IPv6VirtualIPAddress} {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, port := range vs.ServicePorts {
			f := frontend{
				Gateway:     vs.GatewayRef.Name,
				Address:     address,
				Port:        port.PortStart,
				Protocol:    "TCP",
				Backends:    backends(p, byID),
				Application: vs.ApplicationProfile.Type,
				Certificate: vs.CertificateRef.Name,
				Sticky:      p.PersistenceProfile.Type == "CLIENT_IP",
				Transparent: vs.TransparentMode,
			}
			if strings.HasPrefix(port.TCPUDPProfile.Type, "UDP") {
				f.Protocol = "UDP"
			}
			for _, m := range p.HealthMonitors {
				f.Monitors = append(f.Monitors, m.Type)
			}
			out = append(out, f)
		}
	}
	return out
}

// backends returns the members of a pool, or those of its IP set.
func backends(p pool, byID map[string]vcdsim.Document) []string {
	var addresses []string
	for _, m := range p.Members {
		addresses = append(addresses, m.IPAddress)
	}
	if set, ok := byID[p.MemberGroupRef.ID]; ok {
		addresses = append(addresses, decode[ipSet](set).IPAddresses...)
	}
	for i, a := range addresses {
		addresses[i] = fmt.Sprintf("%s:%d", a, p.DefaultPort)
	}
	slices.Sort(addresses)
	return addresses
}

// throughNAT returns the frontends that external clients reach: copies of f with the external addresses of its DNAT
// rules, or f itself if it has no rules.
func throughNAT(f frontend, gateway string, byID map[string]vcdsim.Document) []frontend {
	var out []frontend
	for _, d := range byID {
		if d.Path != natPath || d.Parent != gateway {
			continue
		}
		rule := decode[natRule](d)
		port, err := strconv.Atoi(rule.DNATExternalPort)
		if external, badAddress := netip.ParseAddr(rule.ExternalAddresses); badAddress == nil && err == nil &&
			rule.InternalAddresses == f.Address.String() && port == f.Port && rule.appliesTo(f.Protocol, byID) {
			through := f
			through.Address = external
			out = append(out, through)
		}
	}
	if len(out) == 0 {
		return []frontend{f}
	}
	return out
}

// appliesTo reports whether the application port profile of the rule contains the protocol.
func (r natRule) appliesTo(protocol string, byID map[string]vcdsim.Document) bool {
	profile, ok := byID[r.ApplicationPortProfile.ID]
	return !ok || slices.ContainsFunc(decode[portProfile](profile).ApplicationPorts,
		func(p struct{ Protocol string }) bool { return p.Protocol == protocol })
}

// everything lists all documents of the kinds that the cloud controller manager creates, by kind and name.
func (v *vcd) everything() []string { return v.inventory(func(string) bool { return true }, false) }

// leftovers implements loadBalancing.
func (v *vcd) leftovers(uid string) []string {
	return slices.DeleteFunc(v.inventory(ownedBy(uid), false), func(name string) bool { return v.before[name] })
}

// snapshot implements loadBalancing.
func (v *vcd) snapshot(uid string) []string { return v.inventory(ownedBy(uid), true) }

func ownedBy(uid string) func(description string) bool {
	return func(description string) bool {
		return uid == "" || slices.Contains(strings.Fields(description), "uid="+uid)
	}
}

// inventory lists the documents whose descriptions match. With detail, it adds their IDs and versions.
func (v *vcd) inventory(wanted func(description string) bool, detail bool) []string {
	var out []string
	state := v.State()
	for _, d := range state.Documents {
		kind, ours := ourPaths[d.Path]
		about := decode[struct{ Name, Alias, Description, Scope string }](d)
		if !ours || about.Scope == "SYSTEM" || !wanted(about.Description) {
			continue
		}
		line := kind + " " + about.Name + about.Alias
		if detail {
			line += fmt.Sprintf(" %s version %d", d.ID, d.Version)
		}
		out = append(out, line)
	}
	for _, space := range state.Model.IPSpaces {
		for _, a := range space.Allocations {
			if wanted(a.Description) {
				out = append(out, "address "+a.Value)
			}
		}
	}
	slices.Sort(out)
	return out
}

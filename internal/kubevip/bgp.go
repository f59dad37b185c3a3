// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// BGP configures the announcement of addresses to routers.
type BGP struct {
	// AS is the number of the autonomous system of the nodes.
	AS uint32

	// RouterInterface is the interface whose first address is the router ID of a node.
	RouterInterface string

	// SourceInterface is the interface through which the peers are reached. If it is empty, the routes of the node
	// decide.
	SourceInterface string

	// Peers are the routers.
	Peers []Peer
}

// A Peer is a router.
type Peer struct {
	Address  netip.Addr
	AS       uint32
	Password string // key of TCP MD5 signatures; may be empty
	MultiHop bool   // the router is not on the network of the nodes
}

// maxPassword is the length of the longest key of TCP MD5 signatures that Linux accepts.
const maxPassword = 80

// peerPassword matches passwords that neither kube-vip's notation of peers nor the template engine of cloud-init
// changes.
var peerPassword = regexp.MustCompile(`^[!-+.0-9;-~-]*$`)

// peersEnv is the environment variable that contains all peers.
const peersEnv = "bgp_peers"

// env returns the environment variables of BGP, or nil for ARP.
func (b *BGP) env() []corev1.EnvVar {
	if b == nil {
		return nil
	}
	env := []corev1.EnvVar{
		{Name: "bgp_as", Value: strconv.FormatUint(uint64(b.AS), 10)},
		{Name: "bgp_routerinterface", Value: b.RouterInterface},
		{Name: peersEnv, Value: strings.ReplaceAll(b.peers(), "$", "$$")}, // the kubelet expands $(NAME)
	}
	if b.SourceInterface != "" {
		env = append(env, corev1.EnvVar{Name: "bgp_sourceif", Value: b.SourceInterface})
	}
	return env
}

// peers returns the peers in kube-vip's notation: address:AS:password:multihop, separated by commas.
func (b *BGP) peers() string {
	all := make([]string, 0, len(b.Peers))
	for _, p := range b.Peers {
		address := p.Address.String()
		if p.Address.Is6() {
			address = "[" + address + "]"
		}
		all = append(all, fmt.Sprintf("%s:%d:%s:%t", address, p.AS, p.Password, p.MultiHop))
	}
	return strings.Join(all, ",")
}

// validate checks numbers, names and passwords. Its errors never contain a password.
func (b *BGP) validate() error {
	if b.AS == 0 {
		return errors.New("the AS number of the nodes is 0")
	}
	if !interfaceName.MatchString(b.RouterInterface) {
		return fmt.Errorf("%q is not a valid interface for the router ID", b.RouterInterface)
	}
	if b.SourceInterface != "" && !interfaceName.MatchString(b.SourceInterface) {
		return fmt.Errorf("%q is not a valid source interface", b.SourceInterface)
	}
	if len(b.Peers) == 0 {
		return errors.New("BGP has no peer")
	}
	for _, p := range b.Peers {
		if err := p.validate(); err != nil {
			return err
		}
	}
	return nil
}

// validate checks a peer. Its errors never contain the password.
func (p Peer) validate() error {
	switch {
	case !p.Address.IsValid() || validateIP(p.Address) != nil:
		return fmt.Errorf("%s is not a valid address of a BGP peer", p.Address)
	case p.AS == 0:
		return fmt.Errorf("the AS number of BGP peer %s is 0", p.Address)
	case len(p.Password) > maxPassword, !peerPassword.MatchString(p.Password),
		strings.Contains(p.Password, "{{"), strings.Contains(p.Password, "{%"), strings.Contains(p.Password, "{#"):
		return fmt.Errorf("the password of BGP peer %s cannot be passed to kube-vip: use at most %d printable ASCII characters, without commas, colons, slashes, spaces, {{, {%% or {#",
			p.Address, maxPassword)
	}
	return nil
}

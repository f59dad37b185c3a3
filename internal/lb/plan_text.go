package lb

import (
	"fmt"
	"net/netip"
	"strings"
)

// detail says what matters of a step to a person who reads the plan.
func (s Step) detail() string {
	switch {
	case s.Address != nil:
		return "in " + s.Address.Space.Name
	case s.Set != nil:
		return fmt.Sprintf("%d addresses", len(s.Set.Members))
	case s.Pool != nil:
		return s.Pool.String()
	case s.Service != nil:
		return fmt.Sprintf("%s port %d on %s", s.Service.Application, s.Service.Port, join(s.Service.VIPs))
	case s.Rule != nil:
		return fmt.Sprintf("%s port %d to %s", s.Rule.External, s.Rule.ExternalPort, s.Rule.Internal)
	case s.Profile != nil:
		return fmt.Sprintf("%s port %d", s.Profile.Protocol, s.Profile.Port)
	case s.Firewall != nil:
		return fmt.Sprintf("%d ranges may come to %s", len(s.Firewall.Sources), s.Firewall.Destination)
	}
	return ""
}

// String says where the pool sends to.
func (s Pool) String() string {
	if s.Group != (Ref{}) {
		return fmt.Sprintf("node port %d of IP set %s", s.NodePort, s.Group.Name)
	}
	return fmt.Sprintf("node port %d of %d members", s.NodePort, len(s.Members))
}

func join(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, " and ")
}

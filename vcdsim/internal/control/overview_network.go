// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/loadbalancing"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Maximum numbers of network objects on the page.
const (
	shownNetworks = 100
	shownOnEdge   = 100 // virtual services per gateway
	shownMembers  = 50  // per pool
	shownSpaces   = 50
	shownEntities = 100
)

// An overviewNetworks is the page's view of networks and their objects. It is bounded, and its lists are never null.
type overviewNetworks struct {
	Networks []overviewNetwork `json:"networks"`
	Gateways []overviewGateway `json:"gateways"`
	Spaces   []overviewSpace   `json:"spaces"`
	Entities []overviewEntity  `json:"entities"`
	More     int               `json:"moreOfNetworks"` // number of omitted networks, gateways, spaces and entities
}

type overviewNetwork struct {
	Name    string `json:"name"`
	Org     string `json:"org"`
	VDC     string `json:"vdc"`
	Type    string `json:"type"`
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway"` // name of the edge gateway
	Pool    int    `json:"pool"`    // number of addresses in the static pool
	Used    int    `json:"used"`
}

type overviewGateway struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Org      string            `json:"org"`
	VDC      string            `json:"vdc"`
	Busy     bool              `json:"busy"`
	Balancer bool              `json:"balancer"` // NSX Advanced Load Balancer is enabled
	Used     []string          `json:"used"`     // external addresses with their usage
	Rules    int               `json:"rules"`    // number of NAT rules
	Services []overviewService `json:"services"`
	More     int               `json:"more"` // number of omitted virtual services
	Unused   []overviewPool    `json:"unused"`
}

type overviewService struct {
	Name    string       `json:"name"`
	Address string       `json:"address"`
	Health  string       `json:"health"`
	Pool    overviewPool `json:"pool"`
}

type overviewPool struct {
	Name    string           `json:"name"`
	Health  string           `json:"health"`
	Members []overviewMember `json:"members"`
	More    int              `json:"more"` // number of omitted members
}

type overviewMember struct {
	Address string `json:"address"`
	Health  string `json:"health"`
}

type overviewSpace struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Total       int      `json:"total"` // number of floating IPs
	Allocated   int      `json:"allocated"`
	Allocations []string `json:"allocations"` // address or prefix, and its usage
}

type overviewEntity struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Type  string `json:"type"`
	State string `json:"state"`
	Phase string `json:"phase"` // phase of a cluster
	Org   string `json:"org"`
}

// overviewOfNetworks lists the objects that contain the filter in their name or in the name of a child object.
func overviewOfNetworks(s *cloud.Cloud, filter string) overviewNetworks {
	out := overviewNetworks{
		Networks: []overviewNetwork{},
		Gateways: []overviewGateway{},
		Spaces:   []overviewSpace{},
		Entities: []overviewEntity{},
	}
	for i := range s.Store.Model.Orgs {
		org := &s.Store.Model.Orgs[i]
		for j := range org.VDCs {
			vdc := &org.VDCs[j]
			for k := range vdc.Networks {
				out.addNetwork(s, org, vdc, &vdc.Networks[k], filter)
			}
			for k := range vdc.EdgeGateways {
				out.addGateway(s, org, vdc, &vdc.EdgeGateways[k], filter)
			}
		}
	}
	for i := range s.Store.Model.IPSpaces {
		out.addSpace(&s.Store.Model.IPSpaces[i], filter)
	}
	for _, d := range s.Store.Documents[access.EntitiesPath] {
		out.addEntity(s, d, filter)
	}
	return out
}

// put adds an item to a bounded list if one of words contains the filter.
func put[T any](o *overviewNetworks, list *[]T, limit int, item T, filter string, words ...string) {
	switch {
	case !slices.ContainsFunc(words, func(word string) bool { return matches(word, filter) }):
	case len(*list) >= limit:
		o.More++
	default:
		*list = append(*list, item)
	}
}

func (o *overviewNetworks) addNetwork(s *cloud.Cloud, org *store.Org, vdc *store.VDC, n *store.Network, filter string) {
	put(o, &o.Networks, shownNetworks, overviewNetwork{
		Name:    n.Name,
		Org:     org.Name,
		VDC:     vdc.Name,
		Type:    string(n.Type),
		Subnet:  n.Gateway.String(),
		Gateway: s.Store.GatewayName(n.Edge),
		Pool:    gateways.Count(n.StaticPool),
		Used:    len(machines.IPAMOf(s).AddressesIn(n.ID)),
	}, filter, n.Name)
}

func (o *overviewNetworks) addGateway(s *cloud.Cloud, org *store.Org, vdc *store.VDC, g *store.EdgeGateway, filter string) {
	out := overviewGateway{
		ID:       g.ID,
		Name:     g.Name,
		Org:      org.Name,
		VDC:      vdc.Name,
		Busy:     s.Tasks.Busy(g.ID),
		Balancer: g.LoadBalancer != nil && g.LoadBalancer.Enabled,
		Used:     []string{},
		Services: []overviewService{},
		Unused:   []overviewPool{},
		Rules:    len(s.Store.Documents.On(g.ID, gateways.NATPath)),
	}
	words := []string{g.Name}
	for _, u := range gateways.EdgesOf(s).UsedBy(g) {
		out.Used = append(out.Used, u.Address.String()+" "+u.Category)
	}
	for _, d := range s.Store.Documents.On(g.ID, documents.ServicePath) {
		service := overviewOfService(s, d)
		words = append(words, service.Name, service.Address, service.Pool.Name)
		switch {
		case !matches(g.Name, filter) && !matches(service.Name+" "+service.Address+" "+service.Pool.Name, filter):
		case len(out.Services) >= shownOnEdge:
			out.More++
		default:
			out.Services = append(out.Services, service)
		}
	}
	for _, d := range s.Store.Documents.On(g.ID, documents.PoolPath) {
		pool := overviewOfPool(s, d)
		if len(loadbalancing.ServicesOfPool(s.Store.Documents, d.ID())) == 0 && len(out.Unused) < shownOnEdge {
			words = append(words, pool.Name)
			out.Unused = append(out.Unused, pool)
		}
	}
	slices.SortFunc(out.Services, func(a, b overviewService) int { return cmp.Compare(a.Name, b.Name) })
	put(o, &o.Gateways, shownNetworks, out, filter, words...)
}

func overviewOfService(s *cloud.Cloud, d *store.Object) overviewService {
	out := overviewService{
		Name:    store.Text(d.Body, "name"),
		Address: strings.Join(gateways.VirtualIPs(d.Body), " ") + portsOf(d.Body),
		Pool:    overviewPool{Members: []overviewMember{}},
	}
	up := 0
	if pool := s.Store.Documents.Find(documents.PoolPath, store.RefID(d.Body, "loadBalancerPoolRef")); pool != nil {
		out.Pool = overviewOfPool(s, pool)
		up = loadbalancing.BalancingOf(s).UpMembers(pool)
	}
	out.Health = loadbalancing.BalancingOf(s).Health(d, up)
	return out
}

// portsOf returns the ports that a virtual service listens on.
func portsOf(body map[string]any) string {
	var ports []string
	list, _ := body["servicePorts"].([]any)
	for _, item := range list {
		if port, ok := item.(map[string]any); ok {
			ports = append(ports, fmt.Sprint(port["portStart"]))
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return ":" + strings.Join(ports, ",")
}

// overviewOfPool lists the members of a pool, or the addresses of the group that defines the members.
func overviewOfPool(s *cloud.Cloud, d *store.Object) overviewPool {
	out := overviewPool{Name: store.Text(d.Body, "name"), Members: []overviewMember{}}
	out.Health = loadbalancing.BalancingOf(s).Health(d, loadbalancing.BalancingOf(s).UpMembers(d))
	var members []overviewMember
	for _, m := range loadbalancing.PoolMembers(d.Body) {
		health := loadbalancing.BalancingOf(s).MemberHealth(d, m, out.Health)
		if !documents.Enabled(m) {
			health = "DISABLED"
		}
		members = append(members, overviewMember{fmt.Sprintf("%v:%d", m["ipAddress"], loadbalancing.MemberPort(d.Body, m)), health})
	}
	if g := s.Store.Documents.Find(firewalls.GroupPath, store.RefID(d.Body, "memberGroupRef")); g != nil {
		for _, a := range firewalls.SetAddresses(g) {
			members = append(members, overviewMember{
				fmt.Sprintf("%v:%v", a, d.Body["defaultPort"]),
				groupHealth(s, d, fmt.Sprint(a), out.Health),
			})
		}
	}
	out.Members = append(out.Members, members[:min(len(members), shownMembers)]...)
	out.More = len(members) - len(out.Members)
	return out
}

// groupHealth returns the health of an address in a group of members.
func groupHealth(s *cloud.Cloud, pool *store.Object, address, health string) string {
	if a, err := netip.ParseAddr(address); err == nil {
		member := map[string]any{"ipAddress": a.String(), "port": pool.Body["defaultPort"]}
		return loadbalancing.BalancingOf(s).MemberHealth(pool, member, health)
	}
	return health
}

func (o *overviewNetworks) addSpace(p *store.IPSpace, filter string) {
	out := overviewSpace{Name: p.Name, Type: p.Type, Total: gateways.Count(p.Ranges), Allocations: []string{}}
	words := []string{p.Name}
	for _, a := range p.Allocations {
		if a.Type == store.FloatingIP {
			out.Allocated++
		}
		words = append(words, a.Value, a.Description)
		if len(out.Allocations) < shownOnEdge {
			out.Allocations = append(out.Allocations, strings.TrimSpace(a.Value+" "+a.Description))
		}
	}
	put(o, &o.Spaces, shownSpaces, out, filter, words...)
}

func (o *overviewNetworks) addEntity(s *cloud.Cloud, d *store.Object, filter string) {
	out := overviewEntity{
		ID:    d.ID(),
		Name:  store.Text(d.Body, "name"),
		Type:  store.Text(d.Body, "entityType"),
		State: store.Text(d.Body, "state"),
	}
	if org := s.Store.Org(d.OrgID); org != nil {
		out.Org = org.Name
	}
	content, _ := d.Body["entity"].(map[string]any)
	status, _ := content["status"].(map[string]any)
	for _, section := range []string{"capvcd", "vcdKe"} {
		if of, ok := status[section].(map[string]any); ok && out.Phase == "" {
			out.Phase = store.Text(of, "phase")
		}
	}
	put(o, &o.Entities, shownEntities, out, filter, out.Name, out.ID)
}

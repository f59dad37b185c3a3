// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const poolsPath = "/cloudapi/1.0.0/loadBalancer/pools"

// clientIP is the persistence that sends a client, known by its address, to the same member again.
const clientIP = "CLIENT_IP"

// A ServerPool is a load balancer pool.
type ServerPool struct {
	Ref

	Description string // carries the ownership marker
	Status      Realization
	MemberCount int  // not used in what is written
	ByGroup     bool // its members are those of a group; not used in what is written
	Monitored   bool // it has health monitors; not used in what is written

	// Lists do not contain what follows.

	Gateway     Ref
	Algorithm   string // ROUND_ROBIN, LEAST_CONNECTIONS …; empty in a new pool for VCD's own choice
	DefaultPort int
	Members     []PoolMember
	MemberGroup Ref // the IP set whose addresses are the members; zero if there is none; see Features.MemberGroups
	Monitors    []string
	Sticky      bool // a client is sent to the same member again, by its address
}

// A PoolMember is an address that a pool sends to.
type PoolMember struct {
	Address netip.Addr
	Port    int
}

// A PoolChange is one change of a pool: what is nil stays as it is.
type PoolChange struct {
	Name        *string
	Description *string
	Algorithm   *string
	DefaultPort *int
	Members     *[]PoolMember // replace a member group
	MemberGroup *string       // replaces members
	Monitors    []string      // types that are added unless they are there; others stay, as those that are there do
	NoMonitors  []string      // types that are taken away, unless Monitors names them
	Sticky      *bool         // false takes persistence by address of the client away, and no other
}

type wirePool struct {
	wireObject

	MemberCount     int    `json:"memberCount"`
	MemberGroupType string `json:"memberGroupType"` // of summaries
	ActiveMonitors  bool   `json:"activeMonitoringEnabled"`

	Gateway        *wire.Ref        `json:"gatewayRef"`
	Algorithm      string           `json:"algorithm"`
	DefaultPort    int              `json:"defaultPort"`
	Members        []wirePoolMember `json:"members"`
	MemberGroup    *wire.Ref        `json:"memberGroupRef"`
	HealthMonitors []wireType       `json:"healthMonitors"`
	Persistence    wireType         `json:"persistenceProfile"`
}

type wirePoolMember struct {
	Address string `json:"ipAddress"`
	Port    int    `json:"port,omitempty"`
	Ratio   int    `json:"ratio,omitempty"`
	Enabled bool   `json:"enabled"`
}

// A wireType is a health monitor, a persistence profile or another profile, known by its type.
type wireType struct {
	Type string `json:"type,omitempty"`
}

func (w *wirePool) pool() ServerPool {
	p := ServerPool{
		Ref:         refOf(&w.Ref),
		Description: w.Description,
		Status:      w.Status,
		MemberCount: w.MemberCount,
		ByGroup:     w.MemberGroupType != "" || refOf(w.MemberGroup).ID != "",
		Monitored:   w.ActiveMonitors || len(w.HealthMonitors) > 0,
		Gateway:     refOf(w.Gateway),
		Algorithm:   w.Algorithm,
		DefaultPort: w.DefaultPort,
		MemberGroup: refOf(w.MemberGroup),
		Sticky:      w.Persistence.Type == clientIP,
	}
	for _, m := range w.Members {
		if addr := wire.Address(m.Address); addr.IsValid() {
			p.Members = append(p.Members, PoolMember{Address: addr, Port: m.Port})
		}
	}
	for _, m := range w.HealthMonitors {
		p.Monitors = append(p.Monitors, m.Type)
	}
	return p
}

// Pools lists the load balancer pools of a gateway, of all owners. It takes the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2).
func (b *Balancers) Pools(ctx context.Context, gateway string) ([]ServerPool, error) {
	return api.ListAs(ctx, b.client, onGateway(gateway, "/loadBalancer/poolSummaries", "pools", "name"), (*wirePool).pool)
}

// Pool reads a pool by its URN.
func (b *Balancers) Pool(ctx context.Context, id string) (ServerPool, error) {
	return api.Read(ctx, b.client, "pool", id, poolPath(id), (*wirePool).pool)
}

func poolPath(id string) string { return poolsPath + "/" + url.PathEscape(id) }

// CreatePool starts creating a pool; the task's owner is the new pool. It takes the right
// "Organization vDC Gateway: Configure Load Balancer", as do all changes.
func (b *Balancers) CreatePool(ctx context.Context, p ServerPool) (Task, error) {
	monitors := make([]wireType, len(p.Monitors))
	for i, t := range p.Monitors {
		monitors[i].Type = t
	}
	body := map[string]any{
		"name":           p.Name,
		"description":    p.Description,
		"enabled":        true,
		"gatewayRef":     wire.RefTo(p.Gateway.ID),
		"defaultPort":    p.DefaultPort,
		"healthMonitors": monitors,
	}
	if p.Algorithm != "" {
		body["algorithm"] = p.Algorithm
	}
	if p.MemberGroup.ID != "" {
		body["memberGroupRef"] = wire.RefTo(p.MemberGroup.ID)
	} else {
		members := make([]wirePoolMember, len(p.Members))
		for i, m := range p.Members {
			members[i] = wirePoolMember{Address: m.Address.String(), Port: m.Port, Ratio: 1, Enabled: true}
		}
		body["members"] = members
	}
	if p.Sticky {
		body["persistenceProfile"] = wireType{clientIP}
	}
	return startCreating(ctx, b.client, "pool", p.Name, poolsPath, body)
}

// UpdatePool reads a pool, changes it and starts writing it back; what the change does not name stays as VCD wrote it.
// If nothing changes, nothing is written, and the task has succeeded.
func (b *Balancers) UpdatePool(ctx context.Context, id string, change PoolChange) (Task, error) {
	return startChanging(ctx, b.client, "pool", id, poolPath(id), change.apply)
}

// DeletePool starts deleting a pool, which no virtual service may use.
func (b *Balancers) DeletePool(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, b.client, "pool", id, poolPath(id))
}

func (c PoolChange) apply(o wire.Object) (bool, error) {
	return wire.Either(
		wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetIf(o, "algorithm", c.Algorithm),
		wire.SetIf(o, "defaultPort", c.DefaultPort), wire.SetBy(o, c.MemberGroup, setMemberGroup), wire.SetBy(o, c.Members, setMembers),
		setMonitors(o, c.Monitors, c.NoMonitors), wire.SetBy(o, c.Sticky, setSticky),
	), nil
}

func setMemberGroup(o wire.Object, id string) bool {
	var now wire.Ref
	_ = json.Unmarshal(o["memberGroupRef"], &now) // null is none
	if now.ID == id {
		return false
	}
	o.Set("memberGroupRef", wire.RefTo(id))
	if id != "" {
		o.Set("members", []any{})
		o.Set("memberCount", 0)
	}
	return true
}

// setMembers makes the pool's members those given. Other fields of members that stay are kept.
func setMembers(o wire.Object, members []PoolMember) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["members"], &now) // null is none
	known := map[netip.Addr]wire.Object{}
	for _, m := range now {
		known[wire.Address(m.Text("ipAddress"))] = m
	}
	list := make([]wire.Object, 0, len(members))
	same := len(now) == len(members) && wire.SameJSON(o["memberGroupRef"], nil)
	for _, m := range members {
		member, ok := known[m.Address]
		if !ok {
			member = wire.Object{}
			member.Set("ipAddress", m.Address.String())
			member.Set("enabled", true)
			member.Set("ratio", 1)
		}
		same = !member.Set("port", m.Port) && ok && same
		list = append(list, member)
	}
	if same {
		return false
	}
	o.Set("memberGroupRef", nil)
	o.Set("members", list)
	return true
}

// setMonitors adds monitors of types that the pool lacks, and takes those of other types away. All others stay as they
// are.
func setMonitors(o wire.Object, add, remove []string) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["healthMonitors"], &now) // null is none
	list := slices.DeleteFunc(slices.Clone(now), func(m wire.Object) bool {
		return slices.Contains(remove, m.Text("type")) && !slices.Contains(add, m.Text("type"))
	})
	same := len(list) == len(now)
	for _, t := range add {
		if !slices.ContainsFunc(list, func(m wire.Object) bool { return m.Text("type") == t }) {
			monitor := wire.Object{}
			monitor.Set("type", t)
			list = append(list, monitor)
			same = false
		}
	}
	return !same && o.Set("healthMonitors", list)
}

func setSticky(o wire.Object, sticky bool) bool {
	var now wireType
	_ = json.Unmarshal(o["persistenceProfile"], &now) // null is none
	switch {
	case sticky == (now.Type == clientIP):
		return false
	case sticky:
		return o.Set("persistenceProfile", wireType{clientIP})
	}
	return o.Set("persistenceProfile", nil)
}

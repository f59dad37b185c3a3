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

// clientIP is the persistence type that sends a client address to the same member each time.
const clientIP = "CLIENT_IP"

// A ServerPool is a load balancer pool.
type ServerPool struct {
	Ref

	Description string // contains the ownership marker
	Status      Realization
	MemberCount int  // ignored in writes
	ByGroup     bool // its members come from a group; ignored in writes
	Monitored   bool // it has health monitors; ignored in writes

	// The following fields are not set in lists.

	Gateway     Ref
	Algorithm   string // ROUND_ROBIN, LEAST_CONNECTIONS …; empty in a new pool: VCD's default
	DefaultPort int
	Members     []PoolMember
	MemberGroup Ref      // IP set whose addresses are the members, or zero; see Features.MemberGroups
	Monitors    []string // their types
	// Checks are those monitors that are objects with their own settings; see Features.HealthMonitors.
	Checks []Ref
	Sticky bool // persistence by the address of the client
}

// A PoolMember is an address to which a pool sends traffic.
type PoolMember struct {
	Address netip.Addr
	Port    int
}

// A PoolChange is one change of a pool. Nil fields stay unchanged.
type PoolChange struct {
	Name        *string
	Description *string
	Algorithm   *string
	DefaultPort *int
	Members     *[]PoolMember  // replaces a member group
	MemberGroup *string        // replaces members
	Monitors    []string       // types to add if missing; existing monitors are kept
	NoMonitors  []string       // types of monitors without settings to remove, unless Monitors contains them
	Check       *HealthMonitor // a monitor with settings to add if it is missing
	NoCheck     *string        // ID of a monitor with settings to remove
	Sticky      *bool          // false removes persistence by client address only
}

type wirePool struct {
	wireObject

	MemberCount     int    `json:"memberCount"`
	MemberGroupType string `json:"memberGroupType"` // in summaries
	ActiveMonitors  bool   `json:"activeMonitoringEnabled"`

	Gateway        *wire.Ref         `json:"gatewayRef"`
	Algorithm      string            `json:"algorithm"`
	DefaultPort    int               `json:"defaultPort"`
	Members        []wirePoolMember  `json:"members"`
	MemberGroup    *wire.Ref         `json:"memberGroupRef"`
	HealthMonitors []wirePoolMonitor `json:"healthMonitors"`
	Persistence    wireType          `json:"persistenceProfile"`
}

type wirePoolMember struct {
	Address string `json:"ipAddress"`
	Port    int    `json:"port,omitempty"`
	Ratio   int    `json:"ratio,omitempty"`
	Enabled bool   `json:"enabled"`
}

// A wirePoolMonitor is a health monitor of a pool. Before API 39.0, it has no ID.
type wirePoolMonitor struct {
	wire.Ref
	wireType

	SystemDefined *bool `json:"systemDefined"`
}

// A wireType is a persistence profile or another profile that is identified by its type.
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
		if m.SystemDefined != nil && !*m.SystemDefined {
			p.Checks = append(p.Checks, refOf(&m.Ref))
		}
	}
	return p
}

// Pools lists the load balancer pools of a gateway, of all owners. It requires the right "Organization vDC Gateway:
// View Load Balancer" (VCD 10.2).
func (b *Balancers) Pools(ctx context.Context, gateway string) ([]ServerPool, error) {
	return api.ListAs(ctx, b.client, onGateway(gateway, "/loadBalancer/poolSummaries", "pools", "name"), (*wirePool).pool)
}

// Pool reads a pool by its URN.
func (b *Balancers) Pool(ctx context.Context, id string) (ServerPool, error) {
	return api.Read(ctx, b.client, "pool", id, poolPath(id), (*wirePool).pool)
}

func poolPath(id string) string { return poolsPath + "/" + url.PathEscape(id) }

// CreatePool starts the creation of a pool. The owner of the task is the new pool. Like all changes, it requires the
// right "Organization vDC Gateway: Configure Load Balancer".
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

// UpdatePool reads a pool, changes it and starts writing it back. Fields that the change does not set are sent as VCD
// returned them. If nothing changes, UpdatePool writes nothing and returns a succeeded task.
func (b *Balancers) UpdatePool(ctx context.Context, id string, change PoolChange) (Task, error) {
	return startChanging(ctx, b.client, "pool", id, poolPath(id), change.apply)
}

// DeletePool starts the deletion of a pool, which must not be in use by a virtual service.
func (b *Balancers) DeletePool(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, b.client, "pool", id, poolPath(id))
}

func (c PoolChange) apply(o wire.Object) (bool, error) {
	return wire.Either(
		wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetIf(o, "algorithm", c.Algorithm),
		wire.SetIf(o, "defaultPort", c.DefaultPort), wire.SetBy(o, c.MemberGroup, setMemberGroup), wire.SetBy(o, c.Members, setMembers),
		setMonitors(o, c.Monitors, c.NoMonitors), wire.SetBy(o, c.NoCheck, removeCheck), wire.SetBy(o, c.Check, addCheck),
		wire.SetBy(o, c.Sticky, setSticky),
	), nil
}

func setMemberGroup(o wire.Object, id string) bool {
	var now wire.Ref
	_ = json.Unmarshal(o["memberGroupRef"], &now) // may be null
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

// setMembers replaces the members of the pool. It preserves other fields of members that remain.
func setMembers(o wire.Object, members []PoolMember) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["members"], &now) // may be null
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

// setMonitors adds monitors of the types in add that the pool lacks, and removes those of the types in remove. It keeps
// all others, also monitors of these types with their own settings.
func setMonitors(o wire.Object, add, remove []string) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["healthMonitors"], &now) // may be null
	list := slices.DeleteFunc(slices.Clone(now), func(m wire.Object) bool {
		return slices.Contains(remove, m.Text("type")) && !slices.Contains(add, m.Text("type")) && !hasSettings(m)
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

// hasSettings reports whether a monitor of a pool is an object with its own settings.
func hasSettings(m wire.Object) bool {
	systemDefined := true
	if raw, ok := m["systemDefined"]; ok {
		_ = json.Unmarshal(raw, &systemDefined) // may be null
	}
	return !systemDefined
}

// addCheck adds a monitor with settings, unless the pool has it.
func addCheck(o wire.Object, check HealthMonitor) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["healthMonitors"], &now) // may be null
	if slices.ContainsFunc(now, func(m wire.Object) bool { return m.Text("id") == check.ID }) {
		return false
	}
	monitor := wire.Object{}
	monitor.Set("id", check.ID)
	monitor.Set("name", check.Name)
	monitor.Set("type", check.Type)
	return o.Set("healthMonitors", append(now, monitor))
}

// removeCheck removes the monitor with an ID.
func removeCheck(o wire.Object, id string) bool {
	var now []wire.Object
	_ = json.Unmarshal(o["healthMonitors"], &now) // may be null
	left := slices.DeleteFunc(slices.Clone(now), func(m wire.Object) bool { return m.Text("id") == id })
	return len(left) != len(now) && o.Set("healthMonitors", left)
}

func setSticky(o wire.Object, sticky bool) bool {
	var now wireType
	_ = json.Unmarshal(o["persistenceProfile"], &now) // may be null
	switch {
	case sticky == (now.Type == clientIP):
		return false
	case sticky:
		return o.Set("persistenceProfile", wireType{clientIP})
	}
	return o.Set("persistenceProfile", nil)
}

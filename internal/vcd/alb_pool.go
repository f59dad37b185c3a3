package vcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
)

const poolsPath = "/cloudapi/1.0.0/loadBalancer/pools"

// ClientIP is the persistence that sends a client, known by its address, to the same member again.
const ClientIP = "CLIENT_IP"

// A Health is how a load balancer finds a pool or virtual service: UP, DOWN, DISABLED, UNAVAILABLE, PENDING or UNKNOWN.
type Health string

// A PoolSummary is a pool as it stands in lists.
type PoolSummary struct {
	Ref

	Description     string // carries the ownership marker
	Status          Realization
	Health          Health
	Members         int // how many members it has
	EnabledMembers  int
	UpMembers       int
	Enabled         bool
	ByGroup         bool // its members are those of a group
	ActiveMonitors  bool // it has health monitors
	VirtualServices []Ref
}

// A ServerPool is a pool in full.
type ServerPool struct {
	PoolSummary

	Gateway     Ref
	Algorithm   string // ROUND_ROBIN, LEAST_CONNECTIONS …
	DefaultPort int
	MemberList  []PoolMember
	MemberGroup Ref // the IP set whose addresses are the members; zero if there is none
	Monitors    []string
	Persistence string // ClientIP …; empty for none
}

// A PoolMember is an address that a pool sends to.
type PoolMember struct {
	Address netip.Addr
	Port    int
	Enabled bool // not used in what is written: new members are enabled, and what somebody disabled stays so
}

// A PoolSpec is what a new pool looks like. It has members or a member group.
type PoolSpec struct {
	Name        string
	Description string
	Gateway     string // URN
	Algorithm   string // empty for VCD's own choice
	DefaultPort int
	Members     []PoolMember
	MemberGroup string // URN of an IP set; see Features.MemberGroups
	Monitors    []string
	Sticky      bool // a client gets to the same member again, by its address
}

// A PoolChange is one change of a pool: what is nil stays as it is.
type PoolChange struct {
	Name        *string
	Description *string
	Algorithm   *string
	DefaultPort *int
	Members     *[]PoolMember // takes the place of a member group
	MemberGroup *string       // takes the place of members
	Monitors    []string      // types that are added unless they are there; others stay, as those that are there do
	NoMonitors  []string      // types that are taken away, unless Monitors names them
	Sticky      *bool         // false takes persistence by address of the client away, and no other
}

type wirePool struct {
	ID              string      `json:"id"`
	Name            string      `json:"name"`
	Description     string      `json:"description"`
	Status          Realization `json:"status"`
	HealthStatus    Health      `json:"healthStatus"`
	Enabled         *bool       `json:"enabled"`
	MemberCount     int         `json:"memberCount"`
	EnabledMembers  int         `json:"enabledMemberCount"`
	UpMemberCount   int         `json:"upMemberCount"`
	MemberGroupType string      `json:"memberGroupType"` // of summaries
	ActiveMonitors  bool        `json:"activeMonitoringEnabled"`
	Services        []wireRef   `json:"virtualServiceRefs"`

	Gateway        *wireRef         `json:"gatewayRef"`
	Algorithm      string           `json:"algorithm"`
	DefaultPort    int              `json:"defaultPort"`
	Members        []wirePoolMember `json:"members"`
	MemberGroup    *wireRef         `json:"memberGroupRef"`
	HealthMonitors []wireMonitor    `json:"healthMonitors"`
	Persistence    *wirePersistence `json:"persistenceProfile"`
}

type wirePoolMember struct {
	Address string `json:"ipAddress"`
	Port    int    `json:"port,omitempty"`
	Ratio   int    `json:"ratio,omitempty"`
	Enabled bool   `json:"enabled"`
}

type wireMonitor struct {
	Type string `json:"type"`
}

type wirePersistence struct {
	Type string `json:"type,omitempty"`
}

func (w *wirePool) summary() PoolSummary {
	summary := PoolSummary{
		Ref: Ref{ID: w.ID, Name: w.Name}, Description: w.Description, Status: w.Status, Health: w.HealthStatus,
		Members: w.MemberCount, EnabledMembers: w.EnabledMembers, UpMembers: w.UpMemberCount,
		Enabled: w.Enabled == nil || *w.Enabled, ByGroup: w.MemberGroupType != "" || w.MemberGroup.ref().ID != "",
		ActiveMonitors: w.ActiveMonitors || len(w.HealthMonitors) > 0,
	}
	for _, vs := range w.Services {
		summary.VirtualServices = append(summary.VirtualServices, vs.ref())
	}
	return summary
}

func (w *wirePool) pool() ServerPool {
	p := ServerPool{
		PoolSummary: w.summary(), Gateway: w.Gateway.ref(), Algorithm: w.Algorithm, DefaultPort: w.DefaultPort, MemberGroup: w.MemberGroup.ref(),
	}
	for _, m := range w.Members {
		if addr := parseAddr(m.Address); addr.IsValid() {
			p.MemberList = append(p.MemberList, PoolMember{Address: addr, Port: m.Port, Enabled: m.Enabled})
		}
	}
	for _, m := range w.HealthMonitors {
		p.Monitors = append(p.Monitors, m.Type)
	}
	if w.Persistence != nil {
		p.Persistence = w.Persistence.Type
	}
	return p
}

// Balancers are the load balancers of edge gateways: pools, virtual services and certificates.
type Balancers struct{ *client }

// PoolSummaries lists the load balancer pools of a gateway, whoever they belong to. It takes the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2).
func (b *Balancers) PoolSummaries(ctx context.Context, gateway string) ([]PoolSummary, error) {
	l := listing{path: gatewaysPath + url.PathEscape(gateway) + "/loadBalancer/poolSummaries", what: "pools", sort: "name"}
	pools, err := listAs(ctx, b.client, l, func(w wirePool) string { return w.ID }, (*wirePool).summary)
	if err != nil {
		return nil, fmt.Errorf("listing pools of edge gateway %s: %w", gateway, err)
	}
	return pools, nil
}

// ServerPool reads a pool by its URN.
func (b *Balancers) ServerPool(ctx context.Context, id string) (ServerPool, error) {
	var doc wirePool
	if err := b.getJSON(ctx, poolPath(id), "", &doc); err != nil {
		return ServerPool{}, fmt.Errorf("reading pool %s: %w", id, err)
	}
	return doc.pool(), nil
}

func poolPath(id string) string { return poolsPath + "/" + url.PathEscape(id) }

// CreatePool starts creating a pool; the task's owner is the new pool. It takes the right
// "Organization vDC Gateway: Configure Load Balancer", as do all changes.
func (b *Balancers) CreatePool(ctx context.Context, spec PoolSpec) (Task, error) {
	body := map[string]any{
		"name": spec.Name, "description": spec.Description, "enabled": true, "gatewayRef": refTo(spec.Gateway),
		"defaultPort": spec.DefaultPort, "healthMonitors": monitors(spec.Monitors), "members": wireMembers(spec.Members),
	}
	if spec.Algorithm != "" {
		body["algorithm"] = spec.Algorithm
	}
	if spec.MemberGroup != "" {
		body["memberGroupRef"] = refTo(spec.MemberGroup)
		delete(body, "members")
	}
	if spec.Sticky {
		body["persistenceProfile"] = wirePersistence{Type: ClientIP}
	}
	task, err := b.startJSON(ctx, http.MethodPost, poolsPath, body)
	if err != nil {
		return Task{}, fmt.Errorf("creating pool %s: %w", spec.Name, err)
	}
	return task, nil
}

func monitors(types []string) []wireMonitor {
	list := make([]wireMonitor, len(types))
	for i, t := range types {
		list[i].Type = t
	}
	return list
}

func wireMembers(members []PoolMember) []wirePoolMember {
	list := make([]wirePoolMember, len(members))
	for i, m := range members {
		list[i] = wirePoolMember{Address: m.Address.String(), Port: m.Port, Ratio: 1, Enabled: true}
	}
	return list
}

// UpdatePool reads a pool, changes it and starts writing it back; what the change does not name stays as VCD wrote it. If the
// pool is so already, nothing is written, and the task has succeeded.
func (b *Balancers) UpdatePool(ctx context.Context, id string, change PoolChange) (Task, error) {
	task, err := b.change(ctx, poolPath(id), change.apply)
	if err != nil {
		return Task{}, fmt.Errorf("changing pool %s: %w", id, err)
	}
	return task, nil
}

func (c PoolChange) apply(o object) (bool, error) {
	return either(
		setIf(o, "name", c.Name), setIf(o, "description", c.Description), setIf(o, "algorithm", c.Algorithm),
		setIf(o, "defaultPort", c.DefaultPort), setBy(c.MemberGroup, o.setMemberGroup), setBy(c.Members, o.setMembers),
		o.setMonitors(c.Monitors, c.NoMonitors), setBy(c.Sticky, o.setSticky),
	), nil
}

// setIf sets a field unless there is nothing to set.
func setIf[T any](o object, field string, value *T) bool { return value != nil && o.set(field, *value) }

// setBy sets something unless there is nothing to set.
func setBy[T any](value *T, set func(T) bool) bool { return value != nil && set(*value) }

// either says whether any of some changes, which all are made, changed something.
func either(changes ...bool) bool { return slices.Contains(changes, true) }

func (o object) setMemberGroup(id string) bool {
	var now wireRef
	_ = json.Unmarshal(o["memberGroupRef"], &now) // null is none
	if now.ID == id {
		return false
	}
	o.set("memberGroupRef", refTo(id))
	if id != "" {
		o.set("members", []any{})
		o.set("memberCount", 0)
	}
	return true
}

// setMembers makes the pool's members those given. What else VCD, or somebody, noted of a member that stays is kept.
func (o object) setMembers(members []PoolMember) bool {
	var now []object
	_ = json.Unmarshal(o["members"], &now) // null is none
	known := map[netip.Addr]object{}
	for _, m := range now {
		known[parseAddr(m.textOf("ipAddress"))] = m
	}
	list := make([]object, 0, len(members))
	same := len(now) == len(members) && sameJSON(o["memberGroupRef"], nil)
	for _, m := range members {
		member, ok := known[m.Address]
		if !ok {
			member = object{}
			member.set("ipAddress", m.Address.String())
			member.set("enabled", true)
			member.set("ratio", 1)
		}
		same = !member.set("port", m.Port) && ok && same
		list = append(list, member)
	}
	if same {
		return false
	}
	o.set("memberGroupRef", nil)
	o.set("members", list)
	return true
}

// setMonitors adds monitors of types that the pool lacks, and takes those of other types away. All others stay as they are.
func (o object) setMonitors(add, remove []string) bool {
	var now []object
	_ = json.Unmarshal(o["healthMonitors"], &now) // null is none
	list := slices.DeleteFunc(slices.Clone(now), func(m object) bool {
		return slices.Contains(remove, m.textOf("type")) && !slices.Contains(add, m.textOf("type"))
	})
	same := len(list) == len(now)
	for _, t := range add {
		if !slices.ContainsFunc(list, func(m object) bool { return m.textOf("type") == t }) {
			monitor := object{}
			monitor.set("type", t)
			list, same = append(list, monitor), false
		}
	}
	return !same && o.set("healthMonitors", list)
}

func (o object) setSticky(sticky bool) bool {
	var now wirePersistence
	_ = json.Unmarshal(o["persistenceProfile"], &now) // null is none
	switch {
	case sticky == (now.Type == ClientIP):
		return false
	case sticky:
		return o.set("persistenceProfile", wirePersistence{Type: ClientIP})
	}
	return o.set("persistenceProfile", nil)
}

// DeletePool starts deleting a pool, which no virtual service may use.
func (b *Balancers) DeletePool(ctx context.Context, id string) (Task, error) {
	task, err := b.startJSON(ctx, http.MethodDelete, poolPath(id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting pool %s: %w", id, err)
	}
	return task, nil
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const servicesPath = "/cloudapi/1.0.0/loadBalancer/virtualServices"

// An Application is the kind of application profile of a virtual service.
type Application string

// Kinds of application profiles. L4TLS needs the premium feature set of the load balancer.
const (
	L4    Application = "L4"
	L4TLS Application = "L4_TLS"
	HTTP  Application = "HTTP"
	HTTPS Application = "HTTPS"
)

// applicationNames are the profiles of the system, by kind.
var applicationNames = map[Application]string{
	L4:    "System-L4-Application",
	L4TLS: "System-SSL-Application",
	HTTP:  "System-HTTP",
	HTTPS: "System-Secure-HTTP",
}

// Profiles of ports of virtual services.
const (
	TCPProxy    = "TCP_PROXY"
	UDPFastPath = "UDP_FAST_PATH"
)

// A Health is the state of a virtual service: UP, DOWN, DISABLED, UNAVAILABLE, PENDING or UNKNOWN.
type Health string

// A VirtualService is a virtual service. Lists contain all of it.
type VirtualService struct {
	Ref

	Description string // carries the ownership marker
	Status      Realization
	Health      Health
	Enabled     bool       // not used in what is written: new ones are enabled
	Address     netip.Addr // zero if there is none
	IPv6Address netip.Addr // zero if there is none; see Features.IPv6VIP
	Ports       []ServicePort
	Application Application
	Pool        Ref
	EngineGroup Ref
	Certificate Ref // zero if there is none
	Gateway     Ref
	Transparent bool // it keeps the address of the client; see Features.TransparentMode
}

// A ServicePort is a range of ports that a virtual service listens on.
type ServicePort struct {
	From, To int
	Profile  string // TCPProxy …
	SSL      bool
}

// A VirtualServiceChange is one change of a virtual service: what is nil stays as it is.
type VirtualServiceChange struct {
	Name        *string
	Description *string
	Pool        *string
	Certificate *string // empty takes it away
	Address     *netip.Addr
	IPv6Address *netip.Addr
	Ports       *[]ServicePort
	Application *Application
	Transparent *bool
	Enabled     *bool
}

type wireService struct {
	wireObject

	HealthStatus Health      `json:"healthStatus"`
	Enabled      *bool       `json:"enabled"`
	Address      string      `json:"virtualIpAddress"`
	IPv6Address  string      `json:"ipv6VirtualIpAddress"`
	Ports        []wirePort  `json:"servicePorts"`
	ProfileType  Application `json:"applicationProfileType"` // of summaries
	Profile      wireType    `json:"applicationProfile"`
	Pool         *wire.Ref   `json:"loadBalancerPoolRef"`
	EngineGroup  *wire.Ref   `json:"serviceEngineGroupRef"`
	Certificate  *wire.Ref   `json:"certificateRef"`
	Gateway      *wire.Ref   `json:"gatewayRef"`
	Transparent  *bool       `json:"transparentModeEnabled"`
}

type wirePort struct {
	From    int      `json:"portStart"`
	To      int      `json:"portEnd,omitempty"`
	SSL     bool     `json:"sslEnabled"`
	Profile wireType `json:"tcpUdpProfile"`
}

func (w *wireService) service() VirtualService {
	vs := VirtualService{
		Ref:         refOf(&w.Ref),
		Description: w.Description,
		Status:      w.Status,
		Health:      w.HealthStatus,
		Enabled:     w.Enabled == nil || *w.Enabled,
		Address:     wire.Address(w.Address),
		IPv6Address: wire.Address(w.IPv6Address),
		Application: cmp.Or(Application(w.Profile.Type), w.ProfileType),
		Pool:        refOf(w.Pool),
		EngineGroup: refOf(w.EngineGroup),
		Certificate: refOf(w.Certificate),
		Gateway:     refOf(w.Gateway),
		Transparent: w.Transparent != nil && *w.Transparent,
	}
	for _, p := range w.Ports {
		vs.Ports = append(vs.Ports,
			ServicePort{From: p.From, To: max(p.From, p.To), SSL: p.SSL, Profile: p.Profile.Type})
	}
	return vs
}

// VirtualServices lists the virtual services of a gateway, of all owners. It takes the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2).
func (b *Balancers) VirtualServices(ctx context.Context, gateway string) ([]VirtualService, error) {
	l := onGateway(gateway, "/loadBalancer/virtualServiceSummaries", "virtual services", "name")
	return api.ListAs(ctx, b.client, l, (*wireService).service)
}

// VirtualService reads a virtual service by its URN.
func (b *Balancers) VirtualService(ctx context.Context, id string) (VirtualService, error) {
	return api.Read(ctx, b.client, "virtual service", id, servicePath(id), (*wireService).service)
}

func servicePath(id string) string { return servicesPath + "/" + url.PathEscape(id) }

// CreateVirtualService starts creating a virtual service; the task's owner is the new one. It takes the right
// "Organization vDC Gateway: Configure Load Balancer", as do all changes.
func (b *Balancers) CreateVirtualService(ctx context.Context, vs VirtualService) (Task, error) {
	body := map[string]any{
		"name":                  vs.Name,
		"description":           vs.Description,
		"enabled":               true,
		"gatewayRef":            wire.RefTo(vs.Gateway.ID),
		"loadBalancerPoolRef":   wire.RefTo(vs.Pool.ID),
		"serviceEngineGroupRef": wire.RefTo(vs.EngineGroup.ID),
		"certificateRef":        wire.RefTo(vs.Certificate.ID),
		"servicePorts":          wirePorts(vs.Ports),
		"applicationProfile":    profileOf(vs.Application),
	}
	if vs.Address.IsValid() {
		body["virtualIpAddress"] = vs.Address.String()
	}
	if vs.IPv6Address.IsValid() {
		body["ipv6VirtualIpAddress"] = vs.IPv6Address.String()
	}
	if vs.Transparent {
		body["transparentModeEnabled"] = true
	}
	return startCreating(ctx, b.client, "virtual service", vs.Name, servicesPath, body)
}

func profileOf(kind Application) map[string]any {
	return map[string]any{"type": kind, "name": applicationNames[kind], "systemDefined": true}
}

func wirePorts(ports []ServicePort) []map[string]any {
	list := make([]map[string]any, len(ports))
	for i, p := range ports {
		list[i] = map[string]any{
			"portStart":     p.From,
			"portEnd":       max(p.From, p.To),
			"sslEnabled":    p.SSL,
			"tcpUdpProfile": map[string]any{"type": cmp.Or(p.Profile, TCPProxy)},
		}
	}
	return list
}

// UpdateVirtualService reads a virtual service, changes it and starts writing it back; what the change does not name
// stays as VCD wrote it. If nothing changes, nothing is written, and the task has succeeded.
func (b *Balancers) UpdateVirtualService(ctx context.Context, id string, change VirtualServiceChange) (Task, error) {
	return startChanging(ctx, b.client, "virtual service", id, servicePath(id), change.apply)
}

// DeleteVirtualService starts deleting a virtual service; its pool stays.
func (b *Balancers) DeleteVirtualService(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, b.client, "virtual service", id, servicePath(id))
}

func (c VirtualServiceChange) apply(o wire.Object) (bool, error) {
	return wire.Either(
		wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetIf(o, "enabled", c.Enabled),
		wire.SetRef(o, "loadBalancerPoolRef", c.Pool), wire.SetRef(o, "certificateRef", c.Certificate),
		wire.SetAddress(o, "virtualIpAddress", c.Address), wire.SetAddress(o, "ipv6VirtualIpAddress", c.IPv6Address),
		wire.SetBy(o, c.Transparent, setTransparent), wire.SetBy(o, c.Application, setApplication), wire.SetBy(o, c.Ports, setPorts),
	), nil
}

// setTransparent leaves the field away where VCD does not know it, if it is to be false.
func setTransparent(o wire.Object, on bool) bool {
	return (on || !wire.SameJSON(o["transparentModeEnabled"], nil)) && o.Set("transparentModeEnabled", on)
}

func setApplication(o wire.Object, kind Application) bool {
	var now wireType
	_ = json.Unmarshal(o["applicationProfile"], &now) // may be null
	return now.Type != string(kind) && o.Set("applicationProfile", profileOf(kind))
}

// setPorts changes the ports if they differ from those wanted.
func setPorts(o wire.Object, ports []ServicePort) bool {
	now := wireService{}
	_ = json.Unmarshal(o["servicePorts"], &now.Ports) // null is none
	have := now.service().Ports
	same := len(have) == len(ports)
	for i := 0; same && i < len(ports); i++ {
		want := ports[i]
		want.To = max(want.From, want.To)
		want.Profile = cmp.Or(want.Profile, TCPProxy)
		same = have[i] == want
	}
	return !same && o.Set("servicePorts", wirePorts(ports))
}

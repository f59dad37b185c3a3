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

// Kinds of application profiles. L4TLS requires the premium feature set of the load balancer.
const (
	L4    Application = "L4"
	L4TLS Application = "L4_TLS"
	HTTP  Application = "HTTP"
	HTTPS Application = "HTTPS"
)

// applicationNames are the names of the system-defined profiles, by kind.
var applicationNames = map[Application]string{
	L4:    "System-L4-Application",
	L4TLS: "System-SSL-Application",
	HTTP:  "System-HTTP",
	HTTPS: "System-Secure-HTTP",
}

// Profiles of the ports of virtual services.
const (
	TCPProxy    = "TCP_PROXY"
	UDPFastPath = "UDP_FAST_PATH"
)

// A Health is the state of a virtual service: UP, DOWN, DISABLED, UNAVAILABLE, PENDING or UNKNOWN.
type Health string

// A VirtualService is a virtual service. Lists contain all fields.
type VirtualService struct {
	Ref

	Description string // contains the ownership marker
	Status      Realization
	Health      Health
	Enabled     bool       // ignored in writes: new ones are enabled
	Address     netip.Addr // may be zero
	IPv6Address netip.Addr // may be zero; see Features.IPv6VIP
	Ports       []ServicePort
	Application Application
	Pool        Ref
	EngineGroup Ref
	Certificate Ref // may be zero
	Gateway     Ref
	Transparent bool // preserves the address of the client; see Features.TransparentMode
}

// A ServicePort is a range of ports on which a virtual service listens.
type ServicePort struct {
	From, To int
	Profile  string // TCPProxy …
	SSL      bool
}

// A VirtualServiceChange is one change of a virtual service. Nil fields stay unchanged.
type VirtualServiceChange struct {
	Name        *string
	Description *string
	Pool        *string
	Certificate *string // empty removes it
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
	ProfileType  Application `json:"applicationProfileType"` // in summaries
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

// VirtualServices lists the virtual services of a gateway, of all owners. It requires the right
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

// CreateVirtualService starts the creation of a virtual service. The owner of the task is the new virtual service. Like
// all changes, it requires the right "Organization vDC Gateway: Configure Load Balancer".
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

// UpdateVirtualService reads a virtual service, changes it and starts writing it back. Fields that the change does not
// set are sent as VCD returned them. If nothing changes, UpdateVirtualService writes nothing and returns a succeeded
// task.
func (b *Balancers) UpdateVirtualService(ctx context.Context, id string, change VirtualServiceChange) (Task, error) {
	return startChanging(ctx, b.client, "virtual service", id, servicePath(id), change.apply)
}

// DeleteVirtualService starts the deletion of a virtual service. Its pool is kept.
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

// setTransparent sets the field. It omits the value false if the object has no such field, because older versions of
// VCD do not support it.
func setTransparent(o wire.Object, on bool) bool {
	return (on || !wire.SameJSON(o["transparentModeEnabled"], nil)) && o.Set("transparentModeEnabled", on)
}

func setApplication(o wire.Object, kind Application) bool {
	var now wireType
	_ = json.Unmarshal(o["applicationProfile"], &now) // may be null
	return now.Type != string(kind) && o.Set("applicationProfile", profileOf(kind))
}

// setPorts sets the ports if they differ from the current ones.
func setPorts(o wire.Object, ports []ServicePort) bool {
	now := wireService{}
	_ = json.Unmarshal(o["servicePorts"], &now.Ports) // may be null
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

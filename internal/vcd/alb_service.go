package vcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
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
	L4: "System-L4-Application", L4TLS: "System-SSL-Application", HTTP: "System-HTTP", HTTPS: "System-Secure-HTTP",
}

// Profiles of ports of virtual services.
const (
	TCPProxy    = "TCP_PROXY"
	TCPFastPath = "TCP_FAST_PATH"
	UDPFastPath = "UDP_FAST_PATH"
)

// A VirtualService is a virtual service as it stands in lists, which tell all of it.
type VirtualService struct {
	Ref

	Description string // carries the ownership marker
	Status      Realization
	Health      Health
	Message     string // why the health is so
	Enabled     bool
	Address     netip.Addr // zero if there is none
	IPv6Address netip.Addr // zero if there is none
	Ports       []ServicePort
	Application Application
	Pool        Ref
	EngineGroup Ref
	Certificate Ref // zero if there is none
	Gateway     Ref
	Transparent bool // it keeps the address of the client
}

// A ServicePort is a range of ports that a virtual service listens on.
type ServicePort struct {
	From, To int
	Profile  string // TCPProxy …
	SSL      bool
}

// A VirtualServiceSpec is what a new virtual service looks like.
type VirtualServiceSpec struct {
	Name        string
	Description string
	Gateway     string // URN
	Pool        string // URN
	EngineGroup string // URN
	Certificate string // URN; empty for none
	Address     netip.Addr
	IPv6Address netip.Addr // see Features.IPv6VIP
	Ports       []ServicePort
	Application Application
	Transparent bool // see Features.TransparentMode
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
	ID              string      `json:"id"`
	Name            string      `json:"name"`
	Description     string      `json:"description"`
	Status          Realization `json:"status"`
	HealthStatus    Health      `json:"healthStatus"`
	HealthMessage   string      `json:"healthMessage"`
	DetailedMessage string      `json:"detailedHealthMessage"`
	Enabled         *bool       `json:"enabled"`
	Address         string      `json:"virtualIpAddress"`
	IPv6Address     string      `json:"ipv6VirtualIpAddress"`
	Ports           []wirePort  `json:"servicePorts"`
	ProfileType     Application `json:"applicationProfileType"` // of summaries
	Profile         *struct {
		Type Application `json:"type"`
	} `json:"applicationProfile"`
	Pool        *wireRef `json:"loadBalancerPoolRef"`
	EngineGroup *wireRef `json:"serviceEngineGroupRef"`
	Certificate *wireRef `json:"certificateRef"`
	Gateway     *wireRef `json:"gatewayRef"`
	Transparent *bool    `json:"transparentModeEnabled"`
}

type wirePort struct {
	From    int  `json:"portStart"`
	To      int  `json:"portEnd,omitempty"`
	SSL     bool `json:"sslEnabled"`
	Profile *struct {
		Type string `json:"type"`
	} `json:"tcpUdpProfile"`
}

func (w *wireService) service() VirtualService {
	vs := VirtualService{
		Ref: Ref{ID: w.ID, Name: w.Name}, Description: w.Description, Status: w.Status, Health: w.HealthStatus,
		Message: cmp.Or(w.DetailedMessage, w.HealthMessage), Enabled: w.Enabled == nil || *w.Enabled,
		Address: parseAddr(w.Address), IPv6Address: parseAddr(w.IPv6Address), Application: w.ProfileType,
		Pool: w.Pool.ref(), EngineGroup: w.EngineGroup.ref(), Certificate: w.Certificate.ref(), Gateway: w.Gateway.ref(),
		Transparent: w.Transparent != nil && *w.Transparent,
	}
	if w.Profile != nil {
		vs.Application = w.Profile.Type
	}
	for _, p := range w.Ports {
		port := ServicePort{From: p.From, To: max(p.From, p.To), SSL: p.SSL}
		if p.Profile != nil {
			port.Profile = p.Profile.Type
		}
		vs.Ports = append(vs.Ports, port)
	}
	return vs
}

// VirtualServices lists the virtual services of a gateway, whoever they belong to. It takes the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2).
func (b *Balancers) VirtualServices(ctx context.Context, gateway string) ([]VirtualService, error) {
	l := listing{
		path: gatewaysPath + url.PathEscape(gateway) + "/loadBalancer/virtualServiceSummaries", what: "virtual services", sort: "name",
	}
	services, err := listAs(ctx, b.client, l, func(w wireService) string { return w.ID }, (*wireService).service)
	if err != nil {
		return nil, fmt.Errorf("listing virtual services of edge gateway %s: %w", gateway, err)
	}
	return services, nil
}

// VirtualService reads a virtual service by its URN.
func (b *Balancers) VirtualService(ctx context.Context, id string) (VirtualService, error) {
	var doc wireService
	if err := b.getJSON(ctx, servicePath(id), "", &doc); err != nil {
		return VirtualService{}, fmt.Errorf("reading virtual service %s: %w", id, err)
	}
	return doc.service(), nil
}

func servicePath(id string) string { return servicesPath + "/" + url.PathEscape(id) }

// CreateVirtualService starts creating a virtual service; the task's owner is the new one. It takes the right
// "Organization vDC Gateway: Configure Load Balancer", as do all changes.
func (b *Balancers) CreateVirtualService(ctx context.Context, spec VirtualServiceSpec) (Task, error) {
	body := map[string]any{
		"name": spec.Name, "description": spec.Description, "enabled": true, "gatewayRef": refTo(spec.Gateway),
		"loadBalancerPoolRef": refTo(spec.Pool), "serviceEngineGroupRef": refTo(spec.EngineGroup), "certificateRef": refTo(spec.Certificate),
		"servicePorts": wirePorts(spec.Ports), "applicationProfile": profileOf(spec.Application),
	}
	if spec.Address.IsValid() {
		body["virtualIpAddress"] = spec.Address.String()
	}
	if spec.IPv6Address.IsValid() {
		body["ipv6VirtualIpAddress"] = spec.IPv6Address.String()
	}
	if spec.Transparent {
		body["transparentModeEnabled"] = true
	}
	task, err := b.startJSON(ctx, http.MethodPost, servicesPath, body)
	if err != nil {
		return Task{}, fmt.Errorf("creating virtual service %s: %w", spec.Name, err)
	}
	return task, nil
}

func profileOf(kind Application) map[string]any {
	return map[string]any{"type": kind, "name": applicationNames[kind], "systemDefined": true}
}

func wirePorts(ports []ServicePort) []map[string]any {
	list := make([]map[string]any, len(ports))
	for i, p := range ports {
		list[i] = map[string]any{
			"portStart": p.From, "portEnd": max(p.From, p.To), "sslEnabled": p.SSL, "tcpUdpProfile": map[string]any{"type": cmp.Or(p.Profile, TCPProxy)},
		}
	}
	return list
}

// UpdateVirtualService reads a virtual service, changes it and starts writing it back; what the change does not name stays as
// VCD wrote it. If it is so already, nothing is written, and the task has succeeded.
func (b *Balancers) UpdateVirtualService(ctx context.Context, id string, change VirtualServiceChange) (Task, error) {
	task, err := b.change(ctx, servicePath(id), change.apply)
	if err != nil {
		return Task{}, fmt.Errorf("changing virtual service %s: %w", id, err)
	}
	return task, nil
}

func (c VirtualServiceChange) apply(o object) (bool, error) {
	return either(
		setIf(o, "name", c.Name), setIf(o, "description", c.Description), setIf(o, "enabled", c.Enabled),
		setRef(o, "loadBalancerPoolRef", c.Pool), setRef(o, "certificateRef", c.Certificate),
		setAddress(o, "virtualIpAddress", c.Address), setAddress(o, "ipv6VirtualIpAddress", c.IPv6Address),
		setBy(c.Transparent, o.setTransparent), setBy(c.Application, o.setApplication), setBy(c.Ports, o.setPorts),
	), nil
}

// setTransparent leaves the field away where VCD does not know it, if it is to be false.
func (o object) setTransparent(on bool) bool {
	return (on || !sameJSON(o["transparentModeEnabled"], nil)) && o.set("transparentModeEnabled", on)
}

// setRef sets a reference; an empty URN takes it away.
func setRef(o object, field string, urn *string) bool {
	if urn == nil {
		return false
	}
	var now wireRef
	_ = json.Unmarshal(o[field], &now) // null is none
	return now.ID != *urn && o.set(field, refTo(*urn))
}

func setAddress(o object, field string, address *netip.Addr) bool {
	switch {
	case address == nil, parseAddr(o.textOf(field)) == *address:
		return false
	case !address.IsValid():
		return o.set(field, nil)
	}
	return o.set(field, address.String())
}

func (o object) setApplication(kind Application) bool {
	var now object
	_ = json.Unmarshal(o["applicationProfile"], &now) // null is none
	return now.textOf("type") != string(kind) && o.set("applicationProfile", profileOf(kind))
}

// setPorts changes the ports if they differ in something that is ours: somebody may have chosen another profile of VCD's.
func (o object) setPorts(ports []ServicePort) bool {
	now := wireService{}
	_ = json.Unmarshal(o["servicePorts"], &now.Ports) // null is none
	have := now.service().Ports
	same := len(have) == len(ports)
	for i := 0; same && i < len(ports); i++ {
		want := ports[i]
		want.To, want.Profile = max(want.From, want.To), cmp.Or(want.Profile, TCPProxy)
		same = have[i] == want
	}
	return !same && o.set("servicePorts", wirePorts(ports))
}

// DeleteVirtualService starts deleting a virtual service; its pool stays.
func (b *Balancers) DeleteVirtualService(ctx context.Context, id string) (Task, error) {
	task, err := b.startJSON(ctx, http.MethodDelete, servicePath(id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting virtual service %s: %w", id, err)
	}
	return task, nil
}

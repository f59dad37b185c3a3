package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// Reasons of findings, besides those of package lb.
const (
	// BadAnnotation: an annotation is wrong or unknown.
	BadAnnotation = "BadAnnotation"
	// BadSecret: a Secret with a certificate is missing or wrong.
	BadSecret = "BadSecret"
	// BadRanges: the source ranges cannot be read or are not allowed.
	BadRanges = "BadSourceRanges"
	// NodeLeftOut: a node cannot be a member.
	NodeLeftOut = "NodeLeftOut"
)

// Defaults are what the configuration says of all Services.
type Defaults struct {
	// Cluster is the id of the cluster.
	Cluster string
	// Certificate is the alias for ports that end TLS and name none; empty: <cluster id>-cert.
	Certificate string
	// EngineGroup and Algorithm of Services that name none.
	EngineGroup, Algorithm string
	// SourceRanges lets Services have source ranges.
	SourceRanges bool
	// IncludeControlPlane makes control plane nodes members, too.
	IncludeControlPlane bool
	// Gateways that Services choose from, by name; the first one is that of Services that name none.
	Gateways []Gateway
}

// A Gateway is where load balancers can be.
type Gateway struct {
	Name    string
	OneArm  *lb.Range
	Subnet  netip.Prefix
	IPSpace string
}

// An Input is all that the load balancer of a Service depends on.
type Input struct {
	Service *corev1.Service
	// Nodes of the cluster, all of them.
	Nodes []*corev1.Node
	// Edition of the list of Nodes ([lb.Desired.Generation]).
	Edition uint64
	// Secrets by name, of those that [SecretNames] names; a missing one is not there.
	Secrets map[string]*corev1.Secret
	// Hidden are the names of those that may not be read.
	Hidden []string
	// Namesakes are the other Services of the same name that have, or had, a load balancer.
	Namesakes []*corev1.Service
	Defaults  Defaults
	// Now tells how long a node has been without an address.
	Now time.Time
}

// A Wish is what a Service asks for.
type Wish struct {
	Desired lb.Desired
	// Gateway is the name of the gateway that it is for.
	Gateway string
	// Refusals say what is wrong with the Service; then nothing may be built.
	Refusals []lb.Finding
	// Notices say what is done otherwise than asked.
	Notices []lb.Finding
	// Wait says what has to be there first; empty if nothing is missing.
	Wait string
	// Terminates says that connections end at the load balancer, as TLS does: clients in the cluster must go there, too.
	Terminates bool
	// DryRun asks for nothing to be changed.
	DryRun bool
}

// OwnerOf is the owner of a Service's load balancer.
func OwnerOf(cluster string, s *corev1.Service) lb.Owner {
	return lb.Owner{Cluster: cluster, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}
}

// Promised are the addresses and ports that a Service keeps another one from, whether or not anything stands there: those that its clients
// were told, and those that it asks for or that were written down before their first use, unless the clients of the other one
// were told them, or the other one asks for them by name.
func Promised(cluster string, s, other *corev1.Service) []lb.Use {
	w, _ := read(s.Annotations)
	theirs, _ := read(other.Annotations)
	wanted, _ := requested(theirs, other)
	mine, _ := requested(w, s)
	addresses, before := published(s), append(published(other), wanted...)
	for _, a := range append(mine, w.intent...) {
		if !slices.Contains(before, a) {
			addresses = append(addresses, a)
		}
	}
	var out []lb.Use
	for _, a := range addresses {
		for _, p := range s.Spec.Ports {
			out = append(out, lb.Use{
				Address: a, Protocol: lb.Protocol(p.Protocol), Port: int(p.Port), Kind: lb.KindService, Name: s.Namespace + "/" + s.Name,
				Marker: lb.Marker{Owner: OwnerOf(cluster, s), Share: w.share},
			})
		}
	}
	return out
}

// Places are the ids in [PlacesAnnotation].
func Places(s *corev1.Service) []string {
	w, _ := read(s.Annotations)
	return w.standing
}

// Absent is what is asked for when a Service shall have no load balancer any more. What is wrong with the Service does not matter.
func Absent(in Input) lb.Desired {
	w, _ := read(in.Service.Annotations)
	d := in.identity(w)
	d.Absent = true
	for _, p := range in.Service.Spec.Ports {
		d.Listeners = append(d.Listeners, lb.Listener{Name: p.Name, Protocol: lb.Protocol(p.Protocol), Port: int(p.Port), NodePort: int(p.NodePort)})
	}
	return d
}

// identity is what says whose the load balancer is.
func (in Input) identity(w wishes) lb.Desired {
	d := lb.Desired{Owner: OwnerOf(in.Defaults.Cluster, in.Service), Intent: w.intent, Duplicate: len(in.Namesakes) > 0}
	for _, a := range published(in.Service) {
		if !slices.ContainsFunc(in.Namesakes, func(s *corev1.Service) bool { return slices.Contains(published(s), a) }) {
			d.Published = append(d.Published, a)
		}
	}
	return d
}

func published(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// For says what a Service asks for.
func For(in Input) Wish {
	w, wrong := read(in.Service.Annotations)
	b := builder{Input: in, wishes: w}
	b.wish = Wish{Desired: in.identity(w), Refusals: wrong, Notices: unknown(in.Service.Annotations), DryRun: w.dryRun}
	b.place()
	b.frontend()
	b.listeners()
	b.sources()
	b.members()
	return b.wish
}

// A builder makes one wish.
type builder struct {
	Input
	wishes

	wish Wish
}

func (b *builder) refuse(reason, format string, args ...any) {
	b.wish.Refusals = append(b.wish.Refusals, lb.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (b *builder) notice(reason, format string, args ...any) {
	b.wish.Notices = append(b.wish.Notices, lb.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// place finds the gateway.
func (b *builder) place() {
	d := &b.wish.Desired
	for i, g := range b.Defaults.Gateways {
		if g.Name == b.gateway || b.gateway == "" && i == 0 {
			b.wish.Gateway = g.Name
			d.OneArm, d.Subnet, d.IPSpace = g.OneArm, g.Subnet, or(b.ipSpace, g.IPSpace)
			return
		}
	}
	b.refuse(BadAnnotation, "the configuration of the cloud controller manager has no gateway %q: correct the annotation %s", b.gateway, prefix+"gateway")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// frontend says what clients see.
func (b *builder) frontend() {
	d, s := &b.wish.Desired, b.Service.Spec
	for _, f := range s.IPFamilies {
		d.Families = append(d.Families, lb.Family(f))
	}
	if len(d.Families) == 0 {
		d.Families = []lb.Family{lb.IPv4}
	}
	var err error
	if d.Requested, err = requested(b.wishes, b.Service); err != nil {
		b.refuse(lb.BadFamilies, "spec.loadBalancerIP is wrong: %v", err)
	}
	if d.Internal = b.internal; d.Internal {
		d.Subnet = b.subnet
	}
	d.Share, d.PreserveClientIP = b.share, b.preserve
	d.EngineGroup, d.Algorithm = or(b.engineGroup, b.Defaults.EngineGroup), or(b.algorithm, b.Defaults.Algorithm)
	d.Sticky = s.SessionAffinity == corev1.ServiceAffinityClientIP
	b.ignored()
}

// ignored tells of wishes that nothing comes of.
func (b *builder) ignored() {
	if b.subnet.IsValid() && !b.internal {
		b.notice(BadAnnotation, "the annotation %s does nothing without %s: set that to true, or remove it", prefix+"internal-subnet", prefix+"internal")
	}
	if c := b.Service.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil &&
		*c.ClientIP.TimeoutSeconds != corev1.DefaultClientIPServiceAffinitySeconds {
		b.notice(lb.Unsupported, "VCD does not let the time of session affinity be set: sessionAffinityConfig is not followed")
	}
}

// requested are the addresses that a Service asks for by name.
func requested(w wishes, s *corev1.Service) ([]netip.Addr, error) {
	if len(w.addresses) > 0 {
		return w.addresses, nil
	}
	return Addresses(s.Spec.LoadBalancerIP)
}

// listeners says what each port is.
func (b *builder) listeners() {
	for _, p := range b.Service.Spec.Ports {
		l := lb.Listener{
			Name: p.Name, Protocol: lb.Protocol(p.Protocol), Port: int(p.Port), NodePort: int(p.NodePort), Application: b.application(p), Health: b.health(),
		}
		if l.Protocol == "" {
			l.Protocol = lb.TCP
		}
		if l.Application.TLS() {
			l.Certificate = b.certificate(l.Port)
			b.wish.Terminates = true
		}
		b.wish.Desired.Listeners = append(b.wish.Desired.Listeners, l)
	}
	for _, n := range b.namedPorts() {
		if !slices.ContainsFunc(b.Service.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == n }) {
			b.notice(BadAnnotation, "annotations name the port %d, which the Service has not: correct or remove it", n)
		}
	}
}

// namedPorts are the ports that annotations name, sorted.
func (b *builder) namedPorts() []int {
	out := slices.Clone(b.sslPorts)
	for n := range b.profiles {
		out = append(out, n)
	}
	for _, m := range []map[int]string{b.aliases, b.secrets} {
		for n := range m {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// application is what the load balancer understands of a port: what an annotation says, else nothing where TLS passes through, else what
// appProtocol says.
func (b *builder) application(p corev1.ServicePort) lb.Application {
	if a, ok := b.profiles[int(p.Port)]; ok {
		return a
	}
	if b.noTermination || p.Protocol == corev1.ProtocolUDP {
		return lb.L4
	}
	ssl := slices.Contains(b.sslPorts, int(p.Port))
	protocol := ""
	if p.AppProtocol != nil {
		protocol = strings.ToUpper(*p.AppProtocol)
	}
	switch {
	case protocol == "HTTPS":
		return lb.HTTPS
	case protocol == "HTTP":
		if ssl {
			b.notice(BadAnnotation, "port %d has appProtocol http and is plain, though %s names it: set its appProtocol to https", p.Port, prefix+"avi-ssl-ports")
		}
		return lb.HTTP
	case ssl:
		return lb.L4TLS
	}
	return lb.L4
}

// healthPath is where kube-proxy tells whether a node has endpoints of a Service.
const healthPath = "/healthz"

func (b *builder) health() lb.Health {
	h := lb.Health{Monitor: b.monitor, Interval: b.interval}
	if s := b.Service.Spec; h.Monitor == "" && s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		h.Port, h.Path = int(s.HealthCheckNodePort), healthPath
	}
	return h
}

// sourceRangesAnnotation is the annotation that Kubernetes had before spec.loadBalancerSourceRanges.
const sourceRangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges"

// sources says who may come.
func (b *builder) sources() {
	ranges := b.Service.Spec.LoadBalancerSourceRanges
	if len(ranges) == 0 {
		ranges = list(b.Service.Annotations[sourceRangesAnnotation])
	}
	d := &b.wish.Desired
	open := map[lb.Family]bool{}
	for _, text := range ranges {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			b.refuse(BadRanges, "the source range %q is no CIDR: write one such as 192.0.2.0/24", text)
			continue
		}
		if p.Bits() == 0 {
			open[lb.FamilyOf(p.Addr())] = true
		}
		d.SourceRanges = append(d.SourceRanges, p.Masked())
	}
	if !slices.ContainsFunc(d.Families, func(f lb.Family) bool { return !open[f] }) {
		d.SourceRanges = nil
	}
	if len(d.SourceRanges) > 0 && !b.Defaults.SourceRanges {
		b.refuse(BadRanges, "source ranges are not switched on: set loadbalancer.sourceRanges in the configuration of the cloud controller manager, or remove them from the Service")
	}
}

package config

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	defaultMaxAge = 30 * time.Second
	defaultDrift  = time.Minute
)

// clusterID is what ids of clusters look like: one word.
var clusterID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`)

// placeholder stands in manifests for the id of the cluster. Two clusters that both left it there would take each other's load balancers for their own.
const placeholder = "CLUSTER_ID"

// labelValue is what values of labels look like; zones and regions are some.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

var algorithms = []string{
	"ROUND_ROBIN", "LEAST_CONNECTIONS", "LEAST_LOAD", "FASTEST_RESPONSE", "FEWEST_SERVERS", "FEWEST_TASKS", "RANDOM", "CONSISTENT_HASH", "CORE_AFFINITY",
}

const entityURN = "urn:vcloud:entity:"

// complete fills in what the file leaves to the environment and to defaults.
func (p *parser) complete(env Environment) {
	c := &p.config
	c.Site = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(c.Site, "/"), "/api"), "/")
	if c.ClusterID == "" {
		c.ClusterID = strings.TrimSpace(env.ClusterID)
	}
	if c.RDE.ID == "" && strings.HasPrefix(c.ClusterID, entityURN) {
		c.RDE.ID = c.ClusterID
	}
	if c.RDE.Disabled || strings.HasPrefix(c.RDE.ID, "NO_RDE_") {
		c.RDE.ID = ""
	}
	names := append([]string{c.vdc}, c.VDCs...)
	for _, zone := range c.Nodes.Zones {
		names = append(names, zone.VDC)
	}
	c.VDCs = distinct(names)
	c.Nodes.VApps = distinct(c.Nodes.VApps)
	if c.Nodes.MaxAge == 0 {
		c.Nodes.MaxAge = defaultMaxAge
	}
	if c.Balancer.Drift == 0 {
		c.Balancer.Drift = defaultDrift
	}
	p.readCA(env)
}

// distinct returns the values that are not empty, each once, in their order.
func distinct(values []string) []string {
	var out []string
	for _, value := range values {
		if value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}

func (p *parser) readCA(env Environment) {
	c := &p.config
	at := "vcd.caBundle"
	switch {
	case c.caInline != "" && c.caFile != "":
		p.say("vcd.caBundleFile", "is there beside vcd.caBundle: keep one")
		return
	case c.caFile != "":
		at = "vcd.caBundleFile"
		data, err := env.ReadFile(c.caFile)
		if err != nil {
			p.say(at, "cannot be read: %v", err)
			return
		}
		c.CABundle = data
	case c.caInline != "":
		c.CABundle = []byte(c.caInline)
	default:
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM(c.CABundle) {
		p.say(at, "holds no certificate in PEM format")
	}
}

// say notes what is wrong with a key that may be missing.
func (p *parser) say(path, format string, args ...any) { p.wrong(path, p.lines[path], format, args...) }

func (p *parser) validate() {
	p.validateSite()
	p.validateRequests()
	p.validateBalancer()
	p.validateNodes()
}

func (p *parser) validateSite() {
	c := &p.config
	p.validateHost()
	if c.Org == "" {
		p.say("vcd.org", "is missing: name the organisation of the cluster")
	}
	if len(c.VDCs) == 0 {
		p.say("vcd.vdc", "is missing: name the organisation VDC of the cluster")
	}
	if c.Insecure && len(c.CABundle) > 0 {
		p.say("vcd.insecureSkipVerify", "trusts any certificate, so certificates to trust mean nothing: remove one of the two")
	}
	if c.Insecure {
		c.Warnings = append(c.Warnings, "vcd.insecureSkipVerify: the certificate of the site is not checked; set vcd.caBundle instead")
	}
	p.validateIDs()
	if c.inlineUser != (Credentials{}) {
		c.Warnings = append(c.Warnings, "vcd.user, vcd.secret and vcd.refreshtoken are read by all who may read this file: move them to the Secret")
	}
}

func (p *parser) validateIDs() {
	c := &p.config
	switch {
	case c.ClusterID == placeholder:
		p.say("clusterid", "is still %s, as the manifest has it: write something that no other cluster has, such as a UUID, and never change it", placeholder)
	case c.ClusterID != "" && !clusterID.MatchString(c.ClusterID):
		p.say("clusterid", "is %q, but must be one word of letters, digits and :._-", c.ClusterID)
	}
	if c.RDE.ID != "" && !strings.HasPrefix(c.RDE.ID, entityURN) {
		p.say("rde.id", "is %q, but must begin with %s", c.RDE.ID, entityURN)
	}
}

func (p *parser) validateHost() {
	site := p.config.Site
	u, err := url.Parse(site)
	switch {
	case site == "":
		p.say("vcd.host", "is missing: write the address of VMware Cloud Director, such as https://vcd.example.com")
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		p.say("vcd.host", "must be an address of the form https://host[:port], without user, path and query")
	case u.Scheme != "https":
		p.say("vcd.host", "is %q, but credentials go by https only; certificates of your own are trusted by vcd.caBundle", site)
	}
}

func (p *parser) validateRequests() {
	r := p.config.Requests
	for _, bound := range []struct {
		path  string
		wrong bool
	}{
		{"vcd.requestsPerSecond", r.PerSecond < 0},
		{"vcd.burst", r.Burst < 0},
		{"vcd.inFlight", r.InFlight < 0},
		{"vcd.requestTimeout", r.Timeout < 0 || r.Timeout > 0 && r.Timeout < time.Second},
	} {
		if bound.wrong {
			p.say(bound.path, "is too small")
		}
	}
	p.between("nodes.maxAge", p.config.Nodes.MaxAge, time.Second, 10*time.Minute)
	p.between("loadbalancer.driftInterval", p.config.Balancer.Drift, 10*time.Second, 24*time.Hour)
}

func (p *parser) between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		p.say(path, "is %s, but must be from %s to %s", d, least, most)
	}
}

func (p *parser) validateBalancer() {
	b := &p.config.Balancer
	if b.Disabled {
		return
	}
	if p.config.ClusterID == "" {
		p.say("clusterid", "is missing, also as CLUSTER_ID: load balancers are marked with it. Write something that no other cluster has, such as the UID of namespace kube-system")
	}
	if b.Network == "" && b.Edge == "" {
		p.say("loadbalancer.network", "is missing: name the network of the nodes, or set loadbalancer.enabled to false to look after Nodes only")
	}
	if b.Algorithm != "" && !slices.Contains(algorithms, b.Algorithm) {
		p.say("loadbalancer.algorithm", "is %q, but must be one of %s", b.Algorithm, strings.Join(algorithms, ", "))
	}
	if b.ClassOnly && b.Class == "" {
		p.say("loadbalancer.classOnly", "leaves no Service to us: set loadbalancer.class")
	}
	p.validateGateway("loadbalancer", b.Gateway)
	p.validateGateways()
}

func (p *parser) validateGateways() {
	names := map[string]bool{}
	for i, g := range p.config.Balancer.Gateways {
		at := fmt.Sprintf("loadbalancer.gateways[%d]", i)
		switch {
		case g.Name == "":
			p.say(at+".name", "is missing: Services choose the gateway by it")
		case names[g.Name]:
			p.say(at+".name", "is %q, as another gateway's", g.Name)
		}
		names[g.Name] = true
		if g.Network == "" && g.Edge == "" {
			p.say(at+".network", "is missing: name a network of the gateway, or its edgeGateway")
		}
		p.validateGateway(at, g)
	}
}

func (p *parser) validateGateway(at string, g Gateway) {
	if g.Network != "" && g.Edge != "" {
		p.say(at+".edgeGateway", "is there beside network, which decides the edge gateway: keep one")
	}
	arm := g.OneArm
	if arm == nil {
		return
	}
	switch {
	case !arm.From.IsValid():
		p.say(at+".oneArm.startIP", "is missing or wrong: write the first address")
	case !arm.To.IsValid():
		p.say(at+".oneArm.endIP", "is missing or wrong: write the last address")
	case arm.From.Is4() != arm.To.Is4():
		p.say(at+".oneArm.endIP", "is %s, of another family than startIP", arm.To)
	case arm.To.Less(arm.From):
		p.say(at+".oneArm.endIP", "is %s, which is before startIP %s", arm.To, arm.From)
	}
}

func (p *parser) validateNodes() {
	n := &p.config.Nodes
	if n.Region != "" && !labelValue.MatchString(n.Region) {
		p.say("nodes.region", "is %q, which cannot be the value of a label", n.Region)
	}
	p.validateZones()
	for at, s := range map[string]Selection{"nodes.addresses.internal": n.Internal, "nodes.addresses.external": n.External} {
		if slices.ContainsFunc(s.NICs, func(i int) bool { return i < 0 || i > 9 }) {
			p.say(at+".nics", "must be from 0 to 9")
		}
	}
}

func (p *parser) validateZones() {
	where := map[string]bool{}
	for i, zone := range p.config.Nodes.Zones {
		at := fmt.Sprintf("nodes.zones[%d]", i)
		if !labelValue.MatchString(zone.Name) {
			p.say(at+".name", "is %q, but must be the value of a label", zone.Name)
		}
		if zone.Region != "" && !labelValue.MatchString(zone.Region) {
			p.say(at+".region", "is %q, which cannot be the value of a label", zone.Region)
		}
		if zone.VDC == "" {
			p.say(at+".vdc", "is missing: name the VDC of the zone")
		}
		place := zone.VDC + "\x00" + zone.PlacementPolicy
		if where[place] {
			p.say(at+".vdc", "and placementPolicy are those of another zone")
		}
		where[place] = true
	}
}

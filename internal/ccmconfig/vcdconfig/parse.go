// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// clusterID matches ids of clusters: one word.
var clusterID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`)

// placeholder stands in manifests for the id of the cluster. Two clusters that both kept it would take each other's
// load balancers for their own.
const placeholder = "CLUSTER_ID"

var algorithms = []string{
	"ROUND_ROBIN", "LEAST_CONNECTIONS", "LEAST_LOAD", "FASTEST_RESPONSE", "FEWEST_SERVERS", "FEWEST_TASKS", "RANDOM",
	"CONSISTENT_HASH", "CORE_AFFINITY",
}

const entityURN = "urn:vcloud:entity:"

// Parse reads a file, completes it and checks it. The error has everything that is wrong, one problem on each line.
func Parse(file []byte, env ccmconfig.Environment) (c Config, warnings []string, err error) {
	r, err := ccmconfig.Decode(file, &c, env)
	if err != nil {
		return c, nil, err
	}
	check := checker{&c, r}
	check.complete(env)
	check.validateHost()
	check.validateSite()
	check.validateIDs()
	check.validateRequests()
	check.validateLoadBalancer()
	check.validateNodes()
	return c, r.Warnings, r.Err()
}

// ParseRange reads "first-last"; the empty string is the default range.
func ParseRange(s string) (Range, error) {
	first, last, found := strings.Cut(s, "-")
	if !found && s != "" {
		return Range{}, fmt.Errorf("%q is no range of addresses of the form first-last", s)
	}
	return NewRange(strings.TrimSpace(first), strings.TrimSpace(last))
}

// NewRange reads both ends of a range; without any it is the default range of VMware's CPI.
func NewRange(from, to string) (Range, error) {
	if from == "" && to == "" {
		from = "192.168.8.2"
		to = "192.168.8.100"
	}
	first, err1 := netip.ParseAddr(from)
	last, err2 := netip.ParseAddr(to)
	switch {
	case errors.Join(err1, err2) != nil:
		return Range{}, fmt.Errorf("%q to %q is no range of addresses", from, to)
	case first.Is4() != last.Is4():
		return Range{}, fmt.Errorf("the range %s to %s has two families of addresses", from, to)
	case last.Less(first):
		return Range{}, fmt.Errorf("the range %s to %s ends before it begins", from, to)
	}
	return Range{first, last}, nil
}

// A checker completes and checks what was read.
type checker struct {
	*Config
	*ccmconfig.Report
}

func (c checker) complete(env ccmconfig.Environment) {
	c.VCD.Host = siteOf(c.VCD.Host)
	if c.RDE.ID == "" && strings.HasPrefix(c.ClusterID, entityURN) {
		c.RDE.ID = c.ClusterID
	}
	if c.RDE.Enabled != nil && !*c.RDE.Enabled || strings.HasPrefix(c.RDE.ID, "NO_RDE_") {
		c.RDE.ID = ""
	}
	vdcs := append([]string{c.VCD.VDC}, c.VCD.VDCs...)
	for _, zone := range c.Nodes.Zones {
		vdcs = append(vdcs, zone.VDC)
	}
	c.VCD.VDCs = distinct(vdcs)
	c.Nodes.VApps = distinct(append([]string{c.VAppName}, c.Nodes.VApps...))
	c.VCD.CABundle = ccmconfig.ReadCA(c.Report, env, "vcd.caBundle", c.VCD.CABundle, c.VCD.CABundleFile)
}

// siteOf returns the address of a site without what its API adds.
func siteOf(host string) string {
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(host, "/"), "/api"), "/")
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

func (c checker) validateHost() {
	u, err := url.Parse(c.VCD.Host)
	switch {
	case c.VCD.Host == "": // reported already
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		c.Problem("vcd.host", "must be an address of the form https://host[:port], without user, path and query")
	case u.Scheme != "https":
		c.Problem("vcd.host", "is %q, but credentials go by https only; set vcd.caBundle to trust your own", c.VCD.Host)
	}
}

func (c checker) validateSite() {
	v := c.VCD
	if len(v.VDCs) == 0 {
		c.Problem("vcd.vdc", "is missing: name the organization VDC of the cluster")
	}
	if v.InsecureSkipVerify && v.CABundle != "" {
		c.Problem("vcd.insecureSkipVerify", "trusts any certificate, so vcd.caBundle has no effect: remove one")
	}
	if v.InsecureSkipVerify {
		c.Warn("vcd.insecureSkipVerify: the certificate of the site is not checked; set vcd.caBundle instead")
	}
	if v.User != "" || v.Secret != "" || v.RefreshToken != "" {
		c.Warn("vcd.user, vcd.secret and vcd.refreshtoken are open to readers of this file: move them to the Secret")
	}
}

func (c checker) validateIDs() {
	switch {
	case c.ClusterID == placeholder:
		c.Problem("clusterid", "is still %s, as in the manifest: write something that no other cluster has, "+
			"such as a UUID, and never change it", placeholder)
	case c.ClusterID != "" && !clusterID.MatchString(c.ClusterID):
		c.Problem("clusterid", "is %q, but must be one word of letters, digits and :._-", c.ClusterID)
	}
	if c.RDE.ID != "" && !strings.HasPrefix(c.RDE.ID, entityURN) {
		c.Problem("rde.id", "is %q, but must begin with %s", c.RDE.ID, entityURN)
	}
}

func (c checker) validateRequests() {
	v := c.VCD
	timeout := c.VCD.RequestTimeout.Duration
	for path, wrong := range map[string]bool{
		"vcd.requestsPerSecond": v.RequestsPerSecond < 0,
		"vcd.burst":             v.Burst < 0,
		"vcd.inFlight":          v.InFlight < 0,
		"vcd.requestTimeout":    timeout != 0 && timeout < time.Second,
	} {
		if wrong {
			c.Problem(path, "is too small")
		}
	}
	c.between("nodes.maxAge", c.Nodes.MaxAge.Duration, time.Second, 10*time.Minute)
	c.between("loadbalancer.driftInterval", c.LoadBalancer.DriftInterval.Duration, 10*time.Second, 24*time.Hour)
}

func (c checker) between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		c.Problem(path, "is %s, but must be from %s to %s", d, least, most)
	}
}

func (c checker) validateLoadBalancer() {
	b := c.LoadBalancer
	if b.Disabled() {
		return
	}
	if c.ClusterID == "" {
		c.Problem("clusterid", "is missing, also as CLUSTER_ID: load balancers are marked with it. Write "+
			"something that no other cluster has, such as the UID of namespace kube-system")
	}
	if b.Network == "" && b.ID == "" {
		c.Problem("loadbalancer.network", "is missing: name the network of the nodes, or set "+
			"loadbalancer.enabled to false to manage Nodes only")
	}
	if b.Algorithm != "" && !slices.Contains(algorithms, b.Algorithm) {
		c.Problem("loadbalancer.algorithm", "is %q, but must be one of %s", b.Algorithm, strings.Join(algorithms, ", "))
	}
	if b.ClassOnly && b.Class == "" {
		c.Problem("loadbalancer.classOnly", "leaves no Service to this controller: set loadbalancer.class")
	}
	c.validateGateway("loadbalancer", b.EdgeGateway)
	c.validateGateways()
}

func (c checker) validateGateways() {
	names := map[string]bool{}
	for i, g := range c.LoadBalancer.Gateways {
		at := fmt.Sprintf("loadbalancer.gateways[%d]", i)
		switch {
		case g.Name == "":
			c.Problem(at+".name", "is missing: Services choose the gateway by it")
		case names[g.Name]:
			c.Problem(at+".name", "is %q, as another gateway's", g.Name)
		}
		names[g.Name] = true
		if g.Network == "" && g.ID == "" {
			c.Problem(at+".network", "is missing: name a network of the gateway, or its edgeGateway")
		}
		c.validateGateway(at, g.EdgeGateway)
	}
}

func (c checker) validateGateway(at string, g EdgeGateway) {
	if g.Network != "" && g.ID != "" {
		c.Problem(at+".edgeGateway", "is set beside network, which decides the edge gateway: keep one")
	}
	arm := g.OneArm
	if arm == nil {
		return
	}
	switch {
	case !arm.StartIP.IsValid():
		c.Problem(at+".oneArm.startIP", "is missing or wrong: write the first address")
	case !arm.EndIP.IsValid():
		c.Problem(at+".oneArm.endIP", "is missing or wrong: write the last address")
	case arm.StartIP.Is4() != arm.EndIP.Is4():
		c.Problem(at+".oneArm.endIP", "is %s, of another family than startIP", arm.EndIP)
	case arm.EndIP.Less(arm.StartIP):
		c.Problem(at+".oneArm.endIP", "is %s, which is before startIP %s", arm.EndIP, arm.StartIP)
	}
}

func (c checker) validateNodes() {
	n := c.Nodes
	c.label("nodes.region", n.Region)
	for at, s := range map[string]Selection{"internal": n.Addresses.Internal, "external": n.Addresses.External} {
		if slices.ContainsFunc(s.NICs, func(i int) bool { return i < 0 || i > 9 }) {
			c.Problem("nodes.addresses."+at+".nics", "must be from 0 to 9")
		}
	}
	taken := map[Zone]bool{}
	for i, zone := range n.Zones {
		at := fmt.Sprintf("nodes.zones[%d]", i)
		c.label(at+".name", zone.Name)
		c.label(at+".region", zone.Region)
		where := Zone{VDC: zone.VDC, PlacementPolicy: zone.PlacementPolicy}
		if taken[where] {
			c.Problem(at+".vdc", "and placementPolicy are those of another zone")
		}
		taken[where] = true
	}
}

func (c checker) label(path, value string) {
	if len(validation.IsValidLabelValue(value)) > 0 {
		c.Problem(path, "is %q, which cannot be the value of a label", value)
	}
}

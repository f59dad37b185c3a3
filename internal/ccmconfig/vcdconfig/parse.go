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

// clusterID matches IDs of clusters, which are one word.
var clusterID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`)

// placeholder is the text in manifests in place of the ID of the cluster. Two clusters that both kept it would mistake
// each other's load balancers for their own.
const placeholder = "CLUSTER_ID"

var algorithms = []string{
	"ROUND_ROBIN", "LEAST_CONNECTIONS", "LEAST_LOAD", "FASTEST_RESPONSE", "FEWEST_SERVERS", "FEWEST_TASKS", "RANDOM",
	"CONSISTENT_HASH", "CORE_AFFINITY",
}

const entityURN = "urn:vcloud:entity:"

// Parse parses a file, completes the configuration and validates it. The error contains all problems, one per line.
func Parse(file []byte, env ccmconfig.Environment) (c Config, warnings []string, err error) {
	report, err := ccmconfig.Decode(file, &c, env)
	if err != nil {
		return c, nil, err
	}
	complete(&c, report, env)
	validateHost(&c, report)
	validateSite(&c, report)
	validateIDs(&c, report)
	validateRequests(&c, report)
	validateLoadBalancer(&c, report)
	validateKubeVIP(&c, report)
	validateNodes(&c, report)
	return c, report.Warnings, report.Err()
}

// ParseRange parses "first-last". An empty string means the default range.
func ParseRange(s string) (Range, error) {
	first, last, found := strings.Cut(s, "-")
	if !found && s != "" {
		return Range{}, fmt.Errorf("%q is not an address range of the form first-last", s)
	}
	return NewRange(strings.TrimSpace(first), strings.TrimSpace(last))
}

// NewRange parses both ends of a range. If both are empty, it returns the default range of VMware's CPI.
func NewRange(from, to string) (Range, error) {
	if from == "" && to == "" {
		from = "192.168.8.2"
		to = "192.168.8.100"
	}
	first, err1 := netip.ParseAddr(from)
	last, err2 := netip.ParseAddr(to)
	switch {
	case errors.Join(err1, err2) != nil:
		return Range{}, fmt.Errorf("%q to %q is not an address range", from, to)
	case first.Is4() != last.Is4():
		return Range{}, fmt.Errorf("the range %s to %s mixes IPv4 and IPv6", from, to)
	case last.Less(first):
		return Range{}, fmt.Errorf("the end of the range %s to %s is before its start", from, to)
	}
	return Range{first, last}, nil
}

func complete(c *Config, report *ccmconfig.Report, env ccmconfig.Environment) {
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
	c.VCD.CABundle = ccmconfig.ReadCA(report, env, "vcd.caBundle", c.VCD.CABundle, c.VCD.CABundleFile)
}

// siteOf returns the address of a site without the path of its API.
func siteOf(host string) string {
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(host, "/"), "/api"), "/")
}

// distinct returns the non-empty values, each once, in their order.
func distinct(values []string) []string {
	var out []string
	for _, value := range values {
		if value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}

func validateHost(c *Config, report *ccmconfig.Report) {
	u, err := url.Parse(c.VCD.Host)
	switch {
	case c.VCD.Host == "": // reported already
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		report.Problem("vcd.host", "must be an address of the form https://host[:port], without user, path and query")
	case u.Scheme != "https":
		report.Problem("vcd.host", "is %q, but credentials require https; set vcd.caBundle to trust your own certificate authority", c.VCD.Host)
	}
}

func validateSite(c *Config, report *ccmconfig.Report) {
	v := c.VCD
	if len(v.VDCs) == 0 {
		report.Problem("vcd.vdc", "is missing: set the organization VDC of the cluster")
	}
	if v.InsecureSkipVerify && v.CABundle != "" {
		report.Problem("vcd.insecureSkipVerify", "trusts any certificate, so vcd.caBundle has no effect: remove one")
	}
	if v.InsecureSkipVerify {
		report.Warn("vcd.insecureSkipVerify: the certificate of the site is not checked; set vcd.caBundle instead")
	}
	if v.User != "" || v.Secret != "" || v.RefreshToken != "" {
		report.Warn("vcd.user, vcd.secret and vcd.refreshtoken are visible to all readers of this file: move them to the Secret")
	}
}

func validateIDs(c *Config, report *ccmconfig.Report) {
	switch {
	case c.ClusterID == placeholder:
		report.Problem("clusterid", "is still %s, the placeholder of the manifest: set a unique value, such as a UUID, and never change it", placeholder)
	case c.ClusterID != "" && !clusterID.MatchString(c.ClusterID):
		report.Problem("clusterid", "is %q, but must be one word of letters, digits and :._-", c.ClusterID)
	}
	if c.RDE.ID != "" && !strings.HasPrefix(c.RDE.ID, entityURN) {
		report.Problem("rde.id", "is %q, but must begin with %s", c.RDE.ID, entityURN)
	}
}

func validateRequests(c *Config, report *ccmconfig.Report) {
	v := c.VCD
	timeout := c.VCD.RequestTimeout.Duration
	for path, wrong := range map[string]bool{
		"vcd.requestsPerSecond": v.RequestsPerSecond < 0,
		"vcd.burst":             v.Burst < 0,
		"vcd.inFlight":          v.InFlight < 0,
		"vcd.requestTimeout":    timeout != 0 && timeout < time.Second,
	} {
		if wrong {
			report.Problem(path, "is too small")
		}
	}
	report.Between("nodes.maxAge", c.Nodes.MaxAge.Duration, time.Second, 10*time.Minute)
	report.Between("loadbalancer.driftInterval", c.LoadBalancer.DriftInterval.Duration, 10*time.Second, 24*time.Hour)
}

func validateLoadBalancer(c *Config, report *ccmconfig.Report) {
	b := c.LoadBalancer
	if b.Disabled() {
		return
	}
	if c.ClusterID == "" {
		report.Problem("clusterid", "is missing, and so is CLUSTER_ID. Load balancers are marked with it: set a unique value, such as the UID of namespace kube-system")
	}
	if b.Network == "" && b.ID == "" {
		report.Problem("loadbalancer.network", "is missing: set the network of the nodes, or set loadbalancer.enabled to false to manage Nodes only")
	}
	if b.Algorithm != "" && !slices.Contains(algorithms, b.Algorithm) {
		report.Problem("loadbalancer.algorithm", "is %q, but must be one of %s", b.Algorithm, strings.Join(algorithms, ", "))
	}
	if b.ClassOnly && b.Class == "" {
		report.Problem("loadbalancer.classOnly", "excludes all Services from this controller: set loadbalancer.class")
	}
	validateGateway(report, "loadbalancer", b.EdgeGateway)
	validateGateways(c, report)
}

func validateKubeVIP(c *Config, report *ccmconfig.Report) {
	kube := c.LoadBalancer.KubeVIP
	if kube.Class != "" && !kube.Enabled() {
		report.Problem("loadbalancer.kubeVIP.addressRanges", "is missing: write the addresses that Services get, or remove loadbalancer.kubeVIP")
	}
	if kube.Replaces() && c.LoadBalancer.Class != "" {
		report.Problem("loadbalancer.class", "has no effect, because kube-vip serves the Services without a class: set loadbalancer.kubeVIP.class, or remove this key")
	}
	if kube.Class != "" && kube.Class == c.LoadBalancer.Class {
		report.Problem("loadbalancer.kubeVIP.class", "is also loadbalancer.class: two controllers would serve the same Services; choose another")
	}
	for i, r := range kube.AddressRanges {
		at := fmt.Sprintf("loadbalancer.kubeVIP.addressRanges[%d]", i)
		if !r.StartIP.IsValid() || !r.EndIP.IsValid() {
			report.Problem(at, "needs startIP and endIP")
			continue
		}
		if _, err := NewRange(r.StartIP.String(), r.EndIP.String()); err != nil {
			report.Problem(at, "%v", err)
		}
	}
}

func validateGateways(c *Config, report *ccmconfig.Report) {
	names := map[string]bool{}
	for i, g := range c.LoadBalancer.Gateways {
		at := fmt.Sprintf("loadbalancer.gateways[%d]", i)
		switch {
		case g.Name == "":
			report.Problem(at+".name", "is missing: Services refer to the gateway by it")
		case names[g.Name]:
			report.Problem(at+".name", "is %q, which another gateway also has", g.Name)
		}
		names[g.Name] = true
		if g.Network == "" && g.ID == "" {
			report.Problem(at+".network", "is missing: set a network of the gateway, or its edgeGateway")
		}
		validateGateway(report, at, g.EdgeGateway)
	}
}

func validateGateway(report *ccmconfig.Report, at string, g EdgeGateway) {
	if g.Network != "" && g.ID != "" {
		report.Problem(at+".edgeGateway", "cannot be set together with network, which determines the edge gateway: keep one")
	}
	arm := g.OneArm
	if arm == nil {
		return
	}
	switch {
	case !arm.StartIP.IsValid():
		report.Problem(at+".oneArm.startIP", "is missing or invalid: set the first address")
	case !arm.EndIP.IsValid():
		report.Problem(at+".oneArm.endIP", "is missing or invalid: set the last address")
	case arm.StartIP.Is4() != arm.EndIP.Is4():
		report.Problem(at+".oneArm.endIP", "is %s, which has another IP family than startIP", arm.EndIP)
	case arm.EndIP.Less(arm.StartIP):
		report.Problem(at+".oneArm.endIP", "is %s, which is before startIP %s", arm.EndIP, arm.StartIP)
	}
}

func validateNodes(c *Config, report *ccmconfig.Report) {
	n := c.Nodes
	validateLabel(report, "nodes.region", n.Region)
	for at, s := range map[string]Selection{"internal": n.Addresses.Internal, "external": n.Addresses.External} {
		if slices.ContainsFunc(s.NICs, func(i int) bool { return i < 0 || i > 9 }) {
			report.Problem("nodes.addresses."+at+".nics", "must be from 0 to 9")
		}
	}
	taken := map[Zone]bool{}
	for i, zone := range n.Zones {
		at := fmt.Sprintf("nodes.zones[%d]", i)
		validateLabel(report, at+".name", zone.Name)
		validateLabel(report, at+".region", zone.Region)
		where := Zone{VDC: zone.VDC, PlacementPolicy: zone.PlacementPolicy}
		if taken[where] {
			report.Problem(at+".vdc", "and placementPolicy are already used by another zone")
		}
		taken[where] = true
	}
}

func validateLabel(report *ccmconfig.Report, path, value string) {
	if len(validation.IsValidLabelValue(value)) > 0 {
		report.Problem(path, "is %q, which is not a valid label value", value)
	}
}

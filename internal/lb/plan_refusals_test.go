// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		mods   []func(*model)
		change func(*Desired)
		reason string
		says   string
	}{
		{
			name:   "an unknown certificate",
			change: func(d *Desired) { encrypt(d, Certificate{Alias: "typo"}) },
			reason: CertificateNotFound,
			says:   `"typo"`,
		},
		{
			name:   "an alias that two certificates have",
			mods:   []func(*model){func(m *model) { m.certs = append(m.certs, m.certs[0]) }},
			change: func(d *Desired) { encrypt(d, Certificate{Alias: "shop"}) },
			reason: CertificateNotFound,
			says:   "several",
		},
		{
			name:   "settings of health checks before VCD 10.6",
			mods:   []func(*model){func(m *model) { m.caps.HealthMonitors = false }},
			change: func(d *Desired) { d.Listeners[0].Check.Interval = 5 * time.Second },
			reason: Unsupported,
			says:   "require VCD 10.6 (API version 39.0): remove the annotations",
		},
		{
			name: "a redirect before VCD 10.5",
			mods: []func(*model){func(m *model) { m.caps.HTTPPolicies = false }},
			change: func(d *Desired) {
				d.Listeners[0].Application = HTTP
				d.Listeners[0].Rules.Redirect = 443
			},
			reason: Unsupported,
			says:   "requires VCD 10.5 (API version 38.0): remove the annotation",
		},
		{
			name: "headers before VCD 10.5",
			mods: []func(*model){func(m *model) { m.caps.HTTPPolicies = false }},
			change: func(d *Desired) {
				d.Listeners[0].Application = HTTP
				d.Listeners[0].Rules.ResponseHeaders = "Server:"
			},
			reason: Unsupported,
			says:   "requires VCD 10.5 (API version 38.0): remove the annotations of headers",
		},
		{
			name: "headers of a port that is not HTTP",
			change: func(d *Desired) {
				d.Listeners[0].Application = L4
				d.Listeners[0].Rules.RequestHeaders = "X-Env: prod"
			},
			reason: Unsupported,
			says:   "set its appProtocol to http or https",
		},
		{
			name: "a redirect of a port that is not HTTP",
			change: func(d *Desired) {
				d.Listeners[0].Application = L4
				d.Listeners[0].Rules.Redirect = 443
			},
			reason: Unsupported,
			says:   "set its appProtocol to http",
		},
		{
			name: "a redirect to a port that does not exist",
			change: func(d *Desired) {
				d.Listeners[0].Application = HTTP
				d.Listeners[0].Rules.Redirect = 70000
			},
			reason: InvalidPort,
			says:   "to port 70000: use the port of HTTPS",
		},
		{
			name: "a health monitor for TCP on a port of UDP",
			change: func(d *Desired) {
				d.Listeners[0].Protocol = loadbalancer.UDP
				d.Listeners[0].Application = L4
				d.Listeners[0].Monitor = MonitorTCP
			},
			reason: Unsupported,
			says:   "the health monitor tcp cannot check: set the health monitor to udp, ping or none",
		},
		{
			name: "a health monitor for HTTP on a port of UDP",
			change: func(d *Desired) {
				d.Listeners[0].Protocol = loadbalancer.UDP
				d.Listeners[0].Application = L4
				d.Listeners[0].Monitor = MonitorHTTP
			},
			reason: Unsupported,
			says:   "the health monitor http cannot check",
		},
		{
			name: "settings of health checks without a monitor",
			change: func(d *Desired) {
				d.Listeners[0].Monitor = MonitorNone
				d.Listeners[0].Check.Failures = 2
			},
			reason: Unsupported,
			says:   "no health monitor",
		},
		{
			name:   "a path for a monitor that sends no requests",
			change: func(d *Desired) { d.Listeners[0].Check.Path = "/healthz" },
			reason: Unsupported,
			says:   "but the health monitor tcp: set the health monitor to http or https",
		},
		{
			name:   "an interval that is too short",
			change: func(d *Desired) { d.Listeners[0].Check.Interval = time.Second },
			reason: InvalidHealthCheck,
			says:   "is 1s: use 2s to 1h0m0s",
		},
		{
			name: "a timeout that is not shorter than the interval",
			change: func(d *Desired) {
				d.Listeners[0].Check = HealthCheck{Interval: 5 * time.Second, Timeout: 5 * time.Second}
			},
			reason: InvalidHealthCheck,
			says:   "less than the interval of 5s",
		},
		{
			name:   "too many failed health checks",
			change: func(d *Desired) { d.Listeners[0].Check.Failures = 51 },
			reason: InvalidHealthCheck,
			says:   "allows 51 failed health checks: use 1 to 50",
		},
		{
			name:   "too many successful health checks",
			change: func(d *Desired) { d.Listeners[0].Check.Successes = 51 },
			reason: InvalidHealthCheck,
			says:   "needs 51 successful health checks: use 1 to 50",
		},
		{
			name: "a path that would begin another header",
			change: func(d *Desired) {
				d.Listeners[0].Monitor = MonitorHTTP
				d.Listeners[0].Check.Path = "/ HTTP/1.0\r\nHost: x"
			},
			reason: InvalidHealthCheck,
			says:   "begin it with a slash, without spaces",
		},
		{
			name: "a single status code",
			change: func(d *Desired) {
				d.Listeners[0].Monitor = MonitorHTTP
				d.Listeners[0].Check.Codes = "200"
			},
			reason: InvalidHealthCheck,
			says:   `"200"`,
		},
		{
			name:   "TLS without a certificate",
			change: func(d *Desired) { encrypt(d, Certificate{}) },
			reason: CertificateMissing,
			says:   "no certificate",
		},
		{
			name:   "no engine group",
			mods:   []func(*model){func(m *model) { m.gateway.Groups = nil }},
			reason: EngineGroupUnavailable,
			says:   "ask the provider",
		},
		{
			name: "engine groups without capacity",
			mods: []func(*model){func(m *model) {
				m.gateway.Groups = []EngineGroup{{
					Object: Object{
						ID:   "x",
						Name: "x",
					},
					Max: 1,
				}}
			}},
			reason: EngineGroupUnavailable,
			says:   "capacity",
		},
		{
			name:   "an engine group that is not there",
			change: func(d *Desired) { d.EngineGroup = "typo" },
			reason: EngineGroupUnavailable,
			says:   `"typo"`,
		},
		{
			name: "a floating IP with the marker of another owner",
			mods: []func(*model){
				withSpaces,
				func(m *model) {
					m.claims = append(m.claims, Claim{
						ID:          "mail",
						Value:       ip("198.51.100.7"),
						Description: "for the mail server",
					})
				},
			},
			change: func(d *Desired) {
				d.Requested = []netip.Addr{ip("198.51.100.7")}
				d.Intent = []netip.Addr{ip("198.51.100.7")}
			},
			reason: AddressInUse,
			says:   `its description in VCD is "shop/web"`,
		},
		{
			name: "a recorded floating IP that is in use",
			mods: []func(*model){
				withSpaces,
				func(m *model) {
					m.claims = append(m.claims, Claim{ID: "mail", Value: ip("198.51.100.7"), Used: true})
				},
			},
			change: func(d *Desired) {
				d.Requested = []netip.Addr{ip("198.51.100.7")}
				d.Intent = []netip.Addr{ip("198.51.100.7")}
			},
			reason: AddressInUse,
			says:   "198.51.100.7",
		},
		{
			name:   "an internal address that a VM has",
			mods:   []func(*model){withHost},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("192.168.9.2")} },
			reason: AddressInUse,
			says:   `used by the host "database"`,
		},
		{
			name: "an internal address outside the configured subnet",
			mods: []func(*model){withHost},
			change: func(d *Desired) {
				d.Requested = []netip.Addr{ip("192.168.9.3")}
				d.InternalSubnets = []netip.Prefix{netip.MustParsePrefix("192.168.10.0/24")}
			},
			reason: AddressOutOfRange,
			says:   "192.168.10.0/24",
		},
		{
			name: "an internal subnet that is not configured",
			mods: []func(*model){withHost},
			change: func(d *Desired) {
				d.Internal = true
				d.Subnet = netip.MustParsePrefix("192.168.9.0/24")
				d.InternalSubnets = []netip.Prefix{netip.MustParsePrefix("192.168.10.0/24")}
			},
			reason: NoFreeAddress,
			says:   "192.168.9.0/24",
		},
		{
			name:   "an address of no range",
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("9.9.9.9")} },
			reason: AddressOutOfRange,
			says:   "9.9.9.9",
		},
		{
			name:   "an address that another has",
			mods:   []func(*model){func(m *model) { strangers(m) }},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.11")} },
			reason: AddressInUse,
			says:   `"cluster"`,
		},
		{
			name: "an address of the gateway itself",
			mods: []func(*model){func(m *model) {
				m.gateway.Used = []UsedAddress{{
					ip("203.0.113.15"),
					"PRIMARY_IP",
				}}
			}},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.15")} },
			reason: AddressInUse,
			says:   "PRIMARY_IP",
		},
		{
			name: "an address of an IP Space that belongs to another owner",
			mods: []func(*model){
				withSpaces,
				func(m *model) {
					m.claims = []Claim{{
						Value:       ip("198.51.100.3"),
						Description: Marker{Owner: loadbalancer.Owner{Cluster: "c2", UID: "x", Name: "x"}}.String(),
					}}
				},
			},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("198.51.100.3")} },
			reason: AddressInUse,
			says:   "another use",
		},
		{
			name:   "no free address",
			mods:   []func(*model){func(m *model) { m.gateway.Ranges = nil }},
			reason: NoFreeAddress,
			says:   "ask the provider",
		},
		{
			name:   "no free address in the one-arm range",
			change: func(d *Desired) { r := addresses("192.168.8.2-192.168.8.2"); d.OneArm = &r },
			mods:   []func(*model){bare},
			reason: NoFreeAddress,
			says:   "one-arm",
		},
		{
			name:   "a one-arm range the wrong way round",
			change: func(d *Desired) { d.OneArm = &Range{ip("192.168.8.9"), ip("192.168.8.2")} },
			reason: InvalidRange,
			says:   "invalid",
		},
		{
			name:   "an internal load balancer without a range",
			change: func(d *Desired) { d.Internal = true },
			reason: InvalidRange,
			says:   "subnet",
		},
		{name: "no ports", change: func(d *Desired) { d.Listeners = nil }, reason: NoPorts, says: "no ports"},
		{
			name:   "no node port",
			change: func(d *Desired) { d.Listeners[0].NodePort = 0 },
			reason: InvalidPort,
			says:   "allocateLoadBalancerNodePorts",
		},
		{
			name:   "SCTP",
			change: func(d *Desired) { d.Listeners[0].Protocol = "SCTP" },
			reason: Unsupported,
			says:   "SCTP",
		},
		{
			name:   "HTTP on UDP",
			change: func(d *Desired) { d.Listeners[0].Protocol = loadbalancer.UDP },
			reason: Unsupported,
			says:   "UDP",
		},
		{
			name: "layer 4 with TLS without the license",
			mods: []func(*model){func(m *model) { m.caps.Premium = false }},
			change: func(d *Desired) {
				d.Listeners[0].Application = L4TLS
				d.Listeners[0].Certificate = Certificate{Alias: "shop"}
			},
			reason: Unsupported,
			says:   "appProtocol",
		},
		{name: "no nodes", change: func(d *Desired) { d.Members = nil }, reason: NoMembers, says: "IPv4"},
		{
			name:   "only IPv6 where there is none",
			mods:   []func(*model){bare},
			change: func(d *Desired) { d.Families = []loadbalancer.Family{loadbalancer.IPv6} },
			reason: Unsupported,
			says:   "IPv6",
		},
		{
			name:   "two ports on an old VCD without one-arm mode",
			mods:   []func(*model){bare},
			reason: Unsupported,
			says:   "one-arm",
		},
		{
			name: "source ranges that the firewall does not support",
			mods: []func(*model){bare},
			change: func(d *Desired) {
				d.SourceRanges = prefixList("10.0.0.0/8")
				d.Listeners = d.Listeners[:1]
			},
			reason: Unsupported,
			says:   "firewall",
		},
		{
			name: "client addresses that cannot be preserved",
			mods: []func(*model){bare},
			change: func(d *Desired) {
				d.PreserveClientIP = true
				d.Listeners = d.Listeners[:1]
			},
			reason: Unsupported,
			says:   "transparent",
		},
		{
			name:   "client addresses without IP sets",
			mods:   []func(*model){withoutSets},
			change: func(d *Desired) { d.PreserveClientIP = true },
			reason: Unsupported,
			says:   "IP sets",
		},
		{
			name:   "an unknown algorithm",
			change: func(d *Desired) { d.Algorithm = "MAGIC" },
			reason: Unsupported,
			says:   "MAGIC",
		},
		{
			name:   "an algorithm of the feature set PREMIUM on a gateway with STANDARD",
			mods:   []func(*model){func(m *model) { m.caps.Premium = false }},
			change: func(d *Desired) { d.Algorithm = "FASTEST_RESPONSE" },
			reason: Unsupported,
			says:   "use one of CONSISTENT_HASH, LEAST_CONNECTIONS, ROUND_ROBIN",
		},
		{
			name: "both families are required, and nodes have one",
			mods: []func(*model){bare},
			change: func(d *Desired) {
				d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
				d.AllFamilies = true
				d.Listeners = d.Listeners[:1]
			},
			reason: Unsupported,
			says:   "IPv6 service network: set ipFamilyPolicy of the Service to PreferDualStack",
		},
		{
			name: "both families are required, and the gateway has addresses of one",
			mods: []func(*model){func(m *model) { m.gateway.Ranges = m.gateway.Ranges[:1] }},
			change: func(d *Desired) {
				d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
				d.AllFamilies = true
			},
			reason: Unsupported,
			says:   "no IPv6 addresses",
		},
		{
			name:   "IPv4 where the service network is of IPv6",
			mods:   []func(*model){func(m *model) { m.caps.OnlyIPv6 = true }},
			reason: Unsupported,
			says:   "IPv6 service network only",
		},
		{
			name:   "an address of a family that the Service has not",
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("2001:db8::11")} },
			reason: InvalidFamilies,
			says:   "IPv6",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			if tt.change != nil {
				tt.change(&d)
			}

			plan := newModel(tt.mods...).next(d)

			g.Expect(plan.Steps).To(BeEmpty())
			g.Expect(plan.Intent).To(BeEmpty())
			g.Expect(plan.Refusals).NotTo(BeEmpty())
			g.Expect(plan.Refusals[0].Reason).To(Equal(tt.reason))
			g.Expect(plan.Refusals[0].Message).To(ContainSubstring(tt.says))
		})
	}
}

func TestARefusalKeepsExistingObjects(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	m := made(t, &d)

	d.Listeners = append(slices.Clone(d.Listeners),
		Listener{
			Protocol:    loadbalancer.TCP,
			Application: HTTPS,
			Port:        8443,
			NodePort:    31000,
			Certificate: Certificate{Alias: "typo"},
		})
	plan := m.next(d)
	g.Expect(plan.Refusals).To(HaveLen(1))
	g.Expect(plan.Steps).To(BeEmpty())

	d.Listeners[2].Certificate.Alias = "shop"
	g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true), "healed when corrected")
}

func withHost(m *model) {
	m.hosts = append(m.hosts, loadbalancer.Use{Address: ip("192.168.9.2"), Kind: KindHost, Name: "database"})
}

func TestInternalAddressesSkipThoseOfHosts(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Desired)
		want   string
	}{
		{
			name:   "in the subnet of the Service",
			change: func(d *Desired) { d.Subnet = netip.MustParsePrefix("192.168.9.0/24") },
			want:   "192.168.9.3",
		},
		{
			name: "in the administrator's",
			change: func(d *Desired) {
				d.InternalSubnets = []netip.Prefix{netip.MustParsePrefix("192.168.9.0/30"), netip.MustParsePrefix("10.7.0.0/16")}
			},
			want: "10.7.0.1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := newModel(withHost)
			d := ourService()
			d.Internal = true
			d.Reserved = []loadbalancer.Use{
				{Address: ip("192.168.9.1"), Kind: "node", Name: "a"},
			}
			tt.change(&d)

			plan := m.next(d)

			g.Expect(plan.Refusals).To(BeEmpty())
			g.Expect(join(plan.Intent)).To(Equal(tt.want))
		})
	}
}

func TestASubnetLimitsItsFamilyOnly(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
	d.Subnet = netip.MustParsePrefix("203.0.113.32/28")

	plan := m.next(d)

	g.Expect(plan.Refusals).To(BeEmpty())
	g.Expect(join(plan.Intent)).To(Equal("203.0.113.33 and 2001:db8::10"))
}

func TestAnIPSpaceIsNotIgnoredSilently(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	d.IPSpace = "public"

	g.Expect(m.next(d).Notices).To(ConsistOf(And(HaveField("Reason", Unsupported),
		HaveField("Message", ContainSubstring(`has no IP Spaces`)))))
	withSpaces(m)
	g.Expect(m.next(d).Notices).To(BeEmpty())
}

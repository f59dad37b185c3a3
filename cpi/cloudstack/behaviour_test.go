// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// annotate sets an annotation of the Service; an empty value removes it.
func (s *scene) annotate(name, value string) {
	if s.service.Annotations[prefix+name] = value; value == "" {
		delete(s.service.Annotations, prefix+name)
	}
}

// legacy creates the objects of the original program for the Service: rules with its names, and firewall rules.
func (s *scene) legacy(ip string, name func(port int32) string) {
	id := s.sim.Allocate(ip, s.network)
	for _, p := range s.service.Spec.Ports {
		s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{
			"name":        name(p.Port),
			"publicip":    ip,
			"publicipid":  id,
			"publicport":  fmt.Sprint(p.Port),
			"algorithm":   "roundrobin",
			"privateport": fmt.Sprint(p.NodePort),
			"protocol":    "tcp",
			"networkid":   s.network,
			"state":       "Active",
			"description": "Load Balancer for web",
		})
		s.sim.Add(cloudstacksim.Firewalls, cloudstacksim.Object{
			"ipaddressid": id,
			"protocol":    "tcp",
			"startport":   p.Port,
			"endport":     p.Port,
			"cidrlist":    "0.0.0.0/0",
			"networkid":   s.network,
			"state":       "Active",
		})
	}
}

func TestObjectsOfTheOriginalProviderAreAdopted(t *testing.T) {
	names := map[string]func(int32) string{
		"of the original program": func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) },
		"of the in-tree provider": func(p int32) string { return fmt.Sprintf("au1-%d", p) },
	}
	for name, of := range names {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, "")
			s.legacy("203.0.113.5", of)
			before := s.sim.Objects(cloudstacksim.Rules)

			p := s.converge(false)

			s.Expect(p.Status.Addresses).To(Equal([]netip.Addr{netip.MustParseAddr("203.0.113.5")}))
			s.Expect(s.rules()).To(Equal([]string{
				"au1-tcp-443 203.0.113.5:443>30443 tcp roundrobin <nil>", "au1-tcp-80 203.0.113.5:80>30080 tcp roundrobin <nil>",
			}), "no duplicates")
			for i, r := range s.sim.Objects(cloudstacksim.Rules) {
				s.Expect(r["id"]).To(Equal(before[i]["id"]), "connections are kept")
				s.Expect(r["description"]).To(ContainSubstring("uid=u1"))
			}
			s.Expect(s.opened()).To(HaveLen(2))
			s.Expect(s.allocated()).To(Equal([]string{"203.0.113.5*"}))
			s.converge(true)
			s.Expect(s.left()).To(BeZero())
		})
	}
}

// addressID returns the id of a public address.
func (s *scene) addressID(ip string) string {
	for _, a := range s.sim.Objects(cloudstacksim.Addresses) {
		if a["ipaddress"] == ip {
			return fmt.Sprint(a["id"])
		}
	}
	return ""
}

// editAddress sets a flag of a public address.
func (s *scene) editAddress(ip, flag string) {
	s.sim.Edit(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool {
		if o["ipaddress"] == ip {
			o[flag] = true
		}
		return true
	})
}

func TestAddressOwner(t *testing.T) {
	const given = "203.0.113.5"
	tests := []struct {
		name   string
		before func(*scene)
		change func(*scene) // once the load balancer exists
		kept   []string     // addresses that stay allocated in the end
	}{
		{name: "a chosen address is released"},
		{
			name: "an address of the account is kept",
			before: func(s *scene) {
				s.sim.Allocate(given, s.network)
				s.service.Spec.LoadBalancerIP = given
			},
			kept: []string{given},
		},
		{
			name: "so it is when the Service no longer requests it",
			before: func(s *scene) {
				s.sim.Allocate(given, s.network)
				s.service.Spec.LoadBalancerIP = given
			},
			change: func(s *scene) { s.service.Spec.LoadBalancerIP = "" },
			kept:   []string{given},
		},
		{name: "a requested free address is released", before: func(s *scene) { s.annotate("address", given) }},
		{
			name: "an address to keep is kept",
			before: func(s *scene) {
				s.annotate("address", given)
				s.annotate("keep-ip", "true")
			},
			kept: []string{given},
		},
		{
			name: "an address to keep is kept, even if that is requested later",
			before: func(s *scene) {
				s.annotate("address", given)
			},
			change: func(s *scene) { s.annotate("keep-ip", "true") },
			kept:   []string{given},
		},
		{
			name: "an address of the original program is released",
			before: func(s *scene) {
				s.legacy(given, func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) })
			},
		},
		{
			name: "a requested address of the original program is kept",
			before: func(s *scene) {
				s.legacy(given, func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) })
				s.service.Spec.LoadBalancerIP = given
			},
			kept: []string{given},
		},
		{
			name: "an address that the original program associated on request is released",
			before: func(s *scene) {
				s.legacy(given, func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) })
				s.service.Spec.LoadBalancerIP = given
				s.annotate("ip-associated-by-controller", "true")
			},
		},
		{
			name:   "an address with foreign rules is kept",
			before: func(s *scene) { s.annotate("address", given) },
			change: func(s *scene) {
				for _, a := range s.sim.Objects(cloudstacksim.Addresses) {
					if a["ipaddress"] == given {
						s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{
							"name":        "theirs",
							"publicip":    given,
							"publicipid":  a["id"],
							"publicport":  "22",
							"privateport": "22",
							"protocol":    "tcp",
							"networkid":   s.network,
							"state":       "Active",
						})
					}
				}
			},
			kept: []string{given},
		},
		{
			name:   "an address with foreign port forwarding is kept",
			before: func(s *scene) { s.annotate("address", given) },
			change: func(s *scene) {
				s.sim.Add(cloudstacksim.PortForwards, cloudstacksim.Object{
					"ipaddress":   given,
					"ipaddressid": s.addressID(given),
					"publicport":  "22",
					"privateport": "22",
					"protocol":    "tcp",
					"networkid":   s.network,
					"state":       "Active",
				})
			},
			kept: []string{given},
		},
		{
			name:   "an address with a VPN is kept",
			before: func(s *scene) { s.annotate("address", given) },
			change: func(s *scene) {
				s.sim.Add(cloudstacksim.VPNs, cloudstacksim.Object{"publicip": given, "publicipid": s.addressID(given), "state": "Running"})
			},
			kept: []string{given},
		},
		{
			name:   "an address that became a static NAT address is kept",
			before: func(s *scene) { s.annotate("address", given) },
			change: func(s *scene) {
				s.editAddress(given, "isstaticnat")
				s.service.Spec.LoadBalancerIP = "203.0.113.6"
				s.annotate("address", "")
			},
			kept: []string{given},
		},
		{
			name:   "an address that became a source NAT address is kept",
			before: func(s *scene) { s.annotate("address", given) },
			change: func(s *scene) {
				s.editAddress(given, "issourcenat")
			},
			kept: []string{given},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, "")
			if tt.before != nil {
				tt.before(s)
			}
			s.converge(false)
			if tt.change != nil {
				tt.change(s)
				s.restart()
				s.converge(false)
			}

			s.converge(true)

			s.Expect(s.allocated()).To(Equal(tt.kept))
			s.Expect(s.steps(true)).To(BeEmpty())
			s.Expect(s.opened()).To(BeEmpty())
		})
	}
}

func TestAKeptAddressSurvivesTheImmediateDeletionOfItsService(t *testing.T) {
	for name, keep := range map[string]func(*scene){
		"a tagged address": func(s *scene) {
			s.converge(false)
			s.annotate("keep-ip", "true")
		},
		"one whose load balancer was never complete": func(s *scene) {
			s.annotate("keep-ip", "true")
			s.sim.Fail(cloudstacksim.Fault{Command: "createLoadBalancerRule"})
			_, err := s.round(false)
			s.Expect(err).To(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, "")
			s.annotate("address", "203.0.113.5")
			keep(s)
			s.restart()

			s.converge(true)

			s.Expect(s.allocated()).To(Equal([]string{"203.0.113.5"}), "the account's own address, without a tag")
			s.Expect(s.left()).To(Equal(1))
		})
	}
}

func TestDeletionKeepsTheAddressIfAnnotated(t *testing.T) {
	g := NewWithT(t)
	in := service.Input{Service: web("u1", 80), Defaults: cpicloudstack.Dialect{}.Defaults("c1", nil, false)}
	g.Expect(service.Absent(in).Keep).To(BeFalse())

	in.Service.Annotations[prefix+"keep-ip"] = "true"

	g.Expect(service.Absent(in).Keep).To(BeTrue())
	g.Expect(service.For(in).Desired.Keep).To(BeTrue())
}

func TestAnAddressChangeIsApplied(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.converge(false)

	s.annotate("address", "203.0.113.7")
	p := s.converge(false)

	s.Expect(p.Status.Addresses).To(HaveExactElements(netip.MustParseAddr("203.0.113.7")))
	s.Expect(s.allocated()).To(Equal([]string{"203.0.113.7*"}))
	s.Expect(s.rules()).To(HaveEach(ContainSubstring("203.0.113.7:")))
}

func TestAnAddressTakenConcurrently(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	p, err := s.plan(false)
	s.Expect(err).NotTo(HaveOccurred())
	s.intent = p.Intent
	other := s.sim.AddNetwork("other", "")
	s.sim.Allocate(p.Intent[0].String(), other)
	s.restart()

	got := s.converge(false)

	s.Expect(got.Status.Addresses[0]).NotTo(Equal(p.Intent[0]))
	s.Expect(s.intent).To(Equal(got.Status.Addresses), "the other address is forgotten")
	s.converge(true)
	s.Expect(s.allocated()).To(Equal([]string{p.Intent[0].String()}), "it belongs to another cluster")
}

func TestAnAddressUsedManuallyInTheNetwork(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	p, err := s.plan(false)
	s.Expect(err).NotTo(HaveOccurred())
	s.intent = p.Intent
	id := s.sim.Allocate(p.Intent[0].String(), s.network)
	s.sim.Add(cloudstacksim.Firewalls, cloudstacksim.Object{
		"ipaddressid": id,
		"protocol":    "tcp",
		"startport":   22,
		"endport":     22,
		"cidrlist":    "10.0.0.0/8",
		"networkid":   s.network,
	})
	s.restart()

	got := s.converge(false)

	s.Expect(got.Status.Addresses[0]).NotTo(Equal(p.Intent[0]), "there is a firewall rule that we did not create")
	s.converge(true)
	s.Expect(s.allocated()).To(Equal([]string{p.Intent[0].String()}), "it is a foreign rule")
}

func TestFreeAddressesAreHidden(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{HideFree: true}, "")

	s.Expect(s.converge(false).Status.Addresses).To(HaveLen(1))
	s.Expect(s.allocated()).To(HaveEach(HaveSuffix("*")))
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestAnAddressWithALostResponseIsFoundByComparison(t *testing.T) {
	lost := cloudstacksim.Fault{Command: "associateIpAddress", Done: true}
	s := newScene(t, cloudstacksim.Options{HideFree: true}, "")
	s.sim.Allocate("203.0.113.9", s.network) // a user's
	s.sim.Fail(lost)
	s.converge(false)
	s.Expect(s.allocated()).To(ConsistOf("203.0.113.9", HaveSuffix("*")), "one address, and no second one")

	// Another address appears at the same time: nothing shows which one is owned.
	s = newScene(t, cloudstacksim.Options{HideFree: true}, "")
	lost.Comes = "203.0.113.9"
	s.sim.Fail(lost)
	_, err := s.round(false)
	s.Expect(err).To(MatchError(And(ContainSubstring("203.0.113.9"), ContainSubstring("release"))))
	s.Expect(s.allocated()).To(HaveLen(2))
	s.Expect(s.allocated()).NotTo(ContainElement(HaveSuffix("*")))

	// A user's address alone is not considered owned when CloudStack responded that there was none.
	s = newScene(t, cloudstacksim.Options{HideFree: true}, "")
	s.sim.Fail(cloudstacksim.Fault{Command: "associateIpAddress", Code: 535, Comes: "203.0.113.9"})
	_, err = s.round(false)
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.allocated()).To(Equal([]string{"203.0.113.9"}))
}

func TestServiceChanges(t *testing.T) {
	tests := []struct {
		name    string
		version string
		before  func(*scene)
		change  func(*scene)
		steps   []string
	}{
		{
			name:   "the PROXY protocol, in place",
			change: func(s *scene) { s.annotate("proxy-protocol", "true") },
			steps: []string{
				"change rule au1-tcp-80: name au1-tcp-proxy-80, protocol tcp-proxy",
			},
		},
		{
			name:   "the PROXY protocol is disabled",
			before: func(s *scene) { s.annotate("proxy-protocol", "true") },
			change: func(s *scene) {
				s.annotate("proxy-protocol", "")
			},
			steps: []string{"change rule au1-tcp-proxy-80: name au1-tcp-80, protocol tcp"},
		},
		{
			name:   "session affinity",
			change: func(s *scene) { s.service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
			steps: []string{
				"change rule au1-tcp-80: algorithm source",
			},
		},
		{
			name:   "the algorithm",
			change: func(s *scene) { s.annotate("algorithm", "leastconn") },
			steps: []string{
				"change rule au1-tcp-80: algorithm leastconn",
			},
		},
		{
			name:   "the node port, which CloudStack cannot change",
			change: func(s *scene) { s.service.Spec.Ports[0].NodePort = 31000 },
			steps: []string{
				"delete firewall rule ID", "delete rule au1-tcp-80, 203.0.113.5:80/tcp",
				"create rule au1-tcp-80, 203.0.113.5:80/tcp to node port 31000", "send au1-tcp-80 to node-0, node-1, node-2",
				"open the firewall of 203.0.113.5:80/tcp for 0.0.0.0/0", "tag the new firewall rules of 203.0.113.5",
			},
		},
		{
			name:   "the protocol",
			change: func(s *scene) { s.service.Spec.Ports[0].Protocol = corev1.ProtocolUDP },
			steps: []string{
				"create rule au1-udp-80, 203.0.113.5:80/udp to node port 30080", "send au1-udp-80 to node-0, node-1, node-2",
				"open the firewall of 203.0.113.5:80/udp for 0.0.0.0/0", "tag the new firewall rules of 203.0.113.5",
				"delete firewall rule ID", "delete rule au1-tcp-80, 203.0.113.5:80/tcp",
			},
		},
		{
			name: "more source ranges, without interruption",
			before: func(s *scene) {
				s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			},
			change: func(s *scene) {
				s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24", "198.51.100.0/24"}
			},
			steps: []string{"open the firewall of 203.0.113.5:80/tcp for 198.51.100.0/24", "tag the new firewall rules of 203.0.113.5"},
		},
		{
			name: "the source ranges are removed",
			before: func(s *scene) {
				s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			},
			change: func(s *scene) { s.service.Spec.LoadBalancerSourceRanges = nil },
			steps: []string{
				"delete firewall rule ID", "open the firewall of 203.0.113.5:80/tcp for 0.0.0.0/0",
				"tag the new firewall rules of 203.0.113.5",
			},
		},
		{
			name:    "CIDRs of the rule, before 4.22",
			version: "4.18.0.0",
			change:  func(s *scene) { s.annotate("source-cidrs", "192.0.2.0/24") },
			steps: []string{
				"delete firewall rule ID", "delete rule au1-tcp-80, 203.0.113.5:80/tcp",
				"create rule au1-tcp-80, 203.0.113.5:80/tcp to node port 30080", "send au1-tcp-80 to node-0, node-1, node-2",
				"open the firewall of 203.0.113.5:80/tcp for 0.0.0.0/0", "tag the new firewall rules of 203.0.113.5",
			},
		},
		{
			name:    "CIDRs of the rule, from 4.22 on",
			version: "4.22.0.0",
			change:  func(s *scene) { s.annotate("source-cidrs", "192.0.2.0/24") },
			steps: []string{
				"change rule au1-tcp-80: CIDRs 192.0.2.0/24",
			},
		},
		{
			name:   "a node that leaves and one that joins",
			before: func(s *scene) { s.nodes = []string{"node-0", "node-1"} },
			change: func(s *scene) {
				s.nodes = []string{"node-1", "node-2"}
			},
			steps: []string{"also send au1-tcp-80 to node-2", "stop sending au1-tcp-80 to node-0"},
		},
		{
			name:   "one port fewer",
			before: func(s *scene) { s.service.Spec.Ports = web("u1", 80, 81).Spec.Ports },
			change: func(s *scene) {
				s.service.Spec.Ports = s.service.Spec.Ports[:1]
			},
			steps: []string{"delete firewall rule ID", "delete rule au1-tcp-81, 203.0.113.5:81/tcp"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{Version: tt.version}, "")
			s.service = web("u1", 80)
			s.annotate("address", "203.0.113.5")
			if tt.before != nil {
				tt.before(s)
			}
			s.converge(false)

			tt.change(s)

			s.Expect(withoutIDs(s.steps(false))).To(Equal(tt.steps))
			s.converge(false)
			s.Expect(s.steps(false)).To(BeEmpty())
			s.restart()
			s.Expect(s.steps(false)).To(BeEmpty(), "a new process observes the same")
			s.converge(true)
			s.Expect(s.left()).To(BeZero())
		})
	}
}

func withoutIDs(steps []string) []string {
	for i, s := range steps {
		if n := len("delete firewall rule "); len(s) > n && s[:n] == "delete firewall rule " {
			steps[i] = s[:n] + "ID"
		}
	}
	return steps
}

func TestRejectedServices(t *testing.T) {
	network := func(change func(cloudstacksim.Object)) func(*scene) {
		return func(s *scene) {
			s.sim.Edit(cloudstacksim.Networks, func(o cloudstacksim.Object) bool { change(o); return true })
		}
	}
	asksForNone := func(s *scene) {
		s.service.Spec.LoadBalancerIP = ""
		s.annotate("address", "")
	}
	tests := []struct {
		name    string
		change  func(*scene)
		says    string
		correct func(*scene)
	}{
		{
			name:   "a network without load balancers",
			change: network(func(o cloudstacksim.Object) { o["service"] = []cloudstacksim.Object{} }),
			says:   "network nodes has no service Lb",
			correct: network(func(o cloudstacksim.Object) {
				o["service"] = []cloudstacksim.Object{{"name": "Lb"}, {"name": "Firewall"}}
			}),
		},
		{
			name: "a tier that allows no clients",
			change: network(func(o cloudstacksim.Object) {
				o["vpcid"] = cloudstacksim.VPCID
				o["aclid"] = "1"
				o["aclname"] = "default_deny"
				o["service"] = []cloudstacksim.Object{{"name": "Lb"}, {"name": "NetworkACL"}}
			}),
			says:    "the ACL list default_deny of network nodes allows no client",
			correct: network(func(o cloudstacksim.Object) { o["aclname"] = "default_allow" }),
		},
		{
			name:    "a nonexistent address",
			change:  func(s *scene) { s.service.Spec.LoadBalancerIP = "9.9.9.9" },
			says:    "9.9.9.9 is neither free nor",
			correct: asksForNone,
		},
		{
			name: "an address for static NAT",
			change: func(s *scene) {
				s.sim.Allocate("203.0.113.5", s.network)
				s.sim.Edit(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool { o["isstaticnat"] = true; return true })
				s.service.Spec.LoadBalancerIP = "203.0.113.5"
			},
			says: "is used for static NAT",
			correct: func(s *scene) {
				s.sim.Edit(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool { o["isstaticnat"] = false; return true })
			},
		},
		{
			name: "a port of another rule",
			change: func(s *scene) {
				id := s.sim.Allocate("203.0.113.5", s.network)
				s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{
					"name":        "theirs",
					"publicip":    "203.0.113.5",
					"publicipid":  id,
					"publicport":  "443",
					"privateport": "443",
					"protocol":    "tcp-proxy",
					"networkid":   s.network,
					"state":       "Active",
				})
				s.service.Spec.LoadBalancerIP = "203.0.113.5"
			},
			says: "203.0.113.5:443/tcp is used by load balancer rule theirs",
			correct: func(s *scene) {
				s.sim.Delete(cloudstacksim.Rules, func(o cloudstacksim.Object) bool { return o["name"] == "theirs" })
			},
		},
		{
			name: "an address shared with another Service",
			change: func(s *scene) {
				other := s.service
				s.service = web("u2", 8080)
				s.annotate("address", "203.0.113.5")
				s.converge(false)
				s.service = other
				s.intent = nil
				s.annotate("address", "203.0.113.5")
			},
			says:    "was associated for Service shop/web",
			correct: asksForNone,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, "")
			clock := clocktesting.NewFakeClock(time.Now())
			s.clock = clock
			s.restart()
			tt.change(s)
			s.sim.Calls()

			p, err := s.plan(false)

			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(p.Refusals).To(ContainElement(HaveField("Message", ContainSubstring(tt.says))))
			s.Expect(p.Steps).To(BeEmpty())

			tt.correct(s)
			clock.Step(time.Minute)
			s.Expect(s.converge(false).Refusals).To(BeEmpty(), "once corrected, it continues")
			s.Expect(s.rules()).NotTo(BeEmpty())
		})
	}
}

func TestATierWithoutAllowedClients(t *testing.T) {
	for list, want := range map[string]string{"default_deny": "allows no client", "default_allow": ""} {
		s := newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
		s.sim.Edit(cloudstacksim.Networks, func(o cloudstacksim.Object) bool { o["aclname"] = list; return true })
		s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}

		p, err := s.plan(false)

		s.Expect(err).NotTo(HaveOccurred())
		if want != "" {
			s.Expect(p.Refusals).To(ContainElement(HaveField("Message", ContainSubstring(want))))
			continue
		}
		s.converge(false)
		s.Expect(s.opened()).To(BeEmpty())
		s.Expect(s.rules()).To(HaveEach(HaveSuffix("roundrobin 192.0.2.0/24")), "the rule itself restricts clients")
	}
}

func TestServicesShareAListOfACLs(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
	theirs := cloudstacksim.Object{
		"aclid":       s.sim.Objects(cloudstacksim.Networks)[0]["aclid"],
		"protocol":    "tcp",
		"startport":   "80",
		"endport":     "80",
		"cidrlist":    "10.0.0.0/8",
		"action":      "allow",
		"traffictype": "ingress",
		"state":       "Active",
	}
	s.sim.Add(cloudstacksim.ACLs, theirs)
	s.annotate("proxy-protocol", "true")
	s.converge(false)
	first := s.service
	s.service = web("u2", 80)
	s.intent = nil
	s.converge(false)
	s.Expect(s.opened()).To(Equal([]string{"443/tcp 0.0.0.0/0", "80/tcp 0.0.0.0/0", "80/tcp 0.0.0.0/0", "80/tcp 10.0.0.0/8"}))

	s.service = first
	s.intent = nil
	s.converge(true)

	s.Expect(s.opened()).To(Equal([]string{"80/tcp 0.0.0.0/0", "80/tcp 10.0.0.0/8"}), "foreign rules are kept")
}

// TestAServiceThatMovesToATierKeepsItsACLRules moves a Service to another tier of its VPC. If both have one ACL list, its
// rules also open the ports in the new tier.
func TestAServiceThatMovesToATierKeepsItsACLRules(t *testing.T) {
	for name, shared := range map[string]bool{"with the same ACL list": true, "with another ACL list": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
			s.converge(false)
			list := s.sim.Objects(cloudstacksim.Networks)[0]["aclid"]
			tier := s.sim.AddNetwork("other", cloudstacksim.VPCID)
			if shared {
				s.sim.Edit(cloudstacksim.Networks, func(o cloudstacksim.Object) bool { o["aclid"] = list; return true })
			}
			want := s.requestOf(s.service, nil).Desired
			_, err := s.balancer.Plan(t.Context(), tier, cpi.PlanRequest{Want: want})
			s.Expect(err).NotTo(HaveOccurred())

			p, err := s.balancer.Plan(t.Context(), s.network, cpi.PlanRequest{
				Want:  service.Desired{Desired: loadbalancer.Desired{Owner: want.Owner, Absent: true}},
				Moved: &cpi.Moved{Location: tier, Desired: want},
			})

			s.Expect(err).NotTo(HaveOccurred())
			closes := ContainElement(HaveField("String()", HavePrefix("delete ACL rule")))
			if shared {
				closes = Not(closes)
			}
			s.Expect(p.Steps).To(closes)
		})
	}
}

func TestAPreexistingFirewallRule(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	id := s.sim.Allocate("203.0.113.5", s.network)
	s.sim.Add(cloudstacksim.Firewalls, cloudstacksim.Object{
		"ipaddressid": id,
		"protocol":    "tcp",
		"startport":   80,
		"endport":     80,
		"cidrlist":    "10.0.0.0/8",
		"networkid":   s.network,
	})
	s.service.Spec.LoadBalancerIP = "203.0.113.5"
	s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}

	p := s.converge(false)

	s.Expect(p.Notices).To(ContainElement(HaveField("Reason", "ConflictingFirewallRule")))
	s.Expect(s.opened()).To(Equal([]string{"80/tcp 10.0.0.0/8", "80/tcp 192.0.2.0/24"}))
	s.service.Spec.Ports[0].NodePort = 31000
	s.converge(false)
	s.restart()
	s.converge(true)
	s.Expect(s.opened()).To(Equal([]string{"80/tcp 10.0.0.0/8"}), "it is not owned")
}

func TestNodesInSeveralNetworks(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	control := s.sim.AddNetwork("control", "")
	s.sim.AddVM("cp-0", []string{control}, []string{"10.2.1.1"})
	s.sim.AddVM("both", []string{control, s.network}, []string{"10.2.1.2", "10.1.1.99"})
	s.nodes = append(s.nodes, "both")

	id, err := s.balancer.Locate(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(id).To(Equal(s.network), "all workers are members")
	s.nodes = append(s.nodes, "cp-0")
	s.restart()
	_, err = s.balancer.Locate(t.Context(), "")
	s.Expect(err).To(MatchError(And(ContainSubstring("no network in common"), ContainSubstring("nodes, control"))))
	s.Expect(err).To(MatchError(loadbalancer.ErrRefused))
	for _, name := range []string{"control", control} {
		s.Expect(s.balancer.Locate(t.Context(), name)).To(Equal(control))
	}
	_, err = s.balancer.Locate(t.Context(), "cont")
	s.Expect(err).To(MatchError(ContainSubstring(`network "cont" does not exist`)), "names do not match partially")

	p := s.converge(false)

	s.Expect(p.Notices).To(ContainElement(HaveField("Message", ContainSubstring("node cp-0 has no NIC in network nodes"))))
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		s.Expect(s.sim.Members(fmt.Sprint(r["id"]))).To(HaveLen(4))
	}
}

func TestMembersAreUpdatedDespiteARejectedService(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.converge(false)
	s.service.Spec.LoadBalancerIP = "9.9.9.9"
	s.nodes = s.nodes[1:]

	p, err := s.balancer.Plan(t.Context(), s.network, cpi.PlanRequest{Want: s.requestOf(s.service, s.intent).Desired, Follow: true})

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(p.Steps).To(HaveLen(2))
	for _, step := range p.Steps {
		s.Expect(s.balancer.Run(t.Context(), s.network, step)).To(Succeed())
	}
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		s.Expect(s.sim.Members(fmt.Sprint(r["id"]))).To(HaveLen(2))
	}
}

// hide hides the machines of nodes from the user, as a different project does.
func (s *scene) hide(nodes ...string) {
	s.known = s.members()
	s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		if slices.Contains(nodes, fmt.Sprint(o["name"])) {
			o["projectid"] = cloudstacksim.ProjectID
		}
		return true
	})
	s.restart()
}

func TestANodeWithAHiddenMachineStaysAMember(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.converge(false)
	id := fmt.Sprint(s.sim.Objects(cloudstacksim.Rules)[0]["id"])
	s.hide("node-0")

	p := s.converge(false)

	s.Expect(s.sim.Members(id)).To(HaveLen(3))
	s.Expect(p.Notices).To(HaveExactElements(And(
		HaveField("Reason", "MachineNotVisible"), HaveField("Message", ContainSubstring("node-0")),
	)))
	s.known = s.known[:2]
	s.converge(false)
	s.Expect(s.sim.Members(id)).To(HaveLen(2), "an unwanted member is removed")
	s.known = s.known[1:]
	s.converge(false)
	s.Expect(s.sim.Members(id)).To(HaveLen(1), "including one that is not visible")
}

func TestMembersAreKeptWhileNoMachineIsVisible(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.converge(false)
	id := fmt.Sprint(s.sim.Objects(cloudstacksim.Rules)[0]["id"])
	s.nodes = s.nodes[1:]
	s.hide("node-0", "node-1", "node-2")
	for _, follow := range []bool{false, true} {
		p, err := s.balancer.Plan(t.Context(), s.network, cpi.PlanRequest{
			Want:   s.requestOf(s.service, s.intent).Desired,
			Follow: follow,
		})

		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(p.Steps).To(BeEmpty())
		s.Expect(p.Wait).To(ContainSubstring("no machine"))
	}
	s.Expect(s.sim.Members(id)).To(HaveLen(3))
}

func TestANewMachineIsFound(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	clock := clocktesting.NewFakeClock(time.Now())
	s.clock = clock
	s.restart()
	s.converge(false)
	s.sim.AddVM("node-3", []string{s.network}, []string{"10.1.1.13"})
	s.nodes = append(s.nodes, "node-3")
	clock.Step(5 * time.Second)

	p := s.converge(false)

	s.Expect(p.Notices).To(BeEmpty(), "the list is read again")
	s.Expect(s.sim.Members(fmt.Sprint(s.sim.Objects(cloudstacksim.Rules)[0]["id"]))).To(HaveLen(4))
}

func TestManuallyChangedMembersAreRepaired(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.converge(false)
	id := fmt.Sprint(s.sim.Objects(cloudstacksim.Rules)[0]["id"])
	s.sim.SetMembers(id)

	_, err := s.balancer.Plan(t.Context(), s.network, cpi.PlanRequest{Want: s.requestOf(s.service, s.intent).Desired, Fresh: true})
	s.Expect(err).NotTo(HaveOccurred())
	s.converge(false)

	s.Expect(s.sim.Members(id)).To(HaveLen(3))
}

// TestOwnersAreThoseOfTheCluster covers the report of orphaned objects. It must not include rules of other clusters in
// the network, or rules that the original program created for any cluster.
func TestOwnersAreThoseOfTheCluster(t *testing.T) {
	for name, vpc := range map[string]string{"in an isolated network": "", "in a tier of a VPC": cloudstacksim.VPCID} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, vpc)
			s.legacy("203.0.113.5", func(p int32) string { return fmt.Sprintf("au9-tcp-%d", p) })
			s.converge(false)
			other := s.neighbor()

			s.Expect(s.owners()).To(Equal([]loadbalancer.Owner{{Cluster: "c1", Namespace: "shop", Name: "web", UID: "u1"}}))
			s.Expect(other.owners()).To(Equal([]loadbalancer.Owner{{Cluster: "c2", Namespace: "shop", Name: "web", UID: "u2"}}))
		})
	}
}

func TestARuleOfAnACLListWithoutItsServiceHasAnOwner(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
	s.converge(false)
	for _, kind := range []string{cloudstacksim.Rules, cloudstacksim.Addresses} {
		s.sim.Delete(kind, func(cloudstacksim.Object) bool { return true })
	}

	s.Expect(s.owners()).To(HaveExactElements(HaveField("UID", "u1")))
}

func TestALoadBalancerOfAProject(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	for _, kind := range []string{cloudstacksim.VMs, cloudstacksim.Networks} {
		s.sim.Edit(kind, func(o cloudstacksim.Object) bool { o["projectid"] = cloudstacksim.ProjectID; return true })
	}
	s.restart(func(o *cloudstack.Options) { o.Project = cloudstacksim.ProjectID })

	s.Expect(s.converge(false).Status.Addresses).To(HaveLen(1))

	s.Expect(s.rules()).To(HaveLen(2))
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestPublishedAddressesOfAService(t *testing.T) {
	g := NewWithT(t)
	s := &scene{WithT: g, site: newSite(t, cloudstacksim.Options{}, ""), service: web("u1", 80)}
	s.annotate("proxy-protocol", "TRUE")
	s.annotate("hostname", "shop.example.com")

	w := s.requestOf(s.service, nil)
	g.Expect(w.Terminates).To(BeTrue(), "clients in the cluster go through the load balancer, too")
	g.Expect(w.Hostname).To(Equal("shop.example.com"))

	s.service.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	g.Expect(s.requestOf(s.service, nil).Terminates).To(BeFalse(), "UDP has no PROXY protocol")
}

func TestUnsupportedServiceSettings(t *testing.T) {
	both := corev1.IPFamilyPolicyRequireDualStack
	local := corev1.ServiceExternalTrafficPolicyLocal
	tests := []struct {
		name    string
		change  func(*scene)
		refused string
		noticed string
	}{
		{name: "IPv6", change: func(s *scene) { s.service.Spec.IPFamilies = []corev1.IPFamily{"IPv6"} }, refused: "support only IPv4"},
		{name: "both families", change: func(s *scene) { s.service.Spec.IPFamilyPolicy = &both }, refused: "support only IPv4"},
		{name: "SCTP", change: func(s *scene) { s.service.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }, refused: "CloudStack supports only TCP and UDP"},
		{name: "no node port", change: func(s *scene) { s.service.Spec.Ports[0].NodePort = 0 }, refused: "no node port"},
		{
			name:    "ranges of IPv6 only",
			change:  func(s *scene) { s.service.Spec.LoadBalancerSourceRanges = []string{"2001:db8::/32"} },
			refused: "all source ranges are IPv6",
		},
		{name: "no client", change: func(s *scene) { s.service.Annotations[prefix+"source-cidrs"] = "" }, refused: "no client could connect"},
		{name: "not a CIDR", change: func(s *scene) { s.annotate("source-cidrs", "192.0.2.1") }, refused: `"192.0.2.1" is not a CIDR`},
		{name: "two addresses", change: func(s *scene) { s.annotate("address", "192.0.2.1,2001:db8::1") }, refused: "are several addresses"},
		{name: "an algorithm", change: func(s *scene) { s.annotate("algorithm", "best") }, refused: `"best" is unknown`},
		{name: "a network that is not configured", change: func(s *scene) { s.annotate("network-id", "dmz") }, refused: `no network "dmz"`},
		{name: "a former boolean", change: func(s *scene) { s.annotate("proxy-protocol", "enabled") }, noticed: `"enabled", so the PROXY protocol`},
		{name: "an unknown annotation", change: func(s *scene) { s.annotate("ip", "x") }, noticed: "load-balancer-ip is unknown"},
		{name: "local traffic", change: func(s *scene) { s.service.Spec.ExternalTrafficPolicy = local }, noticed: "does not probe the health port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scene{WithT: g, site: newSite(t, cloudstacksim.Options{}, ""), service: web("u1", 80)}
			tt.change(s)

			w := s.requestOf(s.service, nil)

			if tt.refused == "" {
				g.Expect(w.Refusals).To(BeEmpty())
				g.Expect(w.Notices).To(ContainElement(HaveField("Message", ContainSubstring(tt.noticed))))
				return
			}
			g.Expect(w.Refusals).To(ContainElement(HaveField("Message", ContainSubstring(tt.refused))))
		})
	}
}

func TestTheDefaultNetworkIsThatOfExistingLoadBalancers(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.converge(false)
	storage := s.sim.AddNetwork("storage", "")
	s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		nics, _ := o["nic"].([]cloudstacksim.Object)
		for _, nic := range nics {
			nic["isdefault"] = false
		}
		o["nic"] = append(nics, cloudstacksim.Object{"networkid": storage, "ipaddress": "10.3.0.1", "isdefault": true})
		return true
	})

	s.restart()
	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(s.network), "although another one would be chosen now")
	s.nodes = nil
	s.restart()
	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(s.network), "although there are no workers")

	s.sim.Edit(cloudstacksim.Rules, func(o cloudstacksim.Object) bool {
		o["description"] = "kubernetes cluster=other uid=u9 service=shop/web"
		return true
	})
	s.nodes = []string{"node-0", "node-1", "node-2"}
	s.restart()
	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(storage), "the network of another cluster proves nothing")
}

func TestLoadBalancersInAConfiguredNetworkDoNotMakeItTheDefault(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	dmz := s.sim.AddNetwork("dmz", "")
	s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{
		"name":        "au7-tcp-80",
		"description": "kubernetes cluster=c1 uid=u7 service=shop/dmz",
		"networkid":   dmz,
		"state":       "Active",
	})
	s.others = []string{"dmz"}
	s.restart()

	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(s.network))
}

func TestTheDefaultNetworkIsNotThatOfControlPlanes(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.nodes = nil

	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(s.network), "it is the only network")
	s.sim.AddNetwork("other", "")
	s.restart()
	_, err := s.balancer.Locate(t.Context(), "")

	s.Expect(err).To(MatchError(ContainSubstring("set network in cloud-config")))
	s.Expect(err).To(MatchError(loadbalancer.ErrBusy))
}

func TestALoadBalancerMovesToAnotherNetwork(t *testing.T) {
	for name, vpc := range map[string]string{"isolated networks": "", "tiers of one VPC": cloudstacksim.VPCID} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, vpc)
			dmz := s.sim.AddNetwork("dmz", vpc)
			s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
				nics, _ := o["nic"].([]cloudstacksim.Object)
				o["nic"] = append(nics, cloudstacksim.Object{"networkid": dmz, "ipaddress": "10.3.0.1", "isdefault": false})
				return true
			})
			s.others = []string{"dmz"}
			s.restart()
			s.converge(false)
			old := s.network
			before := s.allocated()

			s.Expect(s.balancer.Locate(t.Context(), "dmz")).To(Equal(dmz))
			s.network = dmz
			s.intent = nil
			s.converge(false)
			s.Expect(s.rules()).To(HaveLen(4), "both networks serve")
			s.Expect(s.allocated()).To(HaveLen(2))
			s.network = old
			s.converge(true)

			s.Expect(s.rules()).To(HaveLen(2), "the objects in the new network are kept")
			s.Expect(s.allocated()).To(And(HaveLen(1), Not(Equal(before))))
			for _, r := range s.sim.Objects(cloudstacksim.Rules) {
				s.Expect(r["networkid"]).To(Equal(dmz))
				s.Expect(s.sim.Members(fmt.Sprint(r["id"]))).To(HaveLen(3))
			}
			s.network = dmz
			s.Expect(s.steps(false)).To(BeEmpty())
			s.converge(true)
			s.Expect(s.left()).To(BeZero())
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// TestTheContract runs the contract of backends on a simulated CloudStack.
func TestTheContract(t *testing.T) {
	for name, vpc := range map[string]string{"in an isolated network": "", "in a tier of a VPC": cloudstacksim.VPCID} {
		t.Run(name, func(t *testing.T) {
			cpitest.Run(t, func(t *testing.T) cpitest.Cloud {
				t.Helper()
				return newSite(t, cloudstacksim.Options{}, vpc).cloud()
			})
		})
	}
}

// A site is a simulated CloudStack with a network and three machines.
type site struct {
	t        *testing.T
	sim      *cloudstacksim.Simulator
	url      string
	network  string
	machines map[string]string
	writes   int
}

func newSite(t *testing.T, o cloudstacksim.Options, vpc string) *site {
	t.Helper()
	sim := cloudstacksim.New(o)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	s := &site{t: t, sim: sim, url: server.URL + "/client/api", machines: map[string]string{}}
	s.network = sim.AddNetwork("nodes", vpc)
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		address := fmt.Sprintf("10.1.1.%d", 10+i)
		s.machines[name] = address
		sim.AddVM(name, []string{s.network}, []string{address})
	}
	for i := range 9 {
		sim.AddAddresses(fmt.Sprintf("203.0.113.%d", i+1))
	}
	return s
}

// client returns a client of the plain user.
func (s *site) client(mods ...func(*cloudstack.Options)) *cloudstack.Client {
	o := cloudstack.Options{
		URL:    s.url,
		Key:    cloudstacksim.UserKey,
		Secret: cloudstacksim.UserSecret,
		Poll:   time.Millisecond,
	}
	for _, mod := range mods {
		mod(&o)
	}
	return cloudstack.New(o)
}

func (s *site) cloud() cpitest.Cloud {
	return cpitest.Cloud{
		Start:    s.backend,
		Machines: s.machines,
		PowerOff: func(name string) {
			s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
				if o["name"] == name {
					o["state"] = "Stopped"
				}
				return true
			})
		},
		Remove: func(name string) {
			s.sim.Delete(cloudstacksim.VMs, func(o cloudstacksim.Object) bool { return o["name"] == name })
		},
		SetAway: s.sim.SetAway,
		Balancers: &cpitest.Balancers{
			Refused: func(service *corev1.Service) { service.Spec.LoadBalancerIP = "9.9.9.9" },
			Break: func() {
				s.sim.Delete(cloudstacksim.Rules, func(cloudstacksim.Object) bool { return true })
			},
			Standing: s.standing,
			Left:     s.left,
			Writes:   s.written,
		},
	}
}

// written returns the number of commands that changed something.
func (s *site) written() int {
	s.writes += cloudstacksim.Writes(s.sim.Calls())
	return s.writes
}

// left returns the number of remaining load balancer objects.
func (s *site) left() int {
	n := len(s.sim.Objects(cloudstacksim.Rules)) + len(s.sim.Objects(cloudstacksim.Firewalls)) +
		len(s.sim.Objects(cloudstacksim.ACLs))
	for _, a := range s.sim.Objects(cloudstacksim.Addresses) {
		if a["state"] != "Free" {
			n++
		}
	}
	return n
}

// standing returns the node addresses behind each address and port that clients can reach.
func (s *site) standing() map[string]string {
	out := map[string]string{}
	addresses := map[string]string{}
	for _, vm := range s.sim.Objects(cloudstacksim.VMs) {
		nics, _ := vm["nic"].([]cloudstacksim.Object)
		addresses[fmt.Sprint(vm["id"])] = fmt.Sprint(nics[0]["ipaddress"])
	}
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		var members []string
		for _, vm := range s.sim.Members(fmt.Sprint(r["id"])) {
			if a := addresses[vm]; a != "" {
				members = append(members, a)
			}
		}
		slices.Sort(members)
		if s.open(r) {
			out[fmt.Sprintf("%v:%v", r["publicip"], r["publicport"])] = strings.Join(members, " ")
		}
	}
	return out
}

// open reports whether a firewall rule or an ACL allows clients to reach a rule.
func (s *site) open(rule cloudstacksim.Object) bool {
	filters := append(s.sim.Objects(cloudstacksim.Firewalls), s.sim.Objects(cloudstacksim.ACLs)...)
	return slices.ContainsFunc(filters, func(f cloudstacksim.Object) bool {
		return fmt.Sprint(f["startport"]) == rule["publicport"] &&
			(f["ipaddressid"] == nil || f["ipaddressid"] == rule["publicipid"])
	})
}

// backend returns the backend of a new process.
func (s *site) backend(p cpitest.Process) cpi.Backend {
	client := s.client()
	machines := cpicloudstack.NewMachines(cpicloudstack.MachineOptions{
		Client: client,
		Clock:  p.Clock,
		ProviderIDs: func() []string {
			var out []string
			all, _ := p.Nodes.List(labels.Everything())
			for _, node := range all {
				if node.Spec.ProviderID != "" {
					out = append(out, node.Spec.ProviderID)
				}
			}
			return out
		},
	})
	return cpi.Backend{
		Name:      cpicloudstack.ProviderName,
		Machines:  machines,
		Canonical: cpicloudstack.Canonical,
		Explain:   cpicloudstack.Explain(s.url),
		Services:  cpicloudstack.Dialect{}.Defaults(p.Cluster, nil, false),
		Balancer: cpicloudstack.NewBalancer(cpicloudstack.BalancerOptions{
			Client:   client,
			Machines: machines,
			Clock:    p.Clock,
			Cluster:  p.Cluster,
			Workers: func() []service.Member {
				var out []service.Member
				all, _ := p.Nodes.List(labels.Everything())
				for _, node := range service.Workers(all) {
					out = append(out, service.Member{
						Node:       node.Name,
						ProviderID: node.Spec.ProviderID,
						Addresses:  service.InternalIPs(node),
					})
				}
				return out
			},
		}),
	}
}

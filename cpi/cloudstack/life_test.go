// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const prefix = "service.beta.kubernetes.io/cloudstack-load-balancer-"

// A scene is a site with a balancer, and with the state that the core would keep for one Service.
type scene struct {
	*WithT
	*site

	cluster  string
	clock    clock.PassiveClock // nil: real time
	balancer *cpicloudstack.Balancer
	service  *corev1.Service
	intent   []netip.Addr
	nodes    []string
	others   []string         // networks in the configuration that Services can select
	known    []service.Member // of all nodes, for tests in which reading them each time takes long
}

func newScene(t *testing.T, o cloudstacksim.Options, vpc string) *scene {
	t.Helper()
	return newSceneAt(newSite(t, o, vpc), "c1", web("u1", 80, 443))
}

// newSceneAt returns a scene for a cluster on a site, which other clusters may share.
func newSceneAt(at *site, cluster string, service *corev1.Service) *scene {
	s := &scene{
		WithT:   NewWithT(at.t),
		site:    at,
		cluster: cluster,
		service: service,
		nodes:   []string{"node-0", "node-1", "node-2"},
	}
	s.restart()
	return s
}

// neighbor returns another cluster that has a load balancer in the network.
func (s *scene) neighbor() *scene {
	n := newSceneAt(s.site, "c2", web("u2", 9000))
	n.network = s.network
	n.converge(false)
	return n
}

// owners returns the owners that a new process of the cluster finds in the network.
func (s *scene) owners() []loadbalancer.Owner {
	s.restart()
	out, err := s.balancer.Owners(context.Background(), s.network)
	s.Expect(err).NotTo(HaveOccurred())
	return out
}

// web returns a Service with some ports.
func web(uid string, ports ...int32) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(uid), Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: p, NodePort: 30000 + p%1000})
	}
	return s
}

// restart replaces the process, which drops its observations.
func (s *scene) restart(mods ...func(*cloudstack.Options)) {
	client := s.client(mods...)
	machines := cpicloudstack.NewMachines(cpicloudstack.MachineOptions{Client: client, Clock: s.clock})
	s.balancer = cpicloudstack.NewBalancer(cpicloudstack.BalancerOptions{
		Client:   client,
		Machines: machines,
		Workers:  s.members,
		Services: s.owned,
		Cluster:  s.cluster,
		Networks: s.others,
		Clock:    s.clock,
	})
}

// owned returns the Service of the scene.
func (s *scene) owned() []loadbalancer.Owner {
	return []loadbalancer.Owner{{Cluster: s.cluster, Namespace: s.service.Namespace, Name: s.service.Name, UID: string(s.service.UID)}}
}

func (s *scene) members() []service.Member {
	if s.known != nil {
		return s.known
	}
	var out []service.Member
	for _, vm := range s.sim.Objects(cloudstacksim.VMs) {
		if name := fmt.Sprint(vm["name"]); slices.Contains(s.nodes, name) {
			out = append(out, service.Member{Node: name, ProviderID: cpicloudstack.ProviderName + "://" + fmt.Sprint(vm["id"])})
		}
	}
	return out
}

// requestOf returns the desired state of a Service, as the core computes it.
func (s *scene) requestOf(svc *corev1.Service, intent []netip.Addr) service.Request {
	w := service.For(service.Input{
		Service:  svc,
		Defaults: cpicloudstack.Dialect{}.Defaults(s.cluster, nil, false),
		Now:      time.Now(),
	})
	w.Desired.Members = s.members()
	w.Desired.Intent = intent
	return w
}

// plan plans for the Service of the scene.
func (s *scene) plan(absent bool) (loadbalancer.Plan, error) {
	want := s.requestOf(s.service, s.intent).Desired
	if absent {
		want = service.Desired{
			Desired: loadbalancer.Desired{
				Owner:  want.Owner,
				Absent: true,
				Intent: s.intent,
			},
			Keep: want.Keep,
		}
	}
	return s.balancer.Plan(context.Background(), s.network, cpi.PlanRequest{Want: want})
}

// round runs one round as the core does: it stores the intent before it runs the steps.
func (s *scene) round(absent bool) (loadbalancer.Plan, error) {
	p, err := s.plan(absent)
	if err != nil {
		return p, err
	}
	if len(p.Intent) > 0 {
		s.intent = p.Intent
	}
	for _, step := range p.Steps {
		if err := s.balancer.Run(context.Background(), s.network, step); err != nil {
			return p, fmt.Errorf("%s: %w", step, err)
		}
	}
	if p.Done() {
		s.intent = slices.DeleteFunc(slices.Clone(s.intent), func(a netip.Addr) bool { return slices.Contains(p.Unused, a) })
	}
	return p, nil
}

// converge repeats rounds until no steps remain.
func (s *scene) converge(absent bool) loadbalancer.Plan {
	s.t.Helper()
	for range 6 {
		p, err := s.round(absent)
		s.Expect(err).NotTo(HaveOccurred())
		if p.Done() || len(p.Refusals) > 0 {
			return p
		}
	}
	s.t.Fatal("it does not converge")
	return loadbalancer.Plan{}
}

// steps returns the texts of the planned steps, without IDs.
func (s *scene) steps(absent bool) []string {
	p, err := s.plan(absent)
	s.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, step := range p.Steps {
		out = append(out, step.String())
	}
	return out
}

// rules returns name, address, port, protocol, algorithm and CIDRs of all rules.
func (s *scene) rules() []string {
	var out []string
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%v %v:%v>%v %v %v %v", r["name"], r["publicip"], r["publicport"],
			r["privateport"], r["protocol"], r["algorithm"], r["cidrlist"])))
	}
	slices.Sort(out)
	return out
}

// opened returns the clients allowed by firewall and ACL rules.
func (s *scene) opened() []string {
	var out []string
	for _, f := range append(s.sim.Objects(cloudstacksim.Firewalls), s.sim.Objects(cloudstacksim.ACLs)...) {
		out = append(out, fmt.Sprintf("%v/%v %v", f["startport"], f["protocol"], f["cidrlist"]))
	}
	slices.Sort(out)
	return out
}

// allocated returns the allocated addresses, with an asterisk if they are tagged.
func (s *scene) allocated() []string {
	var out []string
	for _, a := range s.sim.Objects(cloudstacksim.Addresses) {
		if a["state"] != "Free" {
			text := fmt.Sprint(a["ipaddress"])
			if a["tags"] != nil {
				text += "*"
			}
			out = append(out, text)
		}
	}
	return out
}

func TestALoadBalancerInAnIsolatedNetwork(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service.Spec.Ports = append(s.service.Spec.Ports, corev1.ServicePort{Protocol: corev1.ProtocolUDP, Port: 443, NodePort: 31443})

	p := s.converge(false)

	s.Expect(p.Status.Addresses).To(HaveLen(1))
	ip := p.Status.Addresses[0].String()
	s.Expect(s.rules()).To(Equal([]string{
		"au1-tcp-443 " + ip + ":443>30443 tcp roundrobin",
		"au1-tcp-80 " + ip + ":80>30080 tcp roundrobin",
		"au1-udp-443 " + ip + ":443>31443 udp roundrobin",
	}))
	s.Expect(s.opened()).To(Equal([]string{"443/tcp 0.0.0.0/0", "443/udp 0.0.0.0/0", "80/tcp 0.0.0.0/0"}))
	s.Expect(s.allocated()).To(Equal([]string{ip + "*"}))
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		s.Expect(s.sim.Members(fmt.Sprint(r["id"]))).To(HaveLen(3))
		s.Expect(r["description"]).To(Equal("kubernetes cluster=c1 uid=u1 service=shop/web"))
	}
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestRequestBudgetOfALoadBalancer(t *testing.T) {
	for _, vpc := range []string{"", cloudstacksim.VPCID} {
		for _, n := range []int{1, 2, 10} {
			s := newScene(t, cloudstacksim.Options{}, vpc)
			s.service.Spec.Ports = nil
			for i := range n {
				s.service.Spec.Ports = append(s.service.Spec.Ports, corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: int32(80 + i), NodePort: int32(30080 + i)})
			}

			s.converge(false)

			calls := s.sim.Calls()
			s.Expect(cloudstacksim.Writes(calls)).To(BeNumerically("<=", 3*n+3), "%v", calls)
			s.Expect(cloudstacksim.Reads(calls)).To(BeNumerically("<=", 6), "%v", calls)
			s.converge(false)
			s.Expect(cloudstacksim.Writes(s.sim.Calls())).To(BeZero(), "the second round changes nothing")
		}
	}
}

func TestRequestBudgetOf100UnchangedServices(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.sim.AddAddresses(addresses(100)...)
	var all []*corev1.Service
	intents := map[types.UID][]netip.Addr{}
	for i := range 100 {
		all = append(all, web(fmt.Sprintf("uid-%d", i), 80))
	}
	for _, svc := range all {
		s.service = svc
		s.intent = nil
		s.converge(false)
		intents[svc.UID] = s.intent
	}
	s.neighbor()
	s.Expect(s.allocated()).To(HaveLen(101))
	balancer := s.balancer
	s.sim.Calls()
	for round := range 2 {
		for _, svc := range all {
			p, err := balancer.Plan(t.Context(), s.network, cpi.PlanRequest{Want: s.requestOf(svc, intents[svc.UID]).Desired, Fresh: svc == all[0]})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(p.Done()).To(BeTrue(), "%v", p.Steps)
		}
		calls := s.sim.Calls()
		s.Expect(len(calls)).To(BeNumerically("<=", 6), "round %d: %v", round, calls)
	}
	s.Expect(s.owners()).To(HaveLen(100), "without the load balancer of the other cluster")
}

// TestMemoryOf500NodesAnd200Services limits the memory of this backend: the list of machines and the existing rules.
func TestMemoryOf500NodesAnd200Services(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.sim.AddAddresses(addresses(200)...)
	for i := range 497 {
		s.nodes = append(s.nodes, fmt.Sprintf("worker-%d", i))
		s.sim.AddVM(fmt.Sprintf("worker-%d", i), []string{s.network}, []string{fmt.Sprintf("10.1.%d.%d", 2+i/250, i%250)})
	}
	s.known = s.members()
	for i := range 200 {
		s.service = web(fmt.Sprintf("uid-%d", i), 80, 443)
		s.intent = nil
		s.converge(false)
	}
	var all []*corev1.Service
	for i := range 200 {
		all = append(all, web(fmt.Sprintf("uid-%d", i), 80, 443))
	}
	s.restart()
	before := heap()

	for _, svc := range all {
		_, err := s.balancer.Plan(t.Context(), s.network, cpi.PlanRequest{Want: s.requestOf(svc, nil).Desired})
		s.Expect(err).NotTo(HaveOccurred())
	}

	t.Logf("500 machines and 200 load balancers: %d KiB", (heap()-before)>>10)
	s.Expect(heap() - before).To(BeNumerically("<", 20<<20))
	runtime.KeepAlive(s.balancer)
}

// heap returns the number of bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func addresses(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("198.51.100.%d", i+1))
	}
	return out
}

// TestEachFaultAtEachCall makes each call of a creation, an update and a deletion fail, before and after it takes
// effect. The process continues or restarts.
func TestEachFaultAtEachCall(t *testing.T) {
	for _, vpc := range []string{"", cloudstacksim.VPCID} {
		for _, hide := range []bool{false, true} {
			for _, done := range []bool{false, true} {
				for _, restarts := range []bool{false, true} {
					t.Run(fmt.Sprintf("vpc=%q hide=%v done=%v restarts=%v", vpc, hide, done, restarts), func(t *testing.T) {
						for skip := range 40 {
							if !faultyLife(t, vpc, hide, cloudstacksim.Fault{Skip: skip, Done: done}, restarts) {
								return
							}
						}
						t.Fatal("the faults do not end")
					})
				}
			}
		}
	}
}

// TestEachLostResponseOfAJob loses each response about an asynchronous command that continues.
func TestEachLostResponseOfAJob(t *testing.T) {
	for _, vpc := range []string{"", cloudstacksim.VPCID} {
		for skip := range 40 {
			lost := cloudstacksim.Fault{Command: "queryAsyncJobResult", Skip: skip}
			if !faultyLife(t, vpc, false, lost, skip%2 == 0) {
				break
			}
		}
	}
}

// faultyLife creates, updates and deletes a load balancer, each with the fault, next to one of another cluster. It
// reports whether the fault occurred.
func faultyLife(t *testing.T, vpc string, hide bool, f cloudstacksim.Fault, restarts bool) (met bool) {
	t.Helper()
	s := newScene(t, cloudstacksim.Options{HideFree: hide}, vpc)
	foreign := s.sim.Allocate("203.0.113.9", s.network)
	s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{
		"name":        "theirs",
		"publicip":    "203.0.113.9",
		"publicipid":  foreign,
		"publicport":  "80",
		"privateport": "80",
		"protocol":    "tcp",
		"networkid":   s.network,
		"state":       "Active",
		"algorithm":   "roundrobin",
	})
	neighbor := s.neighbor()
	theirs := neighbor.rules()
	before := s.left()
	s.sim.Calls()
	live := func(absent bool) loadbalancer.Plan {
		s.sim.Fail(f)
		for range 12 {
			p, err := s.round(absent)
			if err != nil {
				met = true
				if restarts {
					s.restart()
				}
				continue
			}
			if p.Done() {
				s.sim.Heal()
				return s.converge(absent) // objects hidden by faults are found
			}
		}
		t.Fatalf("fault %+v: it does not converge", f)
		return loadbalancer.Plan{}
	}
	ip := live(false).Status.Addresses
	s.Expect(ip).To(HaveLen(1))
	s.Expect(s.left()).To(Equal(before+5), "fault %+v: %v %v %v", f, s.rules(), s.opened(), s.allocated())
	s.service.Spec.Ports[1].Port = 8443
	s.service.Spec.Ports[0].NodePort = 30081
	s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	s.nodes = s.nodes[1:]
	s.Expect(live(false).Status.Addresses).To(Equal(ip))
	s.Expect(s.opened()).To(Equal([]string{
		"80/tcp 192.0.2.0/24", "8443/tcp 192.0.2.0/24", "9000/tcp 0.0.0.0/0",
	}), "fault %+v", f)
	s.Expect(s.owners()).To(HaveExactElements(HaveField("UID", "u1")))
	live(true)
	s.Expect(s.left()).To(Equal(before), "fault %+v: %v %v %v", f, s.rules(), s.opened(), s.allocated())
	s.Expect(s.rules()).To(Equal(theirs))
	s.Expect(s.owners()).To(BeEmpty())
	s.Expect(neighbor.owners()).To(HaveExactElements(HaveField("UID", "u2")))
	s.Expect(neighbor.steps(false)).To(BeEmpty(), "the load balancer of the other cluster is unchanged")
	return met
}

// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Changes of what users want of a load balancer, and of what is done to it by hand.
var specChanges = map[string]func(r *rand.Rand, d *Desired){
	"another set of ports": func(r *rand.Rand, d *Desired) { d.Listeners = someListeners(r) },
	"other names of ports": func(_ *rand.Rand, d *Desired) { mend(d, func(l *Listener) { l.Name += "x" }) },
	"node ports that move": func(_ *rand.Rand, d *Desired) { rotate(d) },
	"other nodes":          func(r *rand.Rand, d *Desired) { d.Members = someNodes(r) },
	"an address by name":   func(r *rand.Rand, d *Desired) { d.Requested = []netip.Addr{someAddress(r)} },
	"no address by name":   func(_ *rand.Rand, d *Desired) { d.Requested = nil },
	"inside": func(_ *rand.Rand, d *Desired) {
		d.Internal = true
		d.Requested = nil
	},
	"outside": func(_ *rand.Rand, d *Desired) {
		d.Internal = false
		d.Requested = nil
	},
	"one-arm": func(_ *rand.Rand, d *Desired) { d.OneArm = arm() },
	"direct":  func(_ *rand.Rand, d *Desired) { d.OneArm = nil },
	"dual stack": func(_ *rand.Rand, d *Desired) {
		d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
	},
	"single stack":         func(_ *rand.Rand, d *Desired) { d.Families = []loadbalancer.Family{loadbalancer.IPv4} },
	"sticky":               func(_ *rand.Rand, d *Desired) { d.Sticky = !d.Sticky },
	"another engine group": func(_ *rand.Rand, d *Desired) { d.EngineGroup = "large" },
	"an algorithm":         func(_ *rand.Rand, d *Desired) { d.Algorithm = "LEAST_LOAD" },
	"source ranges": func(_ *rand.Rand, d *Desired) {
		d.SourceRanges = prefixList("192.0.2.0/24", "198.18.0.0/15")
	},
	"no source ranges": func(_ *rand.Rand, d *Desired) { d.SourceRanges = nil },
	"client addresses": func(_ *rand.Rand, d *Desired) { d.PreserveClientIP = !d.PreserveClientIP },
	"certificate of its own": func(r *rand.Rand, d *Desired) {
		encrypt(d, Certificate{Chain: fmt.Sprint(r.IntN(3)), Key: "k"})
	},
	"certificate by alias": func(_ *rand.Rand, d *Desired) { encrypt(d, Certificate{Alias: "shop"}) },
	"no TLS": func(_ *rand.Rand, d *Desired) {
		mend(d, func(l *Listener) {
			l.Application = L4
			l.Certificate = Certificate{}
		})
	},
}

var accidents = map[string]func(r *rand.Rand, m *model){
	"a virtual service is deleted": func(r *rand.Rand, m *model) { drop(r, &m.services) },
	"a rule is deleted":            func(r *rand.Rand, m *model) { drop(r, &m.rules) },
	"a pool is changed": func(r *rand.Rand, m *model) {
		if i, ok := ofOurs(r, m.pools, func(p Pool) Object { return p.Object }); ok {
			m.pools[i].NodePort = 1
			m.pools[i].Members = nil
		}
	},
	"a virtual service fails": func(r *rand.Rand, m *model) {
		if i, ok := ofOurs(r, m.services, func(x VirtualService) Object { return x.Object }); ok {
			m.services[i].State = Failed
		}
	},
	"ports are exchanged by hand": func(r *rand.Rand, m *model) {
		i, ok := ofOurs(r, m.services, func(x VirtualService) Object { return x.Object })
		j, ok2 := ofOurs(r, m.services, func(x VirtualService) Object { return x.Object })
		if ok && ok2 && m.services[i].Protocol == m.services[j].Protocol {
			m.services[i].Port, m.services[j].Port = m.services[j].Port, m.services[i].Port
		}
	},
	"a description gets words of people": func(r *rand.Rand, m *model) {
		if i, ok := ofOurs(r, m.services, func(x VirtualService) Object { return x.Object }); ok {
			m.services[i].Description += " asked Bob"
		}
	},
}

func drop[T any](r *rand.Rand, list *[]T) {
	if len(*list) > 1 { // the first one is another's
		i := 1 + r.IntN(len(*list)-1)
		*list = slices.Delete(*list, i, i+1)
	}
}

func ofOurs[T any](r *rand.Rand, list []T, object func(T) Object) (int, bool) {
	var ours []int
	for i, x := range list {
		if strings.Contains(object(x).Description, markerWord) && !strings.Contains(object(x).Description, "other") {
			ours = append(ours, i)
		}
	}
	if len(ours) == 0 {
		return 0, false
	}
	return ours[r.IntN(len(ours))], true
}

func mend(d *Desired, f func(*Listener)) {
	d.Listeners = slices.Clone(d.Listeners)
	for i := range d.Listeners {
		f(&d.Listeners[i])
	}
}

func rotate(d *Desired) {
	if n := len(d.Listeners); n > 1 {
		d.Listeners = slices.Clone(d.Listeners)
		first := d.Listeners[0].NodePort
		for i := range n - 1 {
			d.Listeners[i].NodePort = d.Listeners[i+1].NodePort
		}
		d.Listeners[n-1].NodePort = first
	}
}

func encrypt(d *Desired, c Certificate) {
	mend(d, func(l *Listener) {
		if l.Protocol == loadbalancer.TCP {
			l.Application = HTTPS
			l.Certificate = c
		}
	})
}

func someListeners(r *rand.Rand) []Listener {
	all := []Listener{
		{Name: "http", Protocol: loadbalancer.TCP, Application: HTTP, Port: 80, NodePort: 30080},
		{Name: "tls", Protocol: loadbalancer.TCP, Application: L4, Port: 443, NodePort: 30443},
		{Name: "dns", Protocol: loadbalancer.UDP, Application: L4, Port: 53, NodePort: 30053},
		{Name: "dns-tcp", Protocol: loadbalancer.TCP, Application: L4, Port: 53, NodePort: 30054},
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(len(all))]
}

func someNodes(r *rand.Rand) []netip.Addr {
	var out []netip.Addr
	for i := range 1 + r.IntN(6) {
		out = append(out, netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i + r.IntN(3)*10)}))
	}
	return out
}

func someAddress(r *rand.Rand) netip.Addr {
	return []netip.Addr{
		ip("203.0.113.20"),
		ip("203.0.113.21"),
		ip("198.51.100.20"),
		ip("198.51.100.21"),
		ip("192.168.77.7"),
		ip("203.0.113.10"),
		ip("9.9.9.9"),
	}[r.IntN(7)]
}

func arm() *Range { r := addresses("192.168.8.2-192.168.8.100"); return &r }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func prefixList(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func ourService() Desired {
	return Desired{
		Desired: loadbalancer.Desired{
			Owner: loadbalancer.Owner{
				Cluster:   "urn:vcloud:entity:vmware:capvcdCluster:c1",
				Namespace: "shop",
				Name:      "web",
				UID:       "11111111-1111-1111-1111-111111111111",
			},
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		Members: []netip.Addr{ip("10.0.0.11"), ip("10.0.0.12")},
		Listeners: []Listener{
			{Name: "http", Protocol: loadbalancer.TCP, Application: HTTP, Port: 80, NodePort: 30080},
			{Name: "tls", Protocol: loadbalancer.TCP, Application: L4, Port: 443, NodePort: 30443},
		},
	}
}

// strangers puts objects on the gateway of no owner, of another cluster's, and another Service's of the cluster.
func strangers(m *model) []string {
	add := func(name, description, vip string, port int) {
		pool := Pool{Object: Object{
			ID:          "other-pool-" + name,
			Name:        "pool-" + name,
			Description: description,
			State:       Realized,
		}}
		m.pools = append(m.pools, pool)
		m.services = append(m.services, VirtualService{
			Object:   Object{ID: "other-vs-" + name, Name: name, Description: description, State: Realized},
			VIPs:     []netip.Addr{ip(vip)},
			Protocol: loadbalancer.TCP,
			Port:     port,
			Pool:     Ref{pool.ID, pool.Name},
		})
	}
	add("people", "other: made by hand", "203.0.113.10", 80)
	add("cluster", Marker{
		Owner:    loadbalancer.Owner{Cluster: "c2", Namespace: "shop", Name: "other", UID: "u2"},
		Listener: "tcp-80",
	}.String(), "203.0.113.11", 80)
	add("neighbour", Marker{
		Owner: loadbalancer.Owner{
			Cluster:   ourService().Owner.Cluster,
			Namespace: "other",
			Name:      "web",
			UID:       "u3",
		},
		Listener: "tcp-80",
	}.String(), "203.0.113.12", 80)
	m.rules = append(m.rules,
		Rule{
			Object:       Object{ID: "other-rule", Name: "rule", State: Realized},
			External:     ip("203.0.113.13"),
			Internal:     ip("192.168.8.2"),
			ExternalPort: 80,
		})
	m.claims = append(m.claims, Claim{ID: "other-claim", Value: ip("198.51.100.1"), Description: "other"},
		Claim{ID: "other-free", Value: ip("198.51.100.2")})
	m.services = append([]VirtualService{}, m.services...)
	var ids []string
	for _, x := range m.services {
		ids = append(ids, x.ID)
	}
	for _, x := range m.pools {
		ids = append(ids, x.ID)
	}
	return append(ids, "other-rule", "other-claim", "other-free")
}

// play changes the desired state, lets accidents happen and kills the process, and checks after each change what must be true.
func play(r *rand.Rand, m *model) error {
	foreign := strangers(m)
	d := ourService()
	var story []string
	tell := func(err error) error { return fmt.Errorf("%s: %w", strings.Join(story, "; "), err) }
	for range 1 + r.IntN(5) {
		if r.IntN(3) == 0 {
			name, accident := some(r, accidents)
			story = append(story, name)
			accident(r, m)
			m.full = true
		} else {
			name, change := some(r, specChanges)
			story = append(story, name)
			change(r, &d)
		}
		if err := settle(r, m, &d); err != nil {
			return tell(err)
		}
	}
	story = append(story, "gone")
	d.Absent = true
	if err := settle(r, m, &d); err != nil {
		return tell(err)
	}
	if left := m.left(d.Owner); len(left) > 0 {
		return tell(fmt.Errorf("left: %v", left))
	}
	for _, c := range m.claims {
		if !strings.HasPrefix(c.ID, "other") {
			return tell(fmt.Errorf("left allocated: %+v", c))
		}
	}
	for _, id := range m.touched {
		if slices.Contains(foreign, id) {
			return tell(fmt.Errorf("touched %s of another", id))
		}
	}
	return nil
}

func some[T any](r *rand.Rand, of map[string]T) (string, T) {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	return name, of[name]
}

// settle lets the plan be carried out, killed a few times on the way, and checks the outcome.
func settle(r *rand.Rand, m *model, d *Desired) error {
	for range r.IntN(3) {
		if _, err := m.converge(d, r.IntN(8)); err != nil && !errors.Is(err, errKilled) {
			return err
		}
	}
	plan, err := m.converge(d, -1)
	if err != nil {
		return err
	}
	before := m.writes
	again, err := m.converge(d, -1)
	switch {
	case err != nil:
		return err
	case m.writes != before:
		return fmt.Errorf("the second plan writes")
	case len(plan.Refusals) > 0:
		return nil
	case !again.Done():
		return fmt.Errorf("not done: %+v", again)
	}
	if d.Absent {
		return nil
	}
	return served(m, d, again)
}

// served reports whether clients reach what they should.
func served(m *model, d *Desired, plan Plan) error {
	if len(plan.Status.Addresses) == 0 || !plan.Done() {
		return fmt.Errorf("no address: %+v", plan.Status)
	}
	n := 0
	for _, vs := range m.services {
		if mark, ok := ParseMarker(vs.Description); !ok || !mark.Owner.Is(d.Owner) {
			continue
		}
		n++
		i := slices.IndexFunc(d.Listeners,
			func(l Listener) bool { return l.Port == vs.Port && l.Protocol == vs.Protocol })
		if i < 0 {
			return fmt.Errorf("%s is too many", vs.Name)
		}
		p := m.pools[slices.IndexFunc(m.pools, func(p Pool) bool { return p.ID == vs.Pool.ID })]
		if p.NodePort != d.Listeners[i].NodePort || vs.Application != d.Listeners[i].Application ||
			vs.State != Realized {
			return fmt.Errorf("%s is not as wanted: %+v %+v", vs.Name, vs, p)
		}
	}
	if n != len(d.Listeners) {
		return fmt.Errorf("%d virtual services for %d ports", n, len(d.Listeners))
	}
	return nil
}

var gateways = map[string][]func(*model){
	"all that VCD can do":     nil,
	"IP Spaces":               {withSpaces},
	"members in each pool":    {withoutSets},
	"an old VCD":              {bare},
	"IP Spaces of an old VCD": {bare, withSpaces},
}

func FuzzPlansConverge(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		for name, mods := range gateways {
			r := rand.New(rand.NewPCG(seed, 1))
			if err := play(r, newModel(mods...)); err != nil {
				t.Fatalf("seed %d on %s: %v", seed, name, err)
			}
		}
	})
}

func TestPlansConverge(t *testing.T) {
	for name, mods := range gateways {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			for seed := range uint64(300) {
				g.Expect(play(rand.New(rand.NewPCG(seed, 2)), newModel(mods...))).To(Succeed(), "seed %d", seed)
			}
		})
	}
}

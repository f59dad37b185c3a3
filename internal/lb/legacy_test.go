// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const oldCID = "capvcdCluster:c1"

// oldObjects are the objects that cloud provider interface 1.6.1 created for a port of Service web.
func oldObjects(m *model, port string, number, nodePort int, external string, oneArm bool) {
	base := func(id, prefix string) Object {
		return Object{ID: "old-" + id + "-" + port, Name: prefix + "web-" + oldCID + "-" + port, State: Realized}
	}
	pool := Pool{
		Object:   base("pool", "ingress-pool-"),
		NodePort: nodePort,
		Members:  []netip.Addr{ip("10.0.0.11")},
		Monitors: []Monitor{MonitorTCP},
	}
	vip := ip(external)
	if oneArm {
		vip = ip("192.168.8.2")
		for range len(m.rules) {
			vip = vip.Next() // one address for each port
		}
		profile := Profile{base("profile", "appPort_dnat-ingress-vs-"), loadbalancer.TCP, number}
		m.profiles = append(m.profiles, profile)
		m.rules = append(m.rules,
			Rule{base("rule", "dnat-ingress-vs-"), ip(external), vip, number, Ref{profile.ID, profile.Name}, false})
	}
	m.pools = append(m.pools, pool)
	m.services = append(m.services, VirtualService{
		Object:      base("vs", "ingress-vs-"),
		VIPs:        []netip.Addr{vip},
		Protocol:    loadbalancer.TCP,
		Port:        number,
		Application: L4,
		Pool:        Ref{pool.ID, pool.Name},
		EngineGroup: Ref{"seg-2", "large"},
		Health:      "UP",
	})
}

func oldDirect(m *model) {
	oldObjects(m, "http", 80, 30080, "203.0.113.30", false)
	oldObjects(m, "tls", 443, 30443, "203.0.113.30", false)
}

func oldOneArm(m *model) {
	oldObjects(m, "http", 80, 30080, "203.0.113.30", true)
	oldObjects(m, "tls", 443, 30443, "203.0.113.30", true)
}

func TestAdoption(t *testing.T) {
	published := []netip.Addr{ip("203.0.113.30")}
	tests := []struct {
		name   string
		mods   []func(*model)
		change func(*Desired)
		want   []string
	}{
		{
			name: "objects of 1.6.1 get a marker and stay",
			mods: []func(*model){withoutSets, oldDirect},
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			name:   "in one-arm mode, each port keeps its own address",
			mods:   []func(*model){bare, oldOneArm},
			change: func(d *Desired) { d.OneArm = arm() },
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
				"update app-port-profile http", "update dnat-rule http", "update app-port-profile tls",
				"update dnat-rule tls",
			},
		},
		{
			name: "without one-arm mode the rules go and the address stays",
			mods: []func(*model){withoutSets, oldOneArm},
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls", "delete dnat-rule http", "delete dnat-rule tls",
				"delete app-port-profile http", "delete app-port-profile tls",
			},
		},
		{
			name:   "what 1.6.1 left of a port that was removed goes",
			mods:   []func(*model){withoutSets, oldDirect},
			change: func(d *Desired) { d.Listeners = d.Listeners[:1] },
			want: []string{
				"update lb-pool http", "update virtual-service http", "delete virtual-service tls",
				"delete lb-pool tls",
			},
		},
		{
			name:   "a port that was renamed is the same port",
			mods:   []func(*model){withoutSets, oldDirect},
			change: func(d *Desired) { d.Listeners[0].Name = "web" },
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			name: "with a Service of the same name elsewhere, the node port proves it",
			mods: []func(*model){withoutSets, oldDirect},
			change: func(d *Desired) {
				d.Duplicate = true
				d.Published = nil
			},
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			name: "or the published address",
			mods: []func(*model){withoutSets, oldDirect},
			change: func(d *Desired) {
				d.Duplicate = true
				d.Listeners[0].NodePort = 31111
				d.Listeners[1].NodePort = 31112
			},
			want: []string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			name: "else they are left alone, and others are made on another address",
			mods: []func(*model){withoutSets, oldDirect},
			change: func(d *Desired) {
				d.Duplicate = true
				d.Published = nil
				d.Listeners[0].NodePort = 31111
				d.Listeners[1].NodePort = 31112
			},
			want: []string{
				"create lb-pool tcp-80", "create lb-pool tcp-443", "create virtual-service tcp-80",
				"create virtual-service tcp-443",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := newModel(tt.mods...)
			d := ourService()
			d.Listeners[0].Application = L4
			d.Published = published
			if tt.change != nil {
				tt.change(&d)
			}

			plan := m.next(d)

			g.Expect(plan.Refusals).To(BeEmpty())
			g.Expect(brief(plan)).To(Equal(tt.want))
			g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
			if len(d.Published) > 0 {
				g.Expect(m.next(d).Status.Addresses).To(Equal(published))
			}
			d.Absent = true
			g.Expect(m.converge(&d, -1)).To(HaveField("Notices", Equal(m.next(d).Notices)))
			g.Expect(m.next(d).Status.Objects).To(BeEmpty())
		})
	}
}

func TestAdoptionSurvivesACrashAfterEachWrite(t *testing.T) {
	for kill := range 12 {
		g := NewWithT(t)
		m := newModel(withoutSets, oldOneArm)
		d := ourService()
		d.Listeners[0].Application = L4
		d.OneArm = arm()
		d.Duplicate = true

		_, err := m.converge(&d, kill)
		g.Expect(err).To(Or(Succeed(), MatchError(errKilled)))
		g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true), "killed after %d writes", kill)

		g.Expect(m.services).To(HaveLen(2), "killed after %d writes", kill)
		g.Expect(m.rules).To(HaveLen(2))
		g.Expect(m.next(d).Notices).To(BeEmpty())
	}
}

func TestDeletionOfALoadBalancerThatWasNeverAdopted(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Desired)
		want   []string
	}{
		{
			name:   "a Service that became ClusterIP",
			change: func(d *Desired) { d.Listeners = nil },
			want: []string{
				"delete dnat-rule http", "delete dnat-rule tls", "delete app-port-profile http",
				"delete app-port-profile tls",
				"delete virtual-service http", "delete virtual-service tls", "delete lb-pool http", "delete lb-pool tls",
			},
		},
		{
			name: "one that may be another Service's is left alone",
			change: func(d *Desired) {
				d.Listeners = nil
				d.Duplicate = true
			},
			want: []string{},
		},
		{
			name: "a cluster that goes takes all that is its",
			change: func(d *Desired) {
				d.Listeners = nil
				d.Owner = loadbalancer.Owner{Cluster: d.Owner.Cluster, Name: "web"}
			},
			want: []string{
				"delete dnat-rule http", "delete dnat-rule tls", "delete app-port-profile http",
				"delete app-port-profile tls",
				"delete virtual-service http", "delete virtual-service tls", "delete lb-pool http", "delete lb-pool tls",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := newModel(oldOneArm)
			d := ourService()
			d.Absent = true
			tt.change(&d)

			g.Expect(brief(m.next(d))).To(Equal(tt.want))
		})
	}
}

func TestOwnerOf(t *testing.T) {
	cluster := "urn:vcloud:entity:vmware:capvcdCluster:c1"
	ours := Marker{Owner: loadbalancer.Owner{Cluster: cluster, Namespace: "shop", Name: "web", UID: "u1"}, Listener: "tcp-80"}
	tests := []struct {
		name, object, description string
		kind                      loadbalancer.Kind
		want                      Marker
		origin                    Origin
	}{
		{name: "a marker", object: "any", description: ours.String(), kind: KindPool, want: ours, origin: Marked},
		{
			name:        "a marker between words of people",
			object:      "any",
			description: "do not touch\n" + ours.String() + " says=Bob",
			kind:        KindPool,
			want:        ours,
			origin:      Marked,
		},
		{
			name:        "a marker of another cluster",
			object:      "any",
			description: Marker{Owner: loadbalancer.Owner{Cluster: "c2", UID: "u1"}}.String(),
			kind:        KindPool,
			want:        Marker{},
			origin:      Foreign,
		},
		{
			name:        "two owners are none",
			object:      "any",
			description: ours.String() + " " + Marker{Owner: loadbalancer.Owner{Cluster: "c2", UID: "u1"}}.String(),
			kind:        KindPool,
			want:        Marker{},
			origin:      Foreign,
		},
		{
			name:        "the marker of a machine is no load balancer's",
			object:      "any",
			description: "cluster-api-provider-vcd cluster=" + cluster + " machine=m1",
			kind:        KindPool,
			want:        Marker{},
			origin:      Foreign,
		},
		{
			name:   "a name of 1.6.1",
			object: "ingress-vs-web-capvcdCluster:c1-http",
			kind:   KindService,
			want:   Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}, Listener: "http"},
			origin: OldName,
		},
		{
			name:   "of a port without a name",
			object: "ingress-pool-web-capvcdCluster:c1-",
			kind:   KindPool,
			want:   Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}},
			origin: OldName,
		},
		{
			name:   "of a rule",
			object: "dnat-ingress-vs-web-capvcdCluster:c1-http",
			kind:   KindRule,
			want:   Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}, Listener: "http"},
			origin: OldName,
		},
		{name: "of another cluster", object: "ingress-vs-web-capvcdCluster:c2-http", kind: KindService, want: Marker{}, origin: Foreign},
		{name: "of a longer id", object: "ingress-vs-web-capvcdCluster:c11-http", kind: KindService, want: Marker{}, origin: Foreign},
		{name: "no cluster's", object: "my virtual service", description: "by hand", kind: KindService, want: Marker{}, origin: Foreign},
		{
			name:        "a claim of 1.6.1",
			object:      "198.51.100.1",
			description: "cluster-capvcdCluster:c1-namespace-shop-service-web",
			kind:        KindAddress,
			want:        Marker{Owner: loadbalancer.Owner{Cluster: cluster, Namespace: "shop", Name: "web"}},
			origin:      OldName,
		},
		{
			name:        "a claim of another cluster",
			object:      "198.51.100.1",
			description: "cluster-capvcdCluster:c11-namespace-shop-service-web",
			kind:        KindAddress,
			want:        Marker{},
			origin:      Foreign,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, origin := OwnerOf(cluster, tt.kind, tt.object, tt.description)

			g.Expect(origin).To(Equal(tt.origin))
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

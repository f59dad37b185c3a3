// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const oldCID = "capvcdCluster:c1"

// oldObjects are what cloud provider interface 1.6.1 made for a port of a Service called web.
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
			"objects of 1.6.1 get a marker and stay",
			[]func(*model){withoutSets, oldDirect},
			nil,
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			"in one-arm mode, each port keeps its own address",
			[]func(*model){bare, oldOneArm},
			func(d *Desired) { d.OneArm = arm() },
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
				"update app-port-profile http", "update dnat-rule http", "update app-port-profile tls",
				"update dnat-rule tls",
			},
		},
		{
			"without one-arm mode the rules go and the address stays",
			[]func(*model){withoutSets, oldOneArm},
			nil,
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls", "delete dnat-rule http", "delete dnat-rule tls",
				"delete app-port-profile http", "delete app-port-profile tls",
			},
		},
		{
			"what 1.6.1 left of a port that was removed goes",
			[]func(*model){withoutSets, oldDirect},
			func(d *Desired) { d.Listeners = d.Listeners[:1] },
			[]string{
				"update lb-pool http", "update virtual-service http", "delete virtual-service tls",
				"delete lb-pool tls",
			},
		},
		{
			"a port that was renamed is the same port",
			[]func(*model){withoutSets, oldDirect},
			func(d *Desired) { d.Listeners[0].Name = "web" },
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			"with a Service of the same name elsewhere, the node port proves it",
			[]func(*model){withoutSets, oldDirect},
			func(d *Desired) {
				d.Duplicate = true
				d.Published = nil
			},
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			"or the published address",
			[]func(*model){withoutSets, oldDirect},
			func(d *Desired) {
				d.Duplicate = true
				d.Listeners[0].NodePort = 31111
				d.Listeners[1].NodePort = 31112
			},
			[]string{
				"update lb-pool http", "update lb-pool tls", "update virtual-service http",
				"update virtual-service tls",
			},
		},
		{
			"else they are left alone, and others are made on another address",
			[]func(*model){withoutSets, oldDirect},
			func(d *Desired) {
				d.Duplicate = true
				d.Published = nil
				d.Listeners[0].NodePort = 31111
				d.Listeners[1].NodePort = 31112
			},
			[]string{
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
			"a Service that became ClusterIP",
			func(d *Desired) { d.Listeners = nil },
			[]string{
				"delete dnat-rule http", "delete dnat-rule tls", "delete app-port-profile http",
				"delete app-port-profile tls",
				"delete virtual-service http", "delete virtual-service tls", "delete lb-pool http", "delete lb-pool tls",
			},
		},
		{
			"one that may be another Service's is left alone",
			func(d *Desired) {
				d.Listeners = nil
				d.Duplicate = true
			},
			[]string{},
		},
		{
			"a cluster that goes takes all that is its",
			func(d *Desired) {
				d.Listeners = nil
				d.Owner = loadbalancer.Owner{Cluster: d.Owner.Cluster, Name: "web"}
			},
			[]string{
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
		{"a marker", "any", ours.String(), KindPool, ours, Marked},
		{
			"a marker between words of people",
			"any",
			"do not touch\n" + ours.String() + " says=Bob",
			KindPool,
			ours,
			Marked,
		},
		{
			"a marker of another cluster",
			"any",
			Marker{Owner: loadbalancer.Owner{Cluster: "c2", UID: "u1"}}.String(),
			KindPool,
			Marker{},
			Foreign,
		},
		{
			"two owners are none",
			"any",
			ours.String() + " " + Marker{Owner: loadbalancer.Owner{Cluster: "c2", UID: "u1"}}.String(),
			KindPool,
			Marker{},
			Foreign,
		},
		{
			"the marker of a machine is no load balancer's",
			"any",
			"cluster-api-provider-vcd cluster=" + cluster + " machine=m1",
			KindPool,
			Marker{},
			Foreign,
		},
		{
			"a name of 1.6.1",
			"ingress-vs-web-capvcdCluster:c1-http",
			"",
			KindService,
			Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}, Listener: "http"},
			OldName,
		},
		{
			"of a port without a name",
			"ingress-pool-web-capvcdCluster:c1-",
			"",
			KindPool,
			Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}},
			OldName,
		},
		{
			"of a rule",
			"dnat-ingress-vs-web-capvcdCluster:c1-http",
			"",
			KindRule,
			Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: "web"}, Listener: "http"},
			OldName,
		},
		{"of another cluster", "ingress-vs-web-capvcdCluster:c2-http", "", KindService, Marker{}, Foreign},
		{"of a longer id", "ingress-vs-web-capvcdCluster:c11-http", "", KindService, Marker{}, Foreign},
		{"no cluster's", "my virtual service", "by hand", KindService, Marker{}, Foreign},
		{
			"a claim of 1.6.1",
			"198.51.100.1",
			"cluster-capvcdCluster:c1-namespace-shop-service-web",
			KindAddress,
			Marker{Owner: loadbalancer.Owner{Cluster: cluster, Namespace: "shop", Name: "web"}},
			OldName,
		},
		{
			"a claim of another cluster",
			"198.51.100.1",
			"cluster-capvcdCluster:c11-namespace-shop-service-web",
			KindAddress,
			Marker{},
			Foreign,
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

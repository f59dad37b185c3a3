// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// vm is a VM of cluster c1 that a purge deletes.
func vm(mods ...func(*Object)) Object {
	o := Object{
		Cluster:  "c1",
		Kind:     KindVM,
		Name:     "n1",
		ID:       "urn:vcloud:vm:1",
		By:       lb.WriterThis,
		Power:    "POWERED_OFF",
		Created:  now.Add(-48 * time.Hour),
		parentID: "urn:vcloud:vapp:1",
	}
	for _, mod := range mods {
		mod(&o)
	}
	return o
}

// service is a virtual service of cluster c1.
func service(mods ...func(*Object)) Object {
	o := Object{
		Cluster: "c1",
		Kind:    string(lb.KindService),
		Name:    "s1",
		ID:      "urn:vcloud:loadBalancerVirtualService:1",
		By:      lb.WriterThis,
		gateway: "urn:vcloud:gateway:1",
	}
	for _, mod := range mods {
		mod(&o)
	}
	return o
}

func TestOnlyPoweredOffVMsAreCertainlyStopped(t *testing.T) {
	g := NewWithT(t)
	for _, s := range []vcd.Status{
		vcd.StatusPoweredOn, vcd.StatusSuspended, vcd.StatusPartiallySuspended, vcd.StatusWaitingForInput,
		vcd.StatusUnknown, vcd.StatusUnrecognized, vcd.StatusInconsistent, vcd.StatusMixed,
	} {
		g.Expect(maybeRunning(s)).To(BeTrue(), s.String())
	}
	for _, s := range []vcd.Status{
		vcd.StatusPoweredOff, vcd.StatusResolved, vcd.StatusUnresolved, vcd.StatusFailedCreation,
	} {
		g.Expect(maybeRunning(s)).To(BeFalse(), s.String())
	}
}

// vApp is the vApp of the VMs of cluster c1.
func vApp(mods ...func(*Object)) Object {
	o := Object{
		Cluster: "c1",
		Kind:    KindVApp,
		Name:    "v1",
		ID:      "urn:vcloud:vapp:1",
		By:      lb.WriterThis,
	}
	for _, mod := range mods {
		mod(&o)
	}
	return o
}

// disk is a named disk of cluster c1.
func disk(mods ...func(*Object)) Object {
	o := Object{
		Cluster: "c1",
		Kind:    KindDisk,
		Name:    "pvc-1",
		ID:      "urn:vcloud:disk:1",
		By:      "CSI",
	}
	for _, mod := range mods {
		mod(&o)
	}
	return o
}

func TestPurgeRefusals(t *testing.T) {
	tests := []struct {
		name    string
		objects []Object
		alive   Alive
		legacy  bool
		alone   bool   // no machines
		want    string // empty: it is deleted
	}{
		{name: "an old, powered-off VM is deleted", objects: []Object{vApp(), vm()}},
		{
			name: "a running VM",
			objects: []Object{
				vApp(),
				vm(func(o *Object) {
					o.maybeRunning = true
					o.Power = "POWERED_ON"
				}),
			},
			want: "VM n1 is POWERED_ON",
		},
		{
			name: "a suspended VM",
			objects: []Object{
				vApp(),
				vm(func(o *Object) {
					o.maybeRunning = true
					o.Power = "SUSPENDED"
				}),
			},
			want: "VM n1 is SUSPENDED",
		},
		{
			name:    "a VM changed in the last 24 hours",
			objects: []Object{vApp(), vm(func(o *Object) { o.Changed = now.Add(-23 * time.Hour) })},
			want:    "changed 23h0m0s ago",
		},
		{name: "a VM changed earlier may be deleted", objects: []Object{vApp(), vm(func(o *Object) { o.Changed = now.Add(-25 * time.Hour) })}},
		{
			name:    "a living cluster",
			objects: []Object{vApp(), vm()},
			alive:   Alive{"c1": "mgmt: team-a/c1"},
			want:    "exists in management cluster mgmt: team-a/c1",
		},
		{name: "another living cluster does not matter", objects: []Object{vApp(), vm()}, alive: Alive{"c2": "x"}},
		{
			name:    "CAPVCD's",
			objects: []Object{vApp(), vm(func(o *Object) { o.By = lb.WriterCAPVCD })},
			want:    "was created by CAPVCD",
		},
		{
			name:    "CAPVCD objects may be deleted with --legacy",
			objects: []Object{vApp(), vm(func(o *Object) { o.By = lb.WriterCAPVCD })},
			legacy:  true,
		},
		{
			name:    "CPI objects",
			objects: []Object{{Cluster: "c1", Kind: string(lb.KindPool), Name: "p", By: lb.WriterCPI}},
			want:    "was created by CPI",
		},
		{
			name:   "a running CAPVCD cluster, with --legacy",
			legacy: true,
			objects: []Object{
				vApp(),
				vm(func(o *Object) {
					o.By = lb.WriterCAPVCD
					o.maybeRunning = true
				}),
			},
			want: "power it off",
		},
		{
			name:    "a VM with a named disk",
			objects: []Object{vApp(), vm(func(o *Object) { o.disks = []string{"pvc-1"} })},
			want:    "detach pvc-1",
		},
		{
			name:    "a vApp with a foreign VM",
			objects: []Object{vApp(func(o *Object) { o.foreignVMs = []string{"theirs"} })},
			want:    "move or delete theirs",
		},
		{
			name: "a VM that a person copied or moved to a vApp of another owner",
			objects: []Object{
				vApp(),
				vm(),
				vm(func(o *Object) {
					o.Name = "copy"
					o.Parent = "lab"
					o.parentID = "urn:vcloud:vapp:2"
				}),
			},
			want: "VM copy is in vApp lab, which does not have this ID",
		},
		{
			name: "a copy of a VM in its vApp",
			objects: []Object{
				vApp(),
				vm(func(o *Object) { o.machine = "uid" }),
				vm(func(o *Object) {
					o.Name = "copy"
					o.machine = "uid"
				}),
			},
			want: "VMs n1 and copy have the same marker",
		},
		{
			name: "VMs of two machines may be deleted",
			objects: []Object{
				vApp(),
				vm(func(o *Object) { o.machine = "uid-1" }),
				vm(func(o *Object) { o.machine = "uid-2" }),
			},
		},
		{
			name:    "a named disk that an invisible VM uses",
			objects: []Object{vApp(), disk(func(o *Object) { o.Power = attached })},
			want:    "named disk pvc-1 is attached to a VM that is not visible",
		},
		{
			name:    "an entity of a cluster whose machines are not visible",
			objects: []Object{{Cluster: "c1", Kind: KindEntity, Name: "prod", By: lb.WriterThis}},
			want:    "--no-machines",
		},
		{
			name:    "responding members beside a visible vApp",
			objects: []Object{vApp(), service(func(o *Object) { o.health = serving })},
			want:    "members of its load balancers respond",
		},
		{name: "an ID without objects", objects: nil, want: "no object in VCD has this ID"},
		{
			name:    "load balancers of invisible nodes",
			objects: []Object{service()},
			want:    "--no-machines",
		},
		{name: "the same, if there are no machines", objects: []Object{service()}, alone: true},
		{name: "load balancers with powered-off VMs", objects: []Object{service(), vApp(), vm()}},
		{
			name:    "load balancers with responding members",
			objects: []Object{service(func(o *Object) { o.health = serving })},
			want:    "members of its load balancers respond",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			inventory := Inventory{Objects: tt.objects, Taken: now}

			options := Options{Cluster: "c1", Alive: tt.alive, Legacy: tt.legacy, NoMachines: tt.alone}

			plan := inventory.Plan(options)

			if tt.want == "" {
				g.Expect(plan.Refusals).To(BeEmpty())
				g.Expect(plan.Delete).To(Equal(tt.objects))
				return
			}
			g.Expect(plan.Refusals).To(ContainElement(ContainSubstring(tt.want)))
			g.Expect(inventory.Purge(t.Context(), nil, options)).To(MatchError(ErrRefused))
		})
	}
}

func TestObjectsThatAPurgeAlwaysKeeps(t *testing.T) {
	g := NewWithT(t)
	owned := Object{Cluster: "c1", Kind: KindEntity, Name: "prod", ID: "urn:vcloud:entity:1", By: lb.WriterThis}
	orphan := Object{Cluster: "c1", Kind: KindEntity, Name: "old", ID: "urn:vcloud:entity:2", By: lb.WriterThis}
	inventory := Inventory{Objects: []Object{disk(), owned, orphan}, Taken: now}

	plan := inventory.Plan(Options{Cluster: "c1", Legacy: true, NoMachines: true, Alive: Alive{owned.ID: "mgmt: team-a/prod"}})

	g.Expect(plan.Refusals).To(BeEmpty())
	g.Expect(plan.Keep).To(Equal([]Object{disk(), owned}))
	g.Expect(plan.Delete).To(Equal([]Object{orphan}))
}

func TestObjectsOfDeletedClustersAreOrphaned(t *testing.T) {
	g := NewWithT(t)
	inventory := Inventory{Objects: []Object{vm(), vm(func(o *Object) { o.Cluster = "c2" })}}

	g.Expect(inventory.Left(Alive{"c1": "x"})).To(HaveExactElements(HaveField("Cluster", "c2")))
	g.Expect(inventory.Left(Alive{})).To(HaveLen(2))
	g.Expect(inventory.Of("c1")).To(HaveLen(1))
}

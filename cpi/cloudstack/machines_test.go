// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func vms(s *site, mods ...func(*cpicloudstack.MachineOptions)) *cpicloudstack.Machines {
	o := cpicloudstack.MachineOptions{Client: s.client()}
	for _, mod := range mods {
		mod(&o)
	}
	return cpicloudstack.NewMachines(o)
}

func TestAMachine(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	id := s.sim.Add(cloudstacksim.VMs, cloudstacksim.Object{
		"name":                "Web-1",
		"displayname":         "web 1",
		"state":               "Running",
		"zonename":            "Zone 1",
		"serviceofferingname": "Large (SSD)",
		"publicip":            "203.0.113.77",
		"nic": []cloudstacksim.Object{
			{"networkid": "n2", "networkname": "storage", "ipaddress": "10.9.0.7", "isdefault": false},
			{
				"networkid":   "n1",
				"networkname": "nodes",
				"ipaddress":   "10.1.1.77",
				"ip6address":  "2001:db8::7",
				"isdefault":   true,
				"secondaryip": []cloudstacksim.Object{{"ipaddress": "10.1.1.200"}},
			},
		},
	})

	m, err := vms(s).Get(t.Context(), "external-cloudstack://"+id)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(And(
		HaveField("ProviderID", "external-cloudstack://"+id), HaveField("Name", "Web-1"), HaveField("Power", cpi.PowerOn),
		HaveField("Type", "Large--SSD"), HaveField("Zone", "Zone-1"), HaveField("Region", "Zone-1"),
		HaveField("Hostnames", []string{"Web-1", "web 1"}),
	), "names are converted to label values")
	g.Expect(m.Addresses).To(Equal([]corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.1.1.77"},
		{Type: corev1.NodeInternalIP, Address: "2001:db8::7"},
		{Type: corev1.NodeExternalIP, Address: "203.0.113.77"},
		{Type: corev1.NodeHostName, Address: "Web-1"},
	}))
	g.Expect(m.NICs).To(HaveLen(3), "kubelet may have been configured with any address")
}

func TestRegionAndZoneOfTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	s.sim.Add(cloudstacksim.VMs, cloudstacksim.Object{"name": "node-0", "state": "Running", "zonename": "zone 2"})

	all, err := vms(s, func(o *cpicloudstack.MachineOptions) {
		o.Region = "eu"
		o.Zone = "zone 1"
	}).Snapshot(t.Context(), 0)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveEach(HaveField("Region", "eu")))
	g.Expect(all[0].Doubtful).To(BeFalse())
	g.Expect(all[3]).To(And(HaveField("Name", "node-0"), HaveField("Doubtful", true)), "a machine with this name is in another zone")
}

func TestMachinesOfAProject(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	s.sim.Add(cloudstacksim.VMs, cloudstacksim.Object{"name": "shop-1", "state": "Running", "projectid": cloudstacksim.ProjectID})
	client := s.client(func(o *cloudstack.Options) { o.Project = cloudstacksim.ProjectID })

	all, err := cpicloudstack.NewMachines(cpicloudstack.MachineOptions{Client: client}).Snapshot(t.Context(), 0)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveExactElements(HaveField("Name", "shop-1")))
}

func TestMachinePowerState(t *testing.T) {
	g := NewWithT(t)
	for state, want := range map[string]cpi.Power{
		"Running":   cpi.PowerOn,
		"Migrating": cpi.PowerOn,
		"Stopped":   cpi.PowerOff,
		"Error":     cpi.PowerOff,
		"Starting":  cpi.PowerUnknown,
		"Stopping":  cpi.PowerUnknown,
		"Unknown":   cpi.PowerUnknown,
	} {
		s := newSite(t, cloudstacksim.Options{}, "")
		s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool { o["state"] = state; return true })

		all, err := vms(s).Snapshot(t.Context(), 0)

		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all[0].Power).To(Equal(want), state)
	}
}

func TestProofsOfADeletedMachine(t *testing.T) {
	tests := []struct {
		name   string
		change func(*cloudstacksim.Simulator, string)
		nodes  bool // Nodes of the other machines are initialized
		want   gone.Evidence
	}{
		{name: "others are visible", nodes: true, want: gone.Evidence{ScopeShown: true, HomeShown: true}},
		{name: "nothing else is known", want: gone.Evidence{ScopeShown: true}},
		{
			name: "everything has become invisible",
			change: func(sim *cloudstacksim.Simulator, _ string) {
				sim.Delete(cloudstacksim.VMs, func(cloudstacksim.Object) bool { return true })
			},
			nodes: true,
			want:  gone.Evidence{ScopeShown: true, SiblingsHidden: true},
		},
		{
			name: "the log has its end",
			change: func(sim *cloudstacksim.Simulator, id string) {
				sim.Add(cloudstacksim.Events, cloudstacksim.Object{"type": "VM.DESTROY", "state": "Completed", "resourceid": id})
				sim.Add(cloudstacksim.Events, cloudstacksim.Object{"type": "VM.START", "state": "Completed", "resourceid": "other"})
			},
			want: gone.Evidence{ScopeShown: true, Logged: true, Deleted: true},
		},
		{
			name: "the log has another entry about it",
			change: func(sim *cloudstacksim.Simulator, id string) {
				sim.Add(cloudstacksim.Events, cloudstacksim.Object{"type": "VM.DESTROY", "state": "Started", "resourceid": id})
			},
			nodes: true,
			want:  gone.Evidence{ScopeShown: true, HomeShown: true, Logged: true},
		},
		{
			name: "the log is hidden",
			change: func(sim *cloudstacksim.Simulator, _ string) {
				sim.Fail(cloudstacksim.Fault{Command: "listEvents", Code: 432})
			},
			nodes: true,
			want:  gone.Evidence{ScopeShown: true, HomeShown: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSite(t, cloudstacksim.Options{}, "")
			all, err := vms(s).VMs(t.Context(), 0)
			g.Expect(err).NotTo(HaveOccurred())
			id := all[0].ID
			others := []string{"cloudstack:///" + all[1].ID, "external-cloudstack://" + all[2].ID}
			s.sim.Delete(cloudstacksim.VMs, func(o cloudstacksim.Object) bool { return o["id"] == id })
			if tt.change != nil {
				tt.change(s.sim, id)
			}
			machines := vms(s, func(o *cpicloudstack.MachineOptions) {
				o.ProviderIDs = func() []string {
					if tt.nodes {
						return append(others, "external-cloudstack://"+id)
					}
					return nil
				}
			})

			_, err = machines.Get(t.Context(), "external-cloudstack://"+id)

			absence, ok := errors.AsType[*cpi.AbsenceError](err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(absence.Evidence).To(Equal(tt.want))
		})
	}
}

func TestAMachineMovedToAnotherAccountIsNotGone(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	all, err := vms(s).VMs(t.Context(), 0)
	g.Expect(err).NotTo(HaveOccurred())
	id := all[0].ID
	s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		if o["id"] == id {
			o["projectid"] = cloudstacksim.ProjectID
		}
		return true
	})
	s.sim.Add(cloudstacksim.Events, cloudstacksim.Object{"type": "VM.MOVE", "state": "Completed", "resourceid": id})
	machines := vms(s, func(o *cpicloudstack.MachineOptions) {
		o.ProviderIDs = func() []string { return []string{"external-cloudstack://" + id, "external-cloudstack://" + all[1].ID} }
	})

	_, err = machines.Get(t.Context(), "external-cloudstack://"+id)

	elsewhere, ok := errors.AsType[*cpi.ElsewhereError](err)
	g.Expect(ok).To(BeTrue(), "%v", err)
	g.Expect(elsewhere.Message).To(ContainSubstring("moved to another account or project, so its Node is kept"))

	s.sim.Add(cloudstacksim.Events, cloudstacksim.Object{"type": "VM.EXPUNGE", "state": "Completed", "resourceid": id})
	_, err = machines.Get(t.Context(), "external-cloudstack://"+id)
	absence, ok := errors.AsType[*cpi.AbsenceError](err)
	g.Expect(ok).To(BeTrue(), "%v", err)
	g.Expect(absence.Evidence.Deleted).To(BeTrue())
}

func TestADestroyedMachineIsGoneWhileStillListed(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{ShowDestroyed: true}, "")
	m := vms(s)
	all, err := m.VMs(t.Context(), 0)
	g.Expect(err).NotTo(HaveOccurred())
	s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		if o["id"] == all[0].ID {
			o["state"] = "Destroyed"
		}
		return true
	})

	_, err = m.Get(t.Context(), all[0].ID)
	absence, ok := errors.AsType[*cpi.AbsenceError](err)

	g.Expect(ok).To(BeTrue())
	g.Expect(absence.Evidence).To(Equal(gone.Evidence{ScopeShown: true, Logged: true, Deleted: true}))
	g.Expect(m.Snapshot(t.Context(), 0)).To(HaveLen(2))
}

func TestOneCallForManyMachines(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	for range 497 {
		s.sim.AddVM("more", []string{s.network}, []string{"10.1.2.1"})
	}
	m := vms(s)
	for range 1000 {
		_, err := m.Snapshot(t.Context(), 30*time.Second)
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(s.sim.Calls()).To(Equal([]string{"listVirtualMachines"}))
}

// crowded returns an account with more than one page of machines. It has one more machine each time that they are
// listed.
func crowded(t *testing.T) *site {
	t.Helper()
	n := 0
	return newSite(t, cloudstacksim.Options{
		PageSize: 2,
		Before: func(s *cloudstacksim.Simulator, command string) {
			if command == "listVirtualMachines" {
				n++
				s.AddVM(fmt.Sprintf("more-%d", n), nil, nil)
			}
		},
	}, "")
}

func TestMachinesOfAnEverChangingAccountAreListed(t *testing.T) {
	g := NewWithT(t)
	s := crowded(t)

	all, err := vms(s).Snapshot(t.Context(), 0)

	incomplete, is := errors.AsType[*cpi.IncompleteError](err)
	g.Expect(is).To(BeTrue(), "%v", err)
	g.Expect(all).To(ContainElements(HaveField("Name", "node-0"), HaveField("Name", "node-1"), HaveField("Name", "node-2")))
	_, trouble := cpicloudstack.Explain(s.url)(incomplete)
	g.Expect(trouble).To(BeFalse(), "CloudStack answers")
}

func TestAnEverChangingAccountProvesNoAbsence(t *testing.T) {
	g := NewWithT(t)
	s := crowded(t)
	m := vms(s)

	_, err := m.Get(t.Context(), cpicloudstack.ProviderName+"://unknown")

	_, absent := errors.AsType[*cpi.AbsenceError](err)
	g.Expect(absent).To(BeFalse(), "%v", err)
	g.Expect(err).To(MatchError(cloudstack.ErrChanged))
}

func TestALoadBalancerInAnEverChangingAccount(t *testing.T) {
	s := newSceneAt(crowded(t), "c1", web("u1", 80))

	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(s.network))
	s.Expect(s.converge(false).Status.Addresses).To(HaveLen(1))

	s.Expect(s.sim.Members(fmt.Sprint(s.sim.Objects(cloudstacksim.Rules)[0]["id"]))).To(HaveLen(3))
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestTheDefaultNetworkIsNotChosenBySomeOfTheWorkers(t *testing.T) {
	s := newSceneAt(crowded(t), "c1", web("u1", 80))
	s.known = append(s.members(), service.Member{Node: "node-9", ProviderID: cpicloudstack.ProviderName + "://unknown"})
	s.restart()

	_, err := s.balancer.Locate(t.Context(), "")

	s.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
}

func TestProviderIDsInAnyForm(t *testing.T) {
	for from, want := range map[string]string{
		"external-cloudstack://a": "external-cloudstack://a",
		"cloudstack:///a":         "external-cloudstack://a",
		"cloudstack://region/a":   "external-cloudstack://a",
		"aws:///a":                "aws:///a",
		"":                        "",
	} {
		NewWithT(t).Expect(cpicloudstack.Canonical(from)).To(Equal(want))
	}
}

func TestReportedMachineProblems(t *testing.T) {
	tests := map[string]struct {
		reason string // if it differs from the name
		mod    func(*site, *cloudstack.Options)
		says   string
	}{
		"internal errors": {
			reason: cpicloudstack.ReasonUnavailable,
			mod:    func(s *site, _ *cloudstack.Options) { s.sim.Fail(cloudstacksim.Fault{Times: -1}) },
			says:   "fails .*listVirtualMachines.* 530.*: check the log of its management server",
		},
		cpicloudstack.ReasonRejected: {
			mod:  func(_ *site, o *cloudstack.Options) { o.Secret = "wrong" },
			says: "rejects api-key and secret-key .*: correct them in cloud-config, and check the clock",
		},
		cpicloudstack.ReasonProject: {
			mod:  func(_ *site, o *cloudstack.Options) { o.Project = "unknown" },
			says: "the project does not exist on .* or is not visible to the user .*: correct project-id",
		},
		cpicloudstack.ReasonUnavailable: {
			mod:  func(_ *site, o *cloudstack.Options) { o.URL = "http://127.0.0.1:1" },
			says: "does not respond .*: nothing is changed until it does",
		},
		cpicloudstack.ReasonForbidden: {
			mod: func(s *site, _ *cloudstack.Options) {
				s.sim.Fail(cloudstacksim.Fault{Command: "listVirtualMachines", Code: 432, Times: -1})
			},
			says: "denies a command .*listVirtualMachines.*: grant the user's role the permission",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSite(t, cloudstacksim.Options{}, "")
			client := s.client(func(o *cloudstack.Options) { tt.mod(s, o) })
			_, err := cpicloudstack.NewMachines(cpicloudstack.MachineOptions{Client: client}).Snapshot(t.Context(), 0)

			trouble, ok := cpicloudstack.Explain(s.url)(err)

			g.Expect(ok).To(BeTrue())
			g.Expect(trouble.Reason).To(Equal(cmp.Or(tt.reason, name)))
			g.Expect(trouble.Message).To(MatchRegexp(tt.says))
			g.Expect(trouble.Message).NotTo(Or(ContainSubstring("wrong)"), ContainSubstring("user-key")))

			s.sim.Heal()
			g.Expect(vms(s).Snapshot(t.Context(), 0)).To(HaveLen(3), "once corrected, it continues")
		})
	}
}

func TestTwoMachinesWithOneName(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, cloudstacksim.Options{}, "")
	twin := s.sim.AddVM("node-0", []string{s.network}, []string{"10.1.1.10"})
	clock := clocktesting.NewFakeClock(time.Now())
	events := record.NewFakeRecorder(10)
	core := cpi.NewInstances(cpi.InstanceOptions{
		Name:     cpicloudstack.ProviderName,
		Recorder: events,
		Clock:    clock,
		Nodes:    corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})),
		Machines: vms(s, func(o *cpicloudstack.MachineOptions) { o.Clock = clock }),
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}

	_, err := core.InstanceMetadata(t.Context(), node)
	g.Expect(err).To(HaveOccurred())
	g.Expect(events.Events).To(Receive(ContainSubstring("MachineAmbiguous")))

	s.sim.Delete(cloudstacksim.VMs, func(o cloudstacksim.Object) bool { return o["id"] == twin })
	clock.Step(time.Minute)
	_, err = core.InstanceMetadata(t.Context(), node)
	g.Expect(err).NotTo(HaveOccurred(), "once corrected, it continues")
}

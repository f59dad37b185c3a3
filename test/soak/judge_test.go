// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const vmID = "11111111-2222-3333-4444-555555555555"

func siteWithVMs(vms ...vcdsim.VM) *vcdsim.State { return &vcdsim.State{VMs: vms} }

func machineOf(id string, mods ...func(*infrav1.VCDMachine)) infrav1.VCDMachine {
	m := infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{
		Name:   "m",
		Labels: map[string]string{clusterv1.ClusterNameLabel: "alpha"},
	}}
	m.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:" + id
	for _, mod := range mods {
		mod(&m)
	}
	return m
}

func TestAVMThatDisappearsIsLostOnlyIfItsMachineStays(t *testing.T) {
	deleting := func(m *infrav1.VCDMachine) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	for _, tt := range []struct {
		name     string
		machines []infrav1.VCDMachine
		lost     int
	}{
		{"the machine stays", []infrav1.VCDMachine{machineOf(vmID)}, 1},
		{"the machine is being deleted", []infrav1.VCDMachine{machineOf(vmID, deleting)}, 0},
		{"the machine is gone", nil, 0},
		{"the machine has another VM", []infrav1.VCDMachine{machineOf("another")}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWatcher()
			first := w.look(siteWithVMs(vcdsim.VM{ID: vmID, Name: "m"}), tt.machines, nil)

			second := w.look(siteWithVMs(), tt.machines, nil)

			g.Expect(first).To(BeEmpty())
			g.Expect(second).To(HaveLen(tt.lost))
			g.Expect(w.look(siteWithVMs(), tt.machines, nil)).To(BeEmpty(), "once is enough")
		})
	}
}

func TestTwoVMsWithOneAddressAreFound(t *testing.T) {
	g := NewWithT(t)
	vm := func(id, network, address string) vcdsim.VM {
		return vcdsim.VM{ID: id, Name: id, NICs: []vcdsim.NIC{{Network: network, Address: address}}}
	}

	shared := newWatcher().look(siteWithVMs(vm("a", "nodes", "10.0.0.9"), vm("b", "nodes", "10.0.0.9")), nil, nil)
	separate := newWatcher().look(siteWithVMs(vm("a", "nodes", "10.0.0.9"), vm("b", "storage", "10.0.0.9"),
		vm("c", "nodes", ""), vm("d", "nodes", "")), nil, nil)

	g.Expect(shared).To(HaveLen(1))
	g.Expect(separate).To(BeEmpty())
}

// balanced returns a site with a virtual service at an address, whose pool has members.
func balanced(t *testing.T, address string, members ...string) *vcdsim.State {
	t.Helper()
	encode := func(value any) json.RawMessage {
		raw, err := json.Marshal(value)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return raw
	}
	pool := []map[string]any{}
	for _, m := range members {
		pool = append(pool, map[string]any{"ipAddress": m})
	}
	return &vcdsim.State{Documents: []vcdsim.Document{
		{Path: "1.0.0/loadBalancer/pools", ID: "pool", Body: encode(map[string]any{"members": pool})},
		{
			Path: "1.0.0/loadBalancer/virtualServices",
			ID:   "service",
			Body: encode(map[string]any{
				"virtualIpAddress":    address,
				"loadBalancerPoolRef": map[string]any{"id": "pool"},
			}),
		},
	}}
}

func edgeCluster(host string) infrav1.VCDCluster {
	c := infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Name: "alpha", UID: "alpha"}}
	c.Spec.Site = "https://vcd.example.com"
	c.Spec.ControlPlaneEndpoint.Host = host
	c.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway
	return c
}

func TestAnEndpointIsLostIfTwoLooksDoNotFindIt(t *testing.T) {
	g := NewWithT(t)
	w := newWatcher()
	clusters := []infrav1.VCDCluster{edgeCluster("100.64.1.9")}

	g.Expect(w.look(&vcdsim.State{}, nil, clusters)).To(BeEmpty(), "it does not exist yet")
	g.Expect(w.look(&vcdsim.State{}, nil, clusters)).To(BeEmpty(), "it does not exist yet")
	g.Expect(w.look(balanced(t, "100.64.1.9"), nil, clusters)).To(BeEmpty())
	g.Expect(w.look(&vcdsim.State{}, nil, clusters)).To(BeEmpty(), "one look may be between two reads")
	g.Expect(w.look(&vcdsim.State{}, nil, clusters)).To(HaveLen(1))
	g.Expect(w.look(&vcdsim.State{}, nil, nil)).To(BeEmpty(), "the cluster is gone")
}

func TestAPoolWithoutAControlPlaneIsFound(t *testing.T) {
	g := NewWithT(t)
	plane := machineOf(vmID)
	plane.Labels[clusterv1.MachineControlPlaneLabel] = ""
	plane.Status.NICs = []infrav1.NICStatus{{Address: "10.0.1.5"}}
	viewOf := func(state *vcdsim.State) *view {
		v := &view{poolsOfSites: map[string][]string{}}
		v.vcdClusters.Items = []infrav1.VCDCluster{edgeCluster("100.64.1.9")}
		v.vcdMachines.Items = []infrav1.VCDMachine{plane}
		for address, addresses := range members(state) {
			v.poolsOfSites["https://vcd.example.com "+address] = addresses
		}
		return v
	}

	g.Expect(viewOf(balanced(t, "100.64.1.9", "10.0.1.5")).wrongPools()).To(BeEmpty())
	g.Expect(viewOf(balanced(t, "100.64.1.9")).wrongPools()).To(HaveKey("alpha"))
	g.Expect(viewOf(balanced(t, "100.64.1.9", "10.0.1.5", "10.0.1.6")).wrongPools()).To(HaveKey("alpha"))
}

func TestMembersOfAnIPSetAreThoseOfItsPools(t *testing.T) {
	g := NewWithT(t)
	state := balanced(t, "100.64.1.9")
	state.Documents[0].Body = json.RawMessage(`{"memberGroupRef":{"id":"set"}}`)
	state.Documents = append(state.Documents, vcdsim.Document{
		Path: "1.0.0/firewallGroups",
		ID:   "set",
		Body: json.RawMessage(`{"ipAddresses":["10.0.1.6","10.0.1.5"]}`),
	})

	g.Expect(members(state)).To(Equal(map[string][]string{"100.64.1.9": {"10.0.1.5", "10.0.1.6"}}))
}

func TestGrowthBeyondALimitIsFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		last  sample // of the last quarter
		found int
	}{
		{"all as before", sample{Managers: 200, CCMs: 50, Calls: 5000, Events: 500}, 0},
		{"a little more", sample{Managers: 240, CCMs: 55, Calls: 6000, Events: 600}, 0},
		{"memory of the managers", sample{Managers: 300, CCMs: 50, Calls: 5000, Events: 500}, 1},
		{"memory of a CCM", sample{Managers: 200, CCMs: 90, Calls: 5000, Events: 500}, 1},
		{"calls", sample{Managers: 200, CCMs: 50, Calls: 9000, Events: 500}, 1},
		{"events", sample{Managers: 200, CCMs: 50, Calls: 5000, Events: 2000}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var samples []sample
			for i := range 12 {
				s := sample{Managers: 200, CCMs: 50, Calls: 5000, Events: 500}
				if i >= 9 {
					s = tt.last
				}
				samples = append(samples, s)
			}

			NewWithT(t).Expect(growth(samples)).To(HaveLen(tt.found))
		})
	}
}

func TestInventoriesDifferInWhatIsLeft(t *testing.T) {
	g := NewWithT(t)
	before, err := inventory(vcdsim.State{})
	g.Expect(err).NotTo(HaveOccurred())

	same, err := inventory(vcdsim.State{Tasks: []vcdsim.Task{{ID: "t"}}})
	g.Expect(err).NotTo(HaveOccurred())
	left, err := inventory(vcdsim.State{VMs: []vcdsim.VM{{ID: vmID, Name: "m"}}})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(differences(before, same)).To(BeEmpty())
	g.Expect(differences(before, left)).To(ContainElement(ContainSubstring("m " + vmID)))
}

func TestAViolationIsPrintedOnceWithItsSeedAndCalls(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	j := &judge{seed: 7, out: out}
	v := violation{At: 90 * time.Minute, Cluster: "alpha", Text: "it is gone", Calls: []string{"DELETE /api/vApp/vm-1"}}

	j.report(v)
	j.report(v)

	g.Expect(j.count()).To(Equal(1))
	g.Expect(out.String()).To(Equal(
		"VIOLATION seed 7, 01:30, cluster alpha: it is gone\n     DELETE /api/vApp/vm-1\n"))
}

func TestTheLastCallsAreThoseOfTheObject(t *testing.T) {
	g := NewWithT(t)
	requests := []vcdsim.Request{
		{Method: "DELETE", Path: "/api/vApp/vm-" + vmID, Status: 202, User: "capvcd"},
		{Method: "GET", Path: "/api/query"},
		{Method: "POST", Path: "/api/vApp/other", Status: 202},
	}

	g.Expect(lastCalls(requests, vmID)).To(ConsistOf(ContainSubstring("DELETE")))
	g.Expect(lastCalls(requests, "unknown")).To(HaveLen(2), "the changes")
}

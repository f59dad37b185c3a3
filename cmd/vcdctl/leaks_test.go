// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const leftID = "7a0e0000-0000-4000-8000-000000000001"

// leave creates a vApp with two powered-off VMs of a nonexistent cluster, and a vApp of an existing cluster.
func leave(s *shell) {
	s.sim.Edit(func(e *vcdsim.Editor) {
		for name, cluster := range map[string]string{"acme-vdc-vapp-000": leftID, "acme-vdc-vapp-001": "alive"} {
			v := e.VApp(name)
			v.Description = "cluster-api-provider-vcd cluster=" + cluster
			v.Created = time.Now().Add(-72 * time.Hour)
			for _, n := range []string{"-000", "-001"} {
				e.VM(name + n).Description = "cluster-api-provider-vcd cluster=" + cluster + " machine=m" + n
			}
		}
	})
	c := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "demo", UID: "uid-of-demo"}}
	c.Spec.Site = s.sim.URL()
	c.Spec.Org = "acme"
	c.Spec.InfraID = "alive"
	c.Spec.IdentityRef = infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"}
	m := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a",
		Name:      "demo-0",
		Labels:    map[string]string{"cluster.x-k8s.io/cluster-name": "demo"},
	}}
	for _, vm := range s.sim.State().VMs {
		if vm.Name == "acme-vdc-vapp-001-000" {
			m.Status.VM = &infrav1.ResourceReference{ID: "urn:vcloud:vm:" + vm.ID}
		}
	}
	s.objects = append(s.identity(), []client.Object{c, m}...)
}

func fleet(m *vcdsim.Model) {
	m.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 3, VMsPerVApp: 2, PoweredOff: true, Owner: "capvcd"}
}

func TestAnUntrustedCertificateNamesTheSetting(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)
	delete(s.env, "VCD_CA_FILE")

	s.Expect(s.run(t, "leaks")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(And(ContainSubstring("unknown authority"), ContainSubstring("VCD_CA_FILE")))

	s.Expect(s.run(t, "doctor")).To(Equal(exitFindings))
	s.Expect(s.out.String()).To(ContainSubstring("set a PEM file in --ca-file or VCD_CA_FILE"))
}

func TestLeaksAndPurge(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	login := []string{"--identity", "tenant", "--org", "acme", "--context", "mgmt"}
	run := func(args ...string) int { return s.run(t, append(args, login...)...) }

	s.Expect(run("leaks")).To(Equal(exitFindings), s.errors.String())
	s.Expect(s.out.String()).To(And(ContainSubstring("acme-vdc-vapp-000-001"), Not(ContainSubstring("vapp-001")),
		Not(ContainSubstring("vapp-002")), MatchRegexp(`POWERED_OFF +3d +>24h`)))
	s.Expect(run("leaks", "-o", "json")).To(Equal(exitFindings))
	var printed struct{ Leaks []map[string]any }
	s.Expect(json.Unmarshal(s.out.Bytes(), &printed)).To(Succeed())
	s.Expect(printed.Leaks).To(HaveLen(3))

	s.Expect(run("purge", "--cluster-id", leftID)).To(Equal(exitOK), "a dry run")
	s.Expect(s.sim.State().VApps).To(HaveLen(3))
	s.in = "another id\n"
	s.Expect(run("purge", "--cluster-id", leftID, "--yes")).To(Equal(exitError), "the ID is not typed again")
	s.Expect(s.sim.State().VApps).To(HaveLen(3))
	s.Expect(run("purge", "--cluster-id", "alive", "--yes", "--confirm", "alive")).To(Equal(exitFindings))
	s.Expect(s.out.String()).To(ContainSubstring("exists in management cluster mgmt: team-a/demo"))

	s.in = leftID + "\n"
	s.Expect(run("purge", "--cluster-id", leftID, "--yes")).To(Equal(exitOK), s.errors.String())
	s.Expect(s.sim.State().VApps).To(HaveLen(2))
	s.Expect(run("leaks")).To(Equal(exitOK))
	s.Expect(s.out.String()).To(ContainSubstring("No orphaned resources found."))
}

// TestAFloatingIPOutlivesItsGateway deletes the gateway for which a floating IP was allocated.
func TestAFloatingIPOutlivesItsGateway(t *testing.T) {
	const org = "0a0e0000-0000-4000-8000-00000000000a"
	s := newShell(t, func(m *vcdsim.Model) {
		*m = vcdsim.IPSpaces()
		m.Orgs[1].ID = org
		m.Orgs[1].Users[1].Password = password
		m.Orgs[1].VDCs[0].EdgeGateways = nil
		m.Orgs[1].VDCs[0].Networks = nil
		m.IPSpaces[0].Allocations = []vcdsim.IPAllocation{{
			Type:        vcdsim.FloatingIP,
			Value:       "198.51.100.20",
			OrgID:       org,
			Manual:      true,
			Description: "cluster-api-provider-vcd cluster=" + leftID,
		}}
	})
	s.objects = s.identity()
	login := []string{"--identity", "tenant", "--org", "acme", "--context", "mgmt"}

	s.Expect(s.run(t, append([]string{"leaks"}, login...)...)).To(Equal(exitFindings), s.errors.String())
	s.Expect(s.out.String()).To(ContainSubstring("198.51.100.20"))

	purge := append([]string{"purge", "--cluster-id", leftID, "--no-machines", "--yes", "--confirm", leftID}, login...)
	s.Expect(s.run(t, purge...)).To(Equal(exitOK), s.errors.String())
	s.Expect(s.run(t, append([]string{"leaks"}, login...)...)).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(ContainSubstring("No orphaned resources found."))
}

func TestPurgeRefusesVMsThatMayBeInUse(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*vcdsim.Editor)
		says   string
	}{
		"a VM runs": {
			change: func(e *vcdsim.Editor) { e.PowerOn(e.VM("acme-vdc-vapp-000-000")) },
			says:   "power it off in VCD",
		},
		"VMs are in a vApp of another owner": {
			change: func(e *vcdsim.Editor) { e.VApp("acme-vdc-vapp-000").Description = "of Alice" },
			says:   "is in vApp acme-vdc-vapp-000, which does not have this ID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, fleet)
			leave(s)
			s.sim.Edit(tt.change)

			code := s.run(t, "purge", "--cluster-id", leftID, "--yes", "--confirm", leftID, "--identity", "tenant", "--org", "acme")

			s.Expect(code).To(Equal(exitFindings), s.errors.String())
			s.Expect(s.out.String()).To(ContainSubstring(tt.says))
			s.Expect(s.sim.State().VMs).To(HaveLen(6))
		})
	}
}

func TestPurgeWithoutATerminalNeedsTheID(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)

	code := s.run(t, "purge", "--cluster-id", leftID, "--yes", "--identity", "tenant", "--org", "acme")

	s.Expect(code).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("set --confirm to the ID of the cluster"))
	s.Expect(s.sim.State().VApps).To(HaveLen(3))
}

func TestAQuestionEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	silent, _ := io.Pipe()
	p := &program{in: silent, errors: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := p.ask(ctx, "Sure? ")

	g.Expect(err).To(MatchError("interrupted: nothing was changed"))
}

// onRead calls a function before it returns the user's confirmation.
type onRead struct {
	answer string
	before func()
}

func (r *onRead) Read(p []byte) (int, error) {
	if r.before != nil {
		r.before()
		r.before = nil
	}
	n := copy(p, r.answer)
	r.answer = r.answer[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestPurgeChecksAgainAfterTheConfirmation(t *testing.T) {
	for name, happens := range map[string]func(*shell){
		"a VM was powered on": func(s *shell) {
			s.sim.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM("acme-vdc-vapp-000-000")) })
		},
		"the cluster was restored": func(s *shell) {
			c := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "restored"}}
			c.Spec.Site = s.sim.URL()
			c.Spec.Org = "acme"
			c.Spec.InfraID = leftID
			s.objects = append(s.objects, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, fleet)
			leave(s)
			s.reader = &onRead{answer: leftID + "\n", before: func() { happens(s) }}

			code := s.run(t, "purge", "--cluster-id", leftID, "--yes", "--identity", "tenant", "--org", "acme")

			s.Expect(code).To(Equal(exitError))
			s.Expect(s.errors.String()).To(ContainSubstring("nothing was deleted"))
			s.Expect(s.sim.State().VApps).To(HaveLen(3))
		})
	}
}

func TestLeaksFailsWithoutFullVisibility(t *testing.T) {
	for name, operation := range map[string]string{
		"gateways": "GET /cloudapi/*/edgeGateways",
		"vApps":    "GET /api/vApp/*",
		"entities": "GET /cloudapi/*/entities/types",
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, fleet)
			s.useEnvironment(t)
			s.sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: 403})

			s.Expect(s.run(t, "leaks", "--without-management-cluster")).To(Equal(exitError))

			s.Expect(s.out.String()).NotTo(ContainSubstring("No orphaned resources found"))
			s.Expect(s.errors.String()).To(And(ContainSubstring("are not visible"), ContainSubstring("grant the missing rights")))
		})
	}
}

func TestLeaksNeedsAllManagementClusters(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)

	s.Expect(s.run(t, "leaks", "--context", "mgmt,gone")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("--without-management-cluster"))
	s.Expect(s.run(t, "leaks", "--without-management-cluster")).To(Equal(exitOK), s.errors.String())
}

func TestInventoryShowsATreeWithMarkers(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)

	s.Expect(s.run(t, "inventory", "demo")).To(Equal(exitFindings), s.errors.String())

	s.Expect(s.out.String()).To(HavePrefix("team-a/demo (alive)\n└─ vapp  acme-vdc-vapp-001"))
	s.Expect(s.out.String()).To(And(
		MatchRegexp(`   ├─ vm  acme-vdc-vapp-001-000  POWERED_OFF .*← not running\n`),
		MatchRegexp(`   └─ vm  acme-vdc-vapp-001-001  POWERED_OFF .*← no VCDMachine\n`)))
	s.Expect(strings.Count(s.out.String(), "\n")).To(Equal(4))
}

func TestVMsAreBelowTheVAppOfTheirVDC(t *testing.T) {
	g := NewWithT(t)
	object := func(kind, name, vdc, parent string) branch {
		return branch{Object: leaks.Object{Kind: kind, Name: name, Where: vdc, Parent: parent}}
	}
	branches := []branch{
		object(leaks.KindVApp, "demo", "vdc-a", ""),
		object(leaks.KindVApp, "demo", "vdc-b", ""),
		object(leaks.KindVM, "a", "vdc-a", "demo"),
		object(leaks.KindVM, "b", "vdc-b", "demo"),
		object(leaks.KindVM, "c", "vdc-b", "lab"),
	}

	roots, children := groupByVApp(branches)

	g.Expect(roots).To(Equal([]branch{branches[0], branches[1], branches[4]}))
	g.Expect(children).To(Equal(map[home][]branch{
		{name: "demo", vdc: "vdc-a"}: {branches[2]},
		{name: "demo", vdc: "vdc-b"}: {branches[3]},
	}))
}

func TestAnIncompleteInventoryIsAnError(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /cloudapi/*/edgeGateways", Status: 403})

	s.Expect(s.run(t, "inventory", "demo")).To(Equal(exitError))

	s.Expect(s.out.String()).To(HavePrefix("team-a/demo (alive)"), "visible objects are printed")
	s.Expect(s.errors.String()).To(ContainSubstring("incomplete"))
}

// SPDX-License-Identifier: Apache-2.0

package siteexport_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteexport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// newSite simulates a site.
func newSite(t *testing.T, model vcdsim.Model) *vcdsim.Simulator {
	t.Helper()
	g := NewWithT(t)
	sim, err := vcdsim.New(vcdsim.Config{Model: model, Seed: 1, Profile: vcdsim.Instant})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return sim
}

// login starts a session that ends with the test.
func login(t *testing.T, sim *vcdsim.Simulator, org, user string) *vcd.Session {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 100_000, Burst: 100_000})
	t.Cleanup(func() { _ = pool.Close(t.Context()) })
	session, err := pool.Session(t.Context(), vcd.Config{
		Site:        sim.URL(),
		Org:         org,
		CABundle:    sim.CA(),
		Credentials: vcd.Credentials{Username: user, Password: "password"},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return session
}

// export writes the file of an organization.
func export(t *testing.T, sim *vcdsim.Simulator, org, user string) (file string, notes []string) {
	t.Helper()
	g := NewWithT(t)
	read, err := siteexport.Read(t.Context(), login(t, sim, org, user))
	g.Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	g.Expect(read.Write(&out)).To(Succeed())
	return out.String(), read.Notes
}

// load reads a file as vcdsim does.
func load(t *testing.T, file string) vcdsim.Model {
	t.Helper()
	model, err := vcdsim.ReadModel(bytes.NewReader([]byte(file)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return model
}

func TestAnExportSurvivesARoundTrip(t *testing.T) {
	for _, name := range vcdsim.PresetNames() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			model, _ := vcdsim.PresetByName(name)
			file, notes := export(t, newSite(t, model), "acme", model.Orgs[1].Users[min(1, len(model.Orgs[1].Users)-1)].Name)
			g.Expect(notes).To(BeEmpty())

			again, notes := export(t, newSite(t, load(t, file)), "org-1", "capvcd")

			g.Expect(again).To(Equal(file))
			g.Expect(notes).To(BeEmpty())
		})
	}
}

func TestAnExportOnlyReads(t *testing.T) {
	g := NewWithT(t)
	sim := newSite(t, vcdsim.CloudProvider())

	export(t, sim, "acme", "admin")

	g.Expect(sim.Requests()).NotTo(BeEmpty())
	for _, r := range sim.Requests() {
		if r.Path == "/cloudapi/1.0.0/sessions" || r.Path == "/cloudapi/1.0.0/sessions/current" {
			continue
		}
		g.Expect(r.Method).To(Equal(http.MethodGet), r.Path)
	}
}

func TestUnreadableObjectsBecomeNotes(t *testing.T) {
	g := NewWithT(t)
	model := vcdsim.CloudProvider()
	model.Orgs[1].Roles[0].Rights = []string{"Organization vDC Network: View Properties"}

	file, notes := export(t, newSite(t, model), "acme", "capvcd")

	g.Expect(notes).To(ContainElements(
		"edge gateways: not readable for the user; the defaults of the simulator apply",
		"networks: those of edge gateways that are not visible to the user are omitted",
	))
	exported := load(t, file)
	g.Expect(exported.Orgs[1].VDCs).To(ConsistOf(HaveField("EdgeGateways", BeEmpty())))
	newSite(t, exported)
}

func TestASystemAdministratorIsRejected(t *testing.T) {
	g := NewWithT(t)
	_, err := siteexport.Read(t.Context(), login(t, newSite(t, vcdsim.K8sTenant()), "System", "administrator"))
	g.Expect(err).To(MatchError(ContainSubstring("log in as a user of the organization to export")))
}

func TestAFailingSiteProducesNoFile(t *testing.T) {
	g := NewWithT(t)
	sim := newSite(t, vcdsim.K8sTenant())
	session := login(t, sim, "acme", "capvcd")
	sim.Faults().Add(vcdsim.Fault{
		Operation: "GET /cloudapi/1.0.0/edgeGateways",
		Status:    http.StatusInternalServerError,
	})

	_, err := siteexport.Read(t.Context(), session)

	g.Expect(err).To(MatchError(HavePrefix("reading edge gateways: ")))
}

func TestLongListsAreBounded(t *testing.T) {
	g := NewWithT(t)
	model := vcdsim.K8sTenant()
	image := model.Orgs[1].Catalogs[0].Templates[0]
	for i := range 600 {
		image.Name = fmt.Sprintf("template-%d", i)
		model.Orgs[1].Catalogs[0].Templates = append(model.Orgs[1].Catalogs[0].Templates, image)
	}

	file, notes := export(t, newSite(t, model), "acme", "capvcd")

	g.Expect(notes).To(ConsistOf("templates: the file contains only the first 512"))
	g.Expect(load(t, file).Orgs[1].Catalogs[0].Templates).To(HaveLen(512))
}

// Settings of a VDC and a network that no preset has.
func TestVDCAndNetworkSettingsAreKept(t *testing.T) {
	g := NewWithT(t)
	model := vcdsim.K8sTenant()
	vdc := &model.Orgs[1].VDCs[0]
	vdc.AllocationModel = "AllocationPool"
	vdc.FullClones = true
	vdc.VMQuota = 17
	vdc.NICQuota = 40
	vdc.Compute = vcdsim.Compute{
		CPUAllocated:     20000,
		CPULimit:         30000,
		MemoryAllocated:  65536,
		MemoryLimit:      131072,
		CPUGuaranteed:    0.5,
		MemoryGuaranteed: 0.25,
		CPUSpeed:         2000,
		NetworkQuota:     new(int),
		ThickDisks:       true,
	}
	vdc.Policies = []string{"small", "System Default"} // The first is the default one.
	vdc.StorageProfiles[1].LimitMiB = 1 << 20
	vdc.StorageProfiles[1].Disabled = true
	vdc.Networks[0].DHCP = &vcdsim.NetworkDHCP{
		Mode:    "NETWORK",
		Address: "192.168.100.2",
		Lease:   3600,
		DNS:     []string{"192.168.100.3"},
	}
	vdc.Networks = append(vdc.Networks, vcdsim.Network{
		Name:    "alone",
		Type:    vcdsim.Isolated,
		Gateway: netip.MustParsePrefix("192.168.100.1/24"),
	})

	file, _ := export(t, newSite(t, model), "acme", "admin")

	got := load(t, file).Orgs[1].VDCs[0]
	g.Expect(got.AllocationModel).To(Equal(vdc.AllocationModel))
	g.Expect(got.FullClones).To(BeTrue())
	g.Expect([]int{got.VMQuota, got.NICQuota}).To(Equal([]int{17, 40}))
	g.Expect(got.Compute).To(Equal(vdc.Compute))
	g.Expect(got.Policies).To(Equal([]string{"policy-1", "System Default"}))
	g.Expect(got.StorageProfiles).To(ConsistOf(
		vcdsim.StorageProfile{Name: "storage-1", LimitMiB: 1 << 20, Disabled: true},
		vcdsim.StorageProfile{Name: "storage-2", Default: true},
	))
	g.Expect(got.Networks).To(HaveLen(3))
	g.Expect(got.Networks[0]).To(And(HaveField("Type", vcdsim.Isolated), HaveField("Edge", "")))
	g.Expect(got.Networks[1].DHCP).To(Equal(&vcdsim.NetworkDHCP{
		Mode:    "NETWORK",
		Address: "198.18.1.2",
		Lease:   3600,
		DNS:     []string{"198.18.1.3"},
	}))
	g.Expect(got.Networks[0].Gateway).To(Equal(got.Networks[1].Gateway), "they overlapped before")
}

// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// A target is the system that the contract is tested against: the simulator, or a real VCD if VCD_URL is set. Then
// VCD_ORG, VCD_USER and VCD_PASSWORD or VCD_API_TOKEN select the user. VCD_VDC, VCD_NETWORK, VCD_CATALOG, VCD_TEMPLATE,
// VCD_SIZING_POLICY and VCD_PLACEMENT_POLICY select the resources. VCD_CA_FILE and VCD_INSECURE are optional.
type target struct {
	sim    *vcdsim.Simulator // nil on a real VCD
	pool   *vcd.Pool
	config vcd.Config

	vdc, network, catalog, template, sizing, placement string
}

func newTarget(t *testing.T, mods ...func(*vcdsim.Config)) *target {
	t.Helper()
	poll := 5 * time.Second
	to := &target{
		vdc:       env("VDC", "acme-vdc"),
		network:   env("NETWORK", "nodes"),
		catalog:   env("CATALOG", "kubernetes"),
		template:  env("TEMPLATE", "ubuntu-2404-kube-v1.36.3"),
		sizing:    env("SIZING_POLICY", "small"),
		placement: env("PLACEMENT_POLICY", "rack-a"),
	}
	if url := os.Getenv("VCD_URL"); url != "" {
		to.config = realConfig(t, url)
	} else {
		poll = 20 * time.Millisecond
		to.startSimulator(t, mods...)
	}
	to.pool = vcd.NewPool(vcd.PoolOptions{TaskPoll: poll, RequestsPerSecond: 1000, Burst: 1000})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		NewWithT(t).Expect(to.pool.Close(ctx)).To(Succeed())
		if to.sim != nil {
			NewWithT(t).Expect(to.sim.Unhandled()).To(BeEmpty())
			NewWithT(t).Expect(to.sim.State().Sessions).To(BeEmpty(), "sessions are logged out")
		}
	})
	return to
}

func env(name, fallback string) string { return cmp.Or(os.Getenv("VCD_"+name), fallback) }

func realConfig(t *testing.T, url string) vcd.Config {
	t.Helper()
	insecure, _ := strconv.ParseBool(os.Getenv("VCD_INSECURE"))
	config := vcd.Config{
		Site:     url,
		Org:      os.Getenv("VCD_ORG"),
		Insecure: insecure,
		Version:  "1",
		Credentials: vcd.Credentials{
			Username: os.Getenv("VCD_USER"),
			Password: os.Getenv("VCD_PASSWORD"),
			APIToken: os.Getenv("VCD_API_TOKEN"),
		},
	}
	if file := os.Getenv("VCD_CA_FILE"); file != "" {
		ca, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		config.CABundle = ca
	}
	return config
}

func (to *target) startSimulator(t *testing.T, mods ...func(*vcdsim.Config)) {
	t.Helper()
	g := NewWithT(t)
	observe, err := record.To(os.Getenv("VCDSIM_RECORD"))
	g.Expect(err).NotTo(HaveOccurred())
	config := vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant, Seed: 1, Observe: observe}
	for _, mod := range mods {
		mod(&config)
	}
	sim, err := vcdsim.New(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { NewWithT(t).Expect(sim.Close()).To(Succeed()) })
	to.sim = sim
	to.config = vcd.Config{
		Site:        sim.URL(),
		Org:         "acme",
		CABundle:    sim.CA(),
		Version:     "1",
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	}
}

// simOnly skips a test that changes the simulator without using its API.
func simOnly(t *testing.T, to *target) {
	t.Helper()
	if to.sim == nil {
		t.Skip("requires the simulator: unset VCD_URL")
	}
}

func (to *target) session(t *testing.T) *vcd.Session {
	t.Helper()
	s, err := to.pool.Session(t.Context(), to.config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

// calls returns the number of calls except task queries, and their list.
func (to *target) calls() (int, map[string]int) {
	counts := to.sim.Counters()
	maps.DeleteFunc(counts, func(op string, _ int) bool { return strings.Contains(op, "type=task") })
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, counts
}

// await follows a task until it ends, as a controller does.
func await(t *testing.T, s *vcd.Session, task vcd.Task, err error) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	ended, err := s.Tasks.Wait(t.Context(), task, time.After(10*time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ended.Err).NotTo(HaveOccurred())
	g.Expect(ended.State).To(Equal(vcd.TaskSucceeded))
}

// plan resolves the resources of a machine as a controller does.
type plan struct {
	vdc     vcd.VDC
	network vcd.Network
	spec    vcd.VMSpec
}

func (to *target) plan(t *testing.T, s *vcd.Session, name string) plan {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	vdc, err := s.VDCs.FindVDC(ctx, to.vdc)
	g.Expect(err).NotTo(HaveOccurred())
	network, err := s.Networks.FindNetwork(ctx, vdc, to.network)
	g.Expect(err).NotTo(HaveOccurred())
	template, err := s.Templates.FindTemplate(ctx, to.catalog, to.template)
	g.Expect(err).NotTo(HaveOccurred())
	sizing, err := s.VDCs.FindSizingPolicy(ctx, vdc, to.sizing)
	g.Expect(err).NotTo(HaveOccurred())
	placement, err := s.VDCs.FindPlacementPolicy(ctx, vdc, to.placement)
	g.Expect(err).NotTo(HaveOccurred())
	profile, err := s.VDCs.FindStorageProfile(ctx, vdc, "")
	g.Expect(err).NotTo(HaveOccurred())
	return plan{
		vdc,
		network,
		vcd.VMSpec{
			Name:            name,
			Description:     vcd.Marker{Cluster: "c1", Machine: "uid-" + name}.String(),
			ComputerName:    name,
			Template:        template,
			SizingPolicy:    &sizing,
			PlacementPolicy: &placement,
			StorageProfile:  &profile,
			NICs:            []vcd.NIC{{Network: network.Name, Mode: vcd.ModePool, Primary: true}},
		},
	}
}

// removeVApp deletes a vApp step by step, as its owner does.
func removeVApp(t *testing.T, s *vcd.Session, id string) {
	t.Helper()
	for range 3 {
		task, err := s.VApps.DeleteVApp(t.Context(), id)
		if err != nil {
			return // deleted, which VCD may report as forbidden
		}
		await(t, s, task, nil)
	}
	t.Fatal("the vApp still exists")
}

// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// brokenQuery is a request of the provider's client after an upload. Its question mark is escaped and thus part of the
// path, which does not exist in VCD.
const brokenQuery = "GET /api/query%3Ftype=task&format=records&page=1&pageSize=5&"

// A tenant is a preset, with the values of the variables in testdata/tenant that select the tenant's objects.
type tenant struct {
	preset    string
	variables map[string]any
}

// tenants returns all presets with a tenant except the large one, which only has more VMs.
func tenants() []tenant {
	return []tenant{
		{preset: "cloud-provider"},
		{
			preset: "full-clones",
			variables: map[string]any{
				"vdc":         "acme-vdc-full",
				"gateway":     []string{"acme-vdc-full-gateway"},
				"block":       []string{"203.0.113.230", "203.0.113.231"},
				"full_clones": true,
			},
		},
		{preset: "ip-spaces", variables: map[string]any{"ip_space": []string{"public"}}},
		{preset: "k8s-tenant"},
		{
			preset: "minimal",
			variables: map[string]any{
				"gateway":       []string{},
				"sizing_policy": []string{},
			},
		},
		{
			preset: "two-gateways",
			variables: map[string]any{
				"gateway": []string{"acme-vdc-gateway-2"},
				"block":   []string{"203.0.113.110", "203.0.113.111"},
			},
		},
		{preset: "vdc-group", variables: map[string]any{"group": []string{"acme-group"}}},
		{preset: "zones", variables: map[string]any{"group": []string{"acme-group"}}},
	}
}

// TestProviderManagesATenant applies the configuration to each preset, and changes, imports and destroys it.
func TestProviderManagesATenant(t *testing.T) {
	if testing.Short() {
		t.Skip("builds OpenTofu and VMware's provider; not in short mode")
	}
	programs, err := buildTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range tenants() {
		t.Run(tenant.preset, func(t *testing.T) {
			t.Parallel()
			manage(t, programs, tenant)
		})
	}
}

func manage(t *testing.T, programs tools, tenant tenant) {
	t.Helper()
	g := NewWithT(t)
	model, known := vcdsim.PresetByName(tenant.preset)
	g.Expect(known).To(BeTrue(), "unknown preset %s", tenant.preset)
	sim, err := vcdsim.New(vcdsim.Config{Model: model, Seed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	before := inventory(g, sim)
	w := newWorkspace(t, programs, sim, tenant)

	w.apply(1)
	w.expectNoDifference(1)
	w.apply(2)
	w.expectNoDifference(2)
	w.expectImports(2)
	w.destroy(2)

	expectSame(t, before, inventory(g, sim))
	unhandled := slices.DeleteFunc(sim.Unhandled(), func(route string) bool { return route == brokenQuery })
	g.Expect(unhandled).To(BeEmpty(), "requests that the simulator does not support")
}

// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/discovery"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// open logs in to a simulator with three VDCs.
func open(t *testing.T) *vcd.Session {
	t.Helper()
	g := NewWithT(t)
	model := vcdsim.ThreeZones()
	model.Orgs[1].VDCs[2].Disabled = true
	sim, err := vcdsim.New(vcdsim.Config{Profile: vcdsim.Instant, Model: model})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	pool := vcd.NewPool(vcd.PoolOptions{})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	s, err := pool.Session(t.Context(), vcd.Config{
		Site:        sim.URL(),
		Org:         "acme",
		CABundle:    sim.CA(),
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	return s
}

func TestZonesAreProposedForEnabledVDCsAndTheirPolicies(t *testing.T) {
	g := NewWithT(t)

	objects, err := discovery.Zones(t.Context(), open(t).VDCs, discovery.ZoneOptions{
		Namespace:   "team-a",
		Site:        "https://vcd.example.com",
		Org:         "acme",
		Region:      "eu",
		Policies:    true,
		IdentityRef: infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
	})

	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, o := range objects {
		names = append(names, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
	}
	g.Expect(names).To(Equal([]string{
		"VCDFailureDomain acme-vdc", "VCDDeploymentZone acme-vdc",
		"VCDFailureDomain acme-vdc-rack-a", "VCDDeploymentZone acme-vdc-rack-a",
		"VCDFailureDomain acme-vdc-b", "VCDDeploymentZone acme-vdc-b",
		"VCDFailureDomain acme-vdc-b-rack-a", "VCDDeploymentZone acme-vdc-b-rack-a",
	}))

	manifests, err := discovery.YAML(objects[2:3])
	g.Expect(err).NotTo(HaveOccurred())
	d := &infrav1.VCDFailureDomain{}
	g.Expect(yaml.UnmarshalStrict(manifests, d)).To(Succeed())
	g.Expect(d.Spec).To(Equal(infrav1.VCDFailureDomainSpec{
		Region:          "eu",
		Zone:            "acme-vdc-rack-a",
		OVDC:            "acme-vdc",
		PlacementPolicy: "rack-a",
	}))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// manifests decodes the printed manifests strictly.
func (s *shell) manifests() []map[string]any {
	var all []map[string]any
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(s.out.Bytes()), 4096); ; {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		s.Expect(err).NotTo(HaveOccurred())
		all = append(all, o)
	}
}

func threeZones(m *vcdsim.Model) {
	*m = vcdsim.ThreeZones()
	m.Orgs[1].Users[1].Password = password
}

func TestZonesAreManifestsToApply(t *testing.T) {
	s := newShell(t, threeZones)
	s.objects = s.identity()

	code := s.run(t, "zones", "--region", "frankfurt", "--network", "nodes", "--identity", "tenant", "--org", "acme",
		"-n", "team-a")

	s.Expect(code).To(Equal(exitOK), s.errors.String())
	all := s.manifests()
	s.Expect(all).To(HaveLen(6))
	s.Expect(all[0]).To(Equal(map[string]any{
		"apiVersion": infrav1.GroupVersion.String(),
		"kind":       "VCDFailureDomain",
		"metadata":   map[string]any{"name": "acme-vdc", "namespace": "team-a"},
		"spec":       map[string]any{"region": "frankfurt", "zone": "acme-vdc", "ovdc": "acme-vdc"},
	}))
	s.Expect(all[1]).To(Equal(map[string]any{
		"apiVersion": infrav1.GroupVersion.String(),
		"kind":       "VCDDeploymentZone",
		"metadata":   map[string]any{"name": "acme-vdc", "namespace": "team-a"},
		"spec": map[string]any{
			"failureDomain":       "acme-vdc",
			"site":                s.sim.URL(),
			"org":                 "acme",
			"identityRef":         map[string]any{"kind": "VCDIdentity", "name": "tenant"},
			"placementConstraint": map[string]any{"networks": []any{"nodes"}},
		},
	}))
}

func TestZonesWithPoliciesReadTheEnvironment(t *testing.T) {
	s := newShell(t, threeZones)
	s.useEnvironment(t)

	code := s.run(t, "zones", "--region", "frankfurt", "--identity-ref", "tenant", "--policies", "-o", "json")

	s.Expect(code).To(Equal(exitOK), s.errors.String())
	var list struct {
		Kind  string
		Items []struct{ Spec map[string]any }
	}
	s.Expect(json.Unmarshal(s.out.Bytes(), &list)).To(Succeed())
	s.Expect(list.Kind).To(Equal("List"))
	s.Expect(list.Items).To(ContainElement(HaveField("Spec", HaveKeyWithValue("placementPolicy", "rack-a"))))
}

func TestZonesThatCannotBeProposed(t *testing.T) {
	s := newShell(t, func(m *vcdsim.Model) { m.Orgs[1].VDCs[0].Disabled = true })
	s.useEnvironment(t)

	s.Expect(s.run(t, "zones", "--identity-ref", "tenant")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("region"))
	s.Expect(s.run(t, "zones", "--region", "frankfurt")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("--identity-ref"))
	s.Expect(s.run(t, "zones", "--region", "frankfurt", "--identity-ref", "tenant")).To(Equal(exitFindings))
	s.Expect(s.errors.String()).To(ContainSubstring("No enabled VDC"))
	s.Expect(s.out.String()).To(BeEmpty())
}

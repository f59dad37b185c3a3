// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestPresetsSurviveARoundTrip(t *testing.T) {
	for _, name := range vcdsim.PresetNames() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			model, _ := vcdsim.PresetByName(name)
			model.Orgs[1].RuntimeLease = 90 * 60e9
			var file bytes.Buffer
			g.Expect(vcdsim.WriteModel(&file, model)).To(Succeed())
			g.Expect(file.String()).To(ContainSubstring("runtimeLease: 1h30m0s"))

			again, err := vcdsim.ReadModel(&file)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(model))
		})
	}
}

const modelFile = `
orgs:
- name: System
  users:
  - {name: administrator, password: secret, role: System Administrator}
- name: acme
  users:
  - {name: admin, password: secret, role: Organization Administrator}
  vdcs:
  - name: vdc
    storageProfiles:
    - {name: standard, default: true}
    policies: [System Default]
    edgeGateways:
    - name: gateway
      uplinks:
      - network: internet
    networks:
    - {name: nodes, type: NAT_ROUTED, gateway: 192.168.100.1/24}
policies:
- name: System Default
externalNetworks:
- name: internet
  subnets:
  - {gateway: 203.0.113.1/24, pool: [{from: 203.0.113.10, to: 203.0.113.99}]}
`

func TestAModelFileIsSimulated(t *testing.T) {
	g := NewWithT(t)
	model, err := vcdsim.ReadModel(strings.NewReader(modelFile))
	g.Expect(err).NotTo(HaveOccurred())

	sim, err := vcdsim.New(vcdsim.Config{Model: model, Seed: 1})

	g.Expect(err).NotTo(HaveOccurred())
	vdc := sim.State().Model.Orgs[1].VDCs[0]
	g.Expect(vdc.EdgeGateways[0].ID).NotTo(BeEmpty())
	g.Expect(vdc.Networks[0].Edge).To(Equal(vdc.EdgeGateways[0].ID))
}

func TestAnInvalidModelIsRejected(t *testing.T) {
	for _, test := range []struct{ name, old, replacement, message string }{
		{"an unknown field", "policies: [System", "policy: [System", `unknown field "policy"`},
		{"not YAML", "orgs:", "orgs", "reading a model: error converting YAML"},
		{"no provider", "name: System\n", "name: Provider\n", `orgs: the first organization must be "System"`},
		{"an unknown policy", "[System Default]", "[small]", `orgs: acme: vdcs: vdc: policies: the model has no "small"`},
		{"an unknown role", "Organization Administrator", "Boss", `orgs: acme: users: admin: role: the model has no "Boss"`},
		{"a role of the provider", "Organization Administrator", "System Administrator", `the model has no "System Administrator"`},
		{"an unknown uplink", "network: internet", "network: dark", `edgeGateways: gateway: uplinks: network: the model has no "dark"`},
		{"no subnet", ", gateway: 192.168.100.1/24", "", "networks: nodes: gateway: it must be an address"},
		{"no name", "- name: vdc", "- description: vdc", "orgs: acme: vdcs: number 1 has no name"},
		{"a duplicate name", "- name: acme", "- name: System", `orgs: "System" is duplicated`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			text := strings.Replace(modelFile, test.old, test.replacement, 1)
			g.Expect(text).NotTo(Equal(modelFile))

			_, err := vcdsim.ReadModel(strings.NewReader(text))

			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}
}

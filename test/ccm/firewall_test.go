// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"cmp"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const firewallRules = "1.0.0/edgeGateways/{gateway}/firewall/rules"

// ranges sets the source ranges of a Service.
func ranges(sources ...string) change {
	return func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = sources }
}

// foreignRule creates an administrator's rule in the firewall of the first gateway.
func (v *vcd) foreignRule() {
	org := v.State().Model.Orgs[1]
	v.Edit(func(e *vcdsim.Editor) {
		e.AddDocument(firewallRules, "edgeFirewall", org.ID, org.VDCs[0].EdgeGateways[0].ID,
			map[string]any{"userDefinedRules": []any{
				map[string]any{
					"id":          "00000000-0000-4000-8000-000000000001",
					"name":        "theirs",
					"actionValue": "ALLOW",
					"enabled":     true,
				},
			}})
	})
}

// firewall describes the rules in order. Administrators' rules are listed by name.
func (v *vcd) firewall() []string {
	var found struct {
		Rules []struct {
			Name     string   `json:"name"`
			Comments string   `json:"comments"`
			Action   string   `json:"actionValue"`
			From     []string `json:"sourceFirewallIpAddresses"`
			To       []string `json:"destinationFirewallIpAddresses"`
		} `json:"userDefinedRules"`
	}
	for _, doc := range v.State().Documents {
		if doc.Path == firewallRules {
			if err := json.Unmarshal(doc.Body, &found); err != nil {
				return []string{err.Error()}
			}
		}
	}
	var out []string
	for _, r := range found.Rules {
		if r.Comments == "" {
			out = append(out, r.Name)
			continue
		}
		out = append(out, r.Action+" "+cmp.Or(strings.Join(r.From, ","), "everybody")+" to "+strings.Join(r.To, ","))
	}
	return out
}

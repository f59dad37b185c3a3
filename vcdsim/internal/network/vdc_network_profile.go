// SPDX-License-Identifier: Apache-2.0

package network

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// vdcNetworkProfile returns the setting that selects the NSX edge clusters and segment profile templates of a VDC.
func vdcNetworkProfile() *documents.Setting {
	return &documents.Setting{
		Path:  "1.0.0/vdcs/{vdc}/networkProfile",
		Kind:  "vdcNetworkProfile",
		Title: "VDC Network Profile",
		Plain: true,
		Scope: func(r *api.Request) (documents.Scope, error) {
			org, v := r.Cloud.Store.VDC(store.Bare(r.Vars["vdc"]))
			if v == nil || !r.Session.Sees(org.ID) {
				return documents.Scope{}, store.Forbidden("VDC_VIEW", r.Vars["vdc"])
			}
			return documents.Scope{OrgID: org.ID, Parent: v.ID, Locks: []string{v.ID}}, nil
		},
		Initial: gateways.Always(map[string]any{
			"primaryEdgeCluster":                   nil,
			"secondaryEdgeCluster":                 nil,
			"servicesEdgeCluster":                  nil,
			"vdcNetworkSegmentProfileTemplateRef":  nil,
			"vappNetworkSegmentProfileTemplateRef": nil,
		}),
		Show: func(_ *api.Request, _ documents.Scope, out map[string]any) {
			if m, ok := out["servicesEdgeCluster"].(map[string]any); ok && store.Text(m, "backingId") != "" {
				out["servicesEdgeCluster"] = map[string]any{
					"backingId":      m["backingId"],
					"edgeClusterRef": map[string]any{"name": gateways.EdgeCluster, "id": m["backingId"]},
				}
			}
		},
	}
}

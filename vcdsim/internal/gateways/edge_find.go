// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// EdgeGateways computes the uplinks of edge gateways and the addresses they use.
type EdgeGateways struct{ cloud *cloud.Cloud }

// EdgesOf returns the edge gateways of a cloud.
func EdgesOf(c *cloud.Cloud) EdgeGateways { return EdgeGateways{cloud: c} }

// EdgeByID returns a gateway with its organization and VDC, or an error if the caller cannot see it.
func EdgeByID(session *store.Session, st *store.Store, id string) (*store.Org, *store.VDC, *store.EdgeGateway, error) {
	org, vdc, g := st.Gateway(store.Bare(id))
	if g == nil || !session.Sees(org.ID) {
		return nil, nil, nil, store.Forbidden("GATEWAY_VIEW", id)
	}
	return org, vdc, g, nil
}

// GatewayScope returns the scope of documents on a gateway. Changing such a document locks the gateway.
func GatewayScope(session *store.Session, st *store.Store, id string) (documents.Scope, error) {
	org, _, g, err := EdgeByID(session, st, id)
	if err != nil {
		return documents.Scope{}, err
	}
	return documents.Scope{OrgID: org.ID, Parent: g.ID, Locks: []string{g.ID}}, nil
}

func (eg EdgeGateways) usesSpaces(u store.Uplink) bool {
	e := eg.cloud.Store.External(u.Network)
	return e != nil && e.UsesSpaces
}

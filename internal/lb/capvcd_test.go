// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestObjectsOfCAPVCDBelongToTheEndpoint(t *testing.T) {
	const (
		withEntity    = "urn:vcloud:entity:vmware:capvcdCluster:11111111-2222-3333-4444-555555555555"
		withoutEntity = "NO_RDE_11111111-2222-3333-4444-555555555555"
		other         = "NO_RDE_99999999-2222-3333-4444-555555555555"
	)
	ofAnother := lb.Marker{Owner: loadbalancer.EndpointOf(other)}.String()
	tests := []struct {
		name        string
		cluster     string
		kind        loadbalancer.Kind
		object      string
		description string
		want        bool
	}{
		{"virtual service", withEntity, lb.KindService, "prod-" + withEntity + "-tcp", "", true},
		{"virtual service without an entity", withoutEntity, lb.KindService, "prod-" + withoutEntity + "-tcp", "", true},
		{"pool", withEntity, lb.KindPool, "prod-" + withEntity + "-tcp", "", true},
		{"rule", withEntity, lb.KindRule, "dnat-prod-" + withEntity + "-tcp", "", true},
		{"port profile", withEntity, lb.KindProfile, "appPort_dnat-prod-" + withEntity + "-tcp", "", true},
		{"allocation", withEntity, lb.KindAddress, "192.0.2.1", "cluster-prod-id-" + withEntity, true},
		{"another cluster's", withoutEntity, lb.KindService, "prod-" + other + "-tcp", "", false},
		{"another cluster's allocation", withoutEntity, lb.KindAddress, "192.0.2.1", "cluster-prod-id-" + other, false},
		{"a Service of the CPI", withoutEntity, lb.KindService, "ingress-vs-web-" + withoutEntity + "-tcp", "", false},
		{"a copy with more in its name", withEntity, lb.KindService, "prod-" + withEntity + "-tcp-2", "", false},
		{"no name of a cluster", withEntity, lb.KindService, "-" + withEntity + "-tcp", "", false},
		{"an IP set", withEntity, lb.KindSet, "prod-" + withEntity + "-tcp", "", false},
		{"marked as another's", withEntity, lb.KindService, "prod-" + withEntity + "-tcp", ofAnother, false},
		{"a cluster that CAPVCD did not make", "dev", lb.KindService, "prod-dev-tcp", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			m, origin := lb.OwnerOf(tt.cluster, tt.kind, tt.object, tt.description)

			g.Expect(origin == lb.OldName && m.Owner.IsEndpoint()).To(Equal(tt.want))
			if tt.want {
				g.Expect(m.Owner).To(Equal(loadbalancer.EndpointOf(tt.cluster)))
			}
		})
	}
}

func TestAServiceWithTheNameOfTheEndpointIsAnotherOwner(t *testing.T) {
	g := NewWithT(t)
	const cluster = "NO_RDE_11111111-2222-3333-4444-555555555555"
	endpoint := loadbalancer.EndpointOf(cluster)
	service := loadbalancer.Owner{Cluster: cluster, Name: endpoint.Name}

	g.Expect(lb.Likely(endpoint, service)).To(BeFalse())
	g.Expect(lb.Likely(service, endpoint)).To(BeFalse())
	g.Expect(lb.Likely(endpoint, endpoint)).To(BeTrue())
}

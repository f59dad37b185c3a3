// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestClusterOf(t *testing.T) {
	const uuid = "0a0b0c0d-1111-2222-3333-444455556666"
	const urn = "urn:vcloud:entity:vmware:capvcdCluster:" + uuid
	tests := []struct {
		name            string
		kind            loadbalancer.Kind
		of, description string
		cluster         string
		by              lb.Writer
	}{
		{
			name:        "our marker says it",
			kind:        lb.KindPool,
			of:          "x",
			description: "cluster-api-provider-vcd cluster=c1 service=shop/web uid=u",
			cluster:     "c1",
			by:          lb.WriterThis,
		},
		{
			name:        "two markers say nothing",
			kind:        lb.KindPool,
			of:          "x",
			description: "cluster-api-provider-vcd cluster=c1 cluster-api-provider-vcd cluster=c2",
		},
		{
			name:        "the marker of a machine is none of a load balancer",
			kind:        lb.KindPool,
			of:          "x",
			description: "cluster-api-provider-vcd cluster=c1 machine=m",
		},
		{name: "a pool of the CPI", kind: lb.KindPool, of: "ingress-pool-web-capvcdCluster:" + uuid + "-http", cluster: urn, by: lb.WriterCPI},
		{name: "a virtual service of the CPI", kind: lb.KindService, of: "ingress-vs-web-NO_RDE_" + uuid + "-http", cluster: "NO_RDE_" + uuid, by: lb.WriterCPI},
		{name: "a rule of the CPI", kind: lb.KindRule, of: "dnat-ingress-vs-web-capvcdCluster:" + uuid + "-http", cluster: urn, by: lb.WriterCPI},
		{name: "an address of the CPI", kind: lb.KindAddress, description: "cluster-capvcdCluster:" + uuid + "-namespace-shop-service-web", cluster: urn, by: lb.WriterCPI},
		{name: "a control plane of CAPVCD", kind: lb.KindService, of: "prod-" + urn + "-tcp", cluster: urn, by: lb.WriterCAPVCD},
		{name: "its rule", kind: lb.KindRule, of: "dnat-prod-NO_RDE_" + uuid + "-tcp", cluster: "NO_RDE_" + uuid, by: lb.WriterCAPVCD},
		{name: "its address", kind: lb.KindAddress, description: "cluster-prod-id-" + urn, cluster: urn, by: lb.WriterCAPVCD},
		{name: "a bare UUID proves nothing", kind: lb.KindPool, of: "ingress-pool-web-" + uuid + "-http"},
		{name: "another name proves nothing", kind: lb.KindPool, of: "backup of capvcdCluster:" + uuid},
		{name: "two ids prove nothing", kind: lb.KindPool, of: "ingress-pool-capvcdCluster:" + uuid + "-capvcdCluster:" + uuid + "-x"},
		{name: "names of other kinds prove nothing", kind: lb.KindSet, of: "nodes-capvcdCluster:" + uuid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			cluster, by := lb.ClusterOf(tt.kind, tt.of, tt.description)

			g.Expect(cluster).To(Equal(tt.cluster))
			g.Expect(by).To(Equal(tt.by))
		})
	}
}

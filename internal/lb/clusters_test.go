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
			"our marker says it",
			lb.KindPool,
			"x",
			"cluster-api-provider-vcd cluster=c1 service=shop/web uid=u",
			"c1",
			lb.WriterThis,
		},
		{
			"two markers say nothing",
			lb.KindPool,
			"x",
			"cluster-api-provider-vcd cluster=c1 cluster-api-provider-vcd cluster=c2",
			"",
			"",
		},
		{
			"the marker of a machine is none of a load balancer",
			lb.KindPool,
			"x",
			"cluster-api-provider-vcd cluster=c1 machine=m",
			"",
			"",
		},
		{"a pool of the CPI", lb.KindPool, "ingress-pool-web-capvcdCluster:" + uuid + "-http", "", urn, lb.WriterCPI},
		{"a virtual service of the CPI", lb.KindService, "ingress-vs-web-NO_RDE_" + uuid + "-http", "", "NO_RDE_" + uuid, lb.WriterCPI},
		{"a rule of the CPI", lb.KindRule, "dnat-ingress-vs-web-capvcdCluster:" + uuid + "-http", "", urn, lb.WriterCPI},
		{"an address of the CPI", lb.KindAddress, "", "cluster-capvcdCluster:" + uuid + "-namespace-shop-service-web", urn, lb.WriterCPI},
		{"a control plane of CAPVCD", lb.KindService, "prod-" + urn + "-tcp", "", urn, lb.WriterCAPVCD},
		{"its rule", lb.KindRule, "dnat-prod-NO_RDE_" + uuid + "-tcp", "", "NO_RDE_" + uuid, lb.WriterCAPVCD},
		{"its address", lb.KindAddress, "", "cluster-prod-id-" + urn, urn, lb.WriterCAPVCD},
		{"a bare UUID proves nothing", lb.KindPool, "ingress-pool-web-" + uuid + "-http", "", "", ""},
		{"another name proves nothing", lb.KindPool, "backup of capvcdCluster:" + uuid, "", "", ""},
		{"two ids prove nothing", lb.KindPool, "ingress-pool-capvcdCluster:" + uuid + "-capvcdCluster:" + uuid + "-x", "", "", ""},
		{"names of other kinds prove nothing", lb.KindSet, "nodes-capvcdCluster:" + uuid, "", "", ""},
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

package main

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// balancer returns what makes load balancers.
func (p *program) balancer(sessions *cpivcd.Sessions) cpi.Balancer {
	b := p.config.LoadBalancer
	if id := p.config.RDE.ID; id != "" {
		p.reporter = cpivcd.NewReporter(cpivcd.ReporterOptions{Session: sessions.Session, ID: id, Version: version.String()})
	}
	return cpivcd.NewBalancer(cpivcd.BalancerOptions{
		Session: sessions.Session, Driver: edge.New(sessions.Session, edge.Options{SourceRanges: b.SourceRanges}),
		ClusterID: p.config.ClusterID, VDCs: p.config.VCD.VDCs, Gateways: gateways(b), Reporter: p.reporter,
	})
}

// gateways returns all gateways of the configuration, the default first.
func gateways(b vcdconfig.LoadBalancer) []cpivcd.Gateway {
	var out []cpivcd.Gateway
	for _, g := range b.AllGateways() {
		gateway := cpivcd.Gateway{Name: g.Name, Edge: g.ID, Network: g.Network, Subnet: g.VIPSubnet, IPSpace: g.IPSpace}
		if g.OneArm != nil {
			gateway.OneArm = &lb.Range{First: g.OneArm.StartIP, Last: g.OneArm.EndIP}
		}
		out = append(out, gateway)
	}
	return out
}

func serviceDefaults(c vcdconfig.Config) service.Defaults {
	b := c.LoadBalancer
	dialect := &cpivcd.Dialect{Certificate: b.CertAlias, EngineGroup: b.EngineGroup, Algorithm: b.Algorithm, Gateways: gateways(b)}
	return dialect.Defaults(c.ClusterID, b.SourceRanges, b.IncludeControlPlane)
}

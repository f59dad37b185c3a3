package main

import (
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// loadBalancers returns what answers for Services, and what keeps the record of it; nothing if Services are left alone.
func (p *program) loadBalancers(c *cloudconfig.CompletedConfig, sessions *cpivcd.Sessions, outages *cpi.Outages) (cloudprovider.LoadBalancer, []cpi.Starter) {
	b := p.config.LoadBalancer
	if b.Disabled() {
		return nil, nil
	}
	if id := p.config.RDE.ID; id != "" {
		p.reporter = cpivcd.NewReporter(cpivcd.ReporterOptions{Session: sessions.Session, ID: id, Version: version.String()})
	}
	watched := cpi.Watch(cpivcd.NewBalancer(cpivcd.BalancerOptions{
		Session: sessions.Session, Driver: edge.New(sessions.Session, edge.Options{SourceRanges: b.SourceRanges}),
		ClusterID: p.config.ClusterID, VDCs: p.config.VCD.VDCs, Gateways: gateways(b), Reporter: p.reporter,
	}), nil)
	balancer, parts := outages.Balancer(watched), []cpi.Starter(nil)
	if p.reporter != nil {
		parts = append(parts, p.reporter)
	}
	nodes, services := c.SharedInformers.Core().V1().Nodes(), c.SharedInformers.Core().V1().Services()
	balancers := cpi.NewLoadBalancers(cpi.LoadBalancerOptions{
		Balancer: balancer, Defaults: serviceDefaults(p.config), Client: c.Client, Recorder: c.EventRecorder, Self: p.flags.self(), Drift: b.DriftInterval.Duration,
		Services: services.Lister(), Nodes: nodes.Lister(), NodeInformer: nodes.Informer(),
		Synced: []cache.InformerSynced{services.Informer().HasSynced, nodes.Informer().HasSynced},
	})
	legacyregistry.Registerer().MustRegister(watched, balancers.Collector())
	return balancers, parts
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

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
	backend := cpivcd.NewBalancer(cpivcd.BalancerOptions{
		Session: sessions.Session, Driver: edge.New(sessions.Session, edge.Options{SourceRanges: b.SourceRanges}),
		ClusterID: p.config.ClusterID, VDCs: p.config.VCD.VDCs, Places: b.AllGateways(),
	})
	watched := cpi.Watch(backend, nil)
	balancer, parts := outages.Balancer(watched), []cpi.Starter(nil)
	if id := p.config.RDE.ID; id != "" {
		p.ledger = cpivcd.NewLedger(cpivcd.LedgerOptions{Session: sessions.Session, ID: id, Version: version.String(), Standing: backend.Standing})
		balancer, parts = cpi.Recorded(balancer, p.ledger), append(parts, p.ledger)
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

func serviceDefaults(c vcdconfig.Config) service.Defaults {
	b := c.LoadBalancer
	d := service.Defaults{
		Cluster: c.ClusterID, Certificate: b.CertAlias, EngineGroup: b.EngineGroup, Algorithm: b.Algorithm,
		SourceRanges: b.SourceRanges, IncludeControlPlane: b.IncludeControlPlane,
	}
	for _, place := range b.AllGateways() {
		g := service.Gateway{Name: place.Name, Subnet: place.VIPSubnet, IPSpace: place.IPSpace}
		if place.OneArm != nil {
			g.OneArm = &lb.Range{First: place.OneArm.StartIP, Last: place.OneArm.EndIP}
		}
		d.Gateways = append(d.Gateways, g)
	}
	return d
}

package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// virtualIPs are the addresses of an endpoint that kube-vip announces from the control planes.
type virtualIPs struct{ *scope }

// kube returns the configuration of kube-vip; the zero value if there is none.
func (v virtualIPs) kube() infrav1.KubeVIPEndpoint {
	if kube := v.vcdCluster.Spec.Endpoint.KubeVIP; kube != nil {
		return *kube
	}
	return infrav1.KubeVIPEndpoint{}
}

// reconcile finds the virtual IPs, checks them, and writes what nodes need to announce them.
func (v virtualIPs) reconcile(ctx context.Context) (phases.Outcome, error) {
	if out, err := v.together(ctx); err != nil || out != phases.Done {
		return out, err
	}
	hosts, out, err := v.hosts(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	if out, err := v.check(ctx, hosts); err != nil || out != phases.Done {
		return out, err
	}
	config, out, err := v.config(ctx, hosts)
	if err != nil || out != phases.Done {
		return out, err
	}
	data, err := kubevip.Render(config)
	if err != nil {
		return phases.Stop(infrav1.VIPInvalidReason, "kube-vip cannot be set up: %v: correct spec.endpoint.kubeVIP",
			err), nil
	}
	if out, err := writeKubeVIP(ctx, v.scope, data); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := writeDaemonSet(ctx, v.scope, config); err != nil || out != phases.Done {
		return out, err
	}
	v.publish(hosts, config.Port)
	return phases.Done, nil
}

// publish stores the endpoint, and the addresses of it that are known.
func (v virtualIPs) publish(hosts []string, port int32) {
	c := v.vcdCluster
	c.Status.VirtualIPs = nil
	if _, err := netip.ParseAddr(hosts[0]); err == nil {
		c.Status.VirtualIPs = hosts
	}
	if !c.Spec.ControlPlaneEndpoint.IsValid() {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: hosts[0], Port: port}
		endpointKnown(v.Recorder, c)
	}
}

// hosts returns the addresses of the endpoint, or its name. The first is the one that is set already, else the one that
// the spec asks for.
func (v virtualIPs) hosts(ctx context.Context) ([]string, phases.Outcome, error) {
	kube, set := v.kube(), v.vcdCluster.Spec.ControlPlaneEndpoint.Host
	switch {
	case len(kube.Addresses) > 0:
		return kube.Addresses, phases.Done, nil
	case len(kube.PoolRefs) > 0:
		return v.claimed(ctx)
	case set != "":
		return []string{set}, phases.Done, nil
	case kube.DNSName != "":
		return []string{kube.DNSName}, phases.Done, nil
	}
	return nil, phases.Stop(infrav1.EndpointMissingReason,
		"The endpoint is not specified: set addresses, poolRefs or dnsName in spec.endpoint.kubeVIP"), nil
}

// config is what differs between clusters.
func (v virtualIPs) config(ctx context.Context, hosts []string) (kubevip.Config, phases.Outcome, error) {
	kube := v.kube()
	bgp, out, err := v.bgp(ctx)
	return kubevip.Config{
		Mode: kubevip.Mode(kube.Mode), Addresses: hosts, Interface: kube.Interface, Image: kube.Image, BGP: bgp,
		Port:       cmp.Or(v.vcdCluster.Spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort),
		DynamicDNS: kube.DNSName == hosts[0],
	}, out, err
}

// addressesOf returns those of some hosts that are addresses.
func addressesOf(hosts []string) []netip.Addr {
	var all []netip.Addr
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			all = append(all, addr)
		}
	}
	return all
}

// intended returns the virtual IPs of a cluster, as far as its object shows them.
func intended(c *infrav1.VCDCluster) []netip.Addr {
	if c.Spec.Endpoint.Type != infrav1.EndpointKubeVIP && c.Spec.Endpoint.Type != "" {
		return nil
	}
	all := slices.Concat(addressesOf([]string{c.Spec.ControlPlaneEndpoint.Host}), addressesOf(c.Status.VirtualIPs))
	if kube := c.Spec.Endpoint.KubeVIP; kube != nil {
		all = append(all, addressesOf(kube.Addresses)...)
	}
	return all
}

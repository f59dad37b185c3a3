// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// virtualIPs are the addresses of an endpoint that kube-vip announces from the control planes.
type virtualIPs struct{ scope *scope }

// reconcile finds the virtual IPs, checks them, and writes what nodes need to announce them.
func (v virtualIPs) reconcile(ctx context.Context) (phases.Outcome, error) {
	config, out, err := v.checked(ctx)
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
	v.publish(config.Addresses, config.Port)
	return v.scope.unclaimed, nil
}

// checked returns the configuration of kube-vip for hosts that can be the endpoint.
func (v virtualIPs) checked(ctx context.Context) (kubevip.Config, phases.Outcome, error) {
	s := v.scope
	if out, err := virtualip.Apart(ctx, s.reconciler.Client, s.vcdCluster, s.cluster.Name, s.network.Ref); err != nil ||
		out != phases.Done {
		return kubevip.Config{}, out, err
	}
	hosts, out, err := v.hosts(ctx)
	if err != nil || out != phases.Done {
		return kubevip.Config{}, out, err
	}
	if out, err := v.check(ctx, hosts); err != nil || out != phases.Done {
		return kubevip.Config{}, out, err
	}
	return v.config(ctx, hosts)
}

// check reports why hosts cannot be the endpoint.
func (v virtualIPs) check(ctx context.Context, hosts []string) (phases.Outcome, error) {
	s := v.scope
	c := s.vcdCluster
	addresses := virtualip.Addresses(hosts)
	if len(addresses) == 0 && !established(c) { // Cluster API reports what does not resolve later.
		resolved, out := virtualip.Resolve(ctx, s.reconciler.Lookup, hosts[0])
		if out != phases.Done {
			return out, nil
		}
		addresses = resolved
	}
	if out := virtualip.Fit(c, s.network, addresses); out != phases.Done {
		s.session.ForgetNetwork(s.vdc, s.network.Ref) // The address may be taken out of its pool.
		s.reconciler.homes.Drop(c.UID)
		return out, nil
	}
	if established(c) {
		return phases.Done, nil // Its own nodes may have the addresses.
	}
	out, err := virtualip.TakenByCluster(ctx, s.reconciler.Client, c, s.network, addresses)
	if err != nil || out != phases.Done {
		return out, err
	}
	return virtualip.TakenByHost(ctx, s.session, c, s.network, addresses)
}

// publish stores the endpoint, and the addresses of it that are known.
func (v virtualIPs) publish(hosts []string, port int32) {
	c := v.scope.vcdCluster
	c.Status.VirtualIPs = nil
	if _, err := netip.ParseAddr(hosts[0]); err == nil {
		c.Status.VirtualIPs = hosts
	}
	if c.Spec.InfraID != "" {
		recordVirtualIPs(c)
	}
	if !c.Spec.ControlPlaneEndpoint.IsValid() {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: hosts[0], Port: port}
		endpointKnown(v.scope.reconciler.Recorder, c)
	}
}

// hosts returns the addresses of the endpoint, or its name. The first is the one that is set already, else the one that
// the spec asks for.
func (v virtualIPs) hosts(ctx context.Context) ([]string, phases.Outcome, error) {
	kube := virtualip.KubeVIP(v.scope.vcdCluster)
	set := v.scope.vcdCluster.Spec.ControlPlaneEndpoint.Host
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
	kube := virtualip.KubeVIP(v.scope.vcdCluster)
	bgp, out, err := v.bgp(ctx)
	return kubevip.Config{
		Mode:       kubevip.Mode(kube.Mode),
		Addresses:  hosts,
		Interface:  kube.Interface,
		Image:      kube.Image,
		BGP:        bgp,
		Port:       cmp.Or(v.scope.vcdCluster.Spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort),
		DynamicDNS: kube.DNSName == hosts[0],
	}, out, err
}

// bgp returns how the addresses are announced to routers; nil: by ARP.
func (v virtualIPs) bgp(ctx context.Context) (*kubevip.BGP, phases.Outcome, error) {
	spec := virtualip.KubeVIP(v.scope.vcdCluster).BGP
	if spec == nil {
		return nil, phases.Done, nil
	}
	bgp := &kubevip.BGP{
		AS:              uint32(spec.ASNumber), //nolint:gosec // at most 32 bits, by the schema
		RouterInterface: spec.RouterInterface,
		SourceInterface: spec.SourceInterface,
	}
	for i := range spec.Peers {
		peer, out, err := v.peer(ctx, &spec.Peers[i])
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		bgp.Peers = append(bgp.Peers, peer)
	}
	return bgp, phases.Done, nil
}

// peer returns a router, with its password from the Secret. An empty value is none.
func (v virtualIPs) peer(ctx context.Context, spec *infrav1.KubeVIPPeer) (kubevip.Peer, phases.Outcome, error) {
	address, _ := netip.ParseAddr(spec.Address) // What is none is refused with the manifest.
	peer := kubevip.Peer{
		Address:  address,
		AS:       uint32(spec.ASNumber), //nolint:gosec // at most 32 bits, by the schema
		MultiHop: ptr.Deref(spec.MultiHop, false),
	}
	ref := spec.PasswordSecretRef
	if ref == nil {
		return peer, phases.Done, nil
	}
	secret := &corev1.Secret{}
	err := v.scope.reconciler.Live.Get(ctx, client.ObjectKey{Namespace: v.scope.vcdCluster.Namespace, Name: ref.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return peer, phases.Done, fmt.Errorf("getting Secret %s: %w", ref.Name, err)
	}
	key := cmp.Or(ref.Key, infrav1.SecretPassword)
	password, found := secret.Data[key]
	peer.Password = string(password)
	if apierrors.IsNotFound(err) || !found {
		return peer, phases.Fail(session.RemedyPoll, infrav1.PeerPasswordMissingReason, "The password of BGP peer %s "+
			"is "+
			"not in key %s of Secret %s: create it, or correct spec.endpoint.kubeVIP.bgp.peers", spec.Address, key,
			ref.Name), nil
	}
	return peer, phases.Done, nil
}

// namesPassword reports whether a cluster has the password of a BGP peer in a Secret.
func namesPassword(c *infrav1.VCDCluster, secret string) bool {
	kube := c.Spec.Endpoint.KubeVIP
	if kube == nil || kube.BGP == nil {
		return false
	}
	for _, peer := range kube.BGP.Peers {
		if peer.PasswordSecretRef != nil && peer.PasswordSecretRef.Name == secret {
			return true
		}
	}
	return false
}

const (
	// kubeVIPSuffix follows the name of the Cluster in the name of the Secret with kube-vip's manifest.
	kubeVIPSuffix = "-kube-vip"
	// daemonSetSuffix follows it in the names of the Secret with kube-vip's DaemonSet and of its ClusterResourceSet.
	daemonSetSuffix = kubeVIPSuffix + "-daemonset"
)

// writeKubeVIP writes the Secret with kube-vip's manifest, which templates of control planes name.
func writeKubeVIP(ctx context.Context, s *scope, data map[string][]byte) (phases.Outcome, error) {
	secret := nodeSecret(s, kubeVIPSuffix, "kube-vip's manifest")
	secret.Creating = func(ctx context.Context) error {
		spoofGuard, err := s.session.SpoofGuard(ctx, s.network.Ref)
		if err == nil && spoofGuard != "" {
			vipMayBeFiltered(s.reconciler.Recorder, s.vcdCluster, s.network.Name, spoofGuard)
		}
		return err
	}
	return secret.Write(ctx, data)
}

// writeDaemonSet has Cluster API apply kube-vip's DaemonSet, if that is the mode.
func writeDaemonSet(ctx context.Context, s *scope, config kubevip.Config) (phases.Outcome, error) {
	if config.Mode != kubevip.DaemonSet {
		return phases.Done, nil
	}
	objects, err := kubevip.Objects(config)
	if err != nil {
		return phases.Done, fmt.Errorf("rendering kube-vip's DaemonSet: %w", err)
	}
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return phases.Done, err
	}
	secret := nodeSecret(s, daemonSetSuffix, "kube-vip's DaemonSet")
	secret.Type = addonsv1.ClusterResourceSetSecretType
	if out, err := secret.Write(ctx, map[string][]byte{resourceset.ManifestsKey: manifests}); err != nil ||
		out != phases.Done {
		return out, err
	}
	set := resourceset.Set{
		Client:      s.reconciler.Client,
		Owner:       s.vcdCluster,
		Cluster:     s.cluster,
		Label:       infrav1.KubeVIPLabel,
		WatchFilter: s.reconciler.WatchFilterValue,
	}
	out, err := set.Create(ctx, daemonSetSuffix, addonsv1.ClusterResourceSetStrategyReconcile)
	if err != nil || out != phases.Done {
		return out, err
	}
	return phases.Done, set.Select(ctx, true)
}

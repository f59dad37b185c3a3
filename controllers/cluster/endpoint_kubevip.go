// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileKubeVIP finds and checks the virtual IPs that kube-vip announces from the control planes, and writes the
// files with which nodes announce them.
func reconcileKubeVIP(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	search := newHostSearch(s)
	if out, err := search.run(ctx); err != nil || out != phases.Done {
		return out, err
	}
	found := search.found
	config, out, err := kubeVIPConfig(ctx, s.reconciler.Secrets, c, found.names)
	if err != nil || out != phases.Done {
		return out, err
	}
	data, err := kubevip.Render(config)
	if err != nil {
		return phases.Stop(infrav1.VIPInvalidReason, "Cannot configure kube-vip: %v: correct spec.controlPlaneLoadBalancer.kubeVIP",
			err), nil
	}
	secret := s.nodeSecret(kubeVIPSuffix, "kube-vip's manifest")
	secret.Creating = func(ctx context.Context) error {
		return warnOfSpoofGuard(ctx, s.session, s.reconciler.Recorder, c, s.home.network.Ref)
	}
	if out, err := secret.Write(ctx, data); err != nil || out != phases.Done {
		return out, err
	}
	if config.Mode == kubevip.DaemonSet {
		manifests := s.nodeSecret(daemonSetSuffix, "kube-vip's DaemonSet")
		set := resourceset.Set{
			Client:      s.reconciler.Client,
			Owner:       c,
			Cluster:     s.cluster,
			Label:       infrav1.KubeVIPLabel,
			WatchFilter: s.reconciler.WatchFilterValue,
		}
		if out, err := writeDaemonSet(ctx, config, manifests, set); err != nil || out != phases.Done {
			return out, err
		}
	}
	publishVirtualIPs(s.reconciler.Recorder, c, config)
	return found.warning, nil
}

// A hostSearch finds and checks the hosts of the endpoint.
type hostSearch struct {
	reader        client.Reader
	session       *session.Session
	vcdCluster    *infrav1.VCDCluster
	clusterName   string
	network       vcd.Network
	claims        ipam.Claims
	lookup        virtualip.Lookup
	now           time.Time
	forgetNetwork func()

	found     hosts        // set by find
	addresses []netip.Addr // of the hosts; set by find or resolve
}

func newHostSearch(s *scope) *hostSearch {
	return &hostSearch{
		reader:        s.reconciler.Client,
		session:       s.session,
		vcdCluster:    s.vcdCluster,
		clusterName:   s.cluster.Name,
		network:       s.home.network,
		claims:        s.claims(),
		lookup:        s.reconciler.Lookup,
		now:           s.now(),
		forgetNetwork: s.forgetNetwork,
	}
}

// run finds and checks the hosts. For an established cluster, it neither resolves them nor checks whether they are in
// use, because its own nodes may have the addresses.
func (h *hostSearch) run(ctx context.Context) (phases.Result, error) {
	if ownership.Established(h.vcdCluster) {
		return phases.Sequence(ctx, h.checkNetwork, h.find, h.fit)
	}
	return phases.Sequence(ctx, h.checkNetwork, h.find, h.resolve, h.fit, h.checkServices, h.checkClusters, h.checkHosts)
}

// checkNetwork checks that the nodes in all zones can announce the addresses.
func (h *hostSearch) checkNetwork(ctx context.Context) (phases.Result, error) {
	return virtualip.Apart(ctx, h.reader, h.vcdCluster, h.clusterName, h.network.Ref)
}

// find finds the hosts.
func (h *hostSearch) find(ctx context.Context) (out phases.Result, err error) {
	h.found, out, err = findHosts(ctx, h.claims, h.vcdCluster, h.now)
	h.addresses = checks.Addresses(h.found.names)
	return out, err
}

// resolve resolves a DNS name. It runs only before the cluster is established; later, Cluster API reports failures.
func (h *hostSearch) resolve(ctx context.Context) (out phases.Result, _ error) {
	if len(h.addresses) == 0 {
		h.addresses, out = virtualip.Resolve(ctx, h.lookup, h.found.names[0])
	}
	return out, nil
}

// fit checks that the addresses fit the network.
func (h *hostSearch) fit(context.Context) (phases.Result, error) {
	out := virtualip.Fit(h.vcdCluster, h.network, h.addresses)
	if out != phases.Done {
		h.forgetNetwork() // The address may be removed from the pool of the network.
	}
	return out, nil
}

// checkServices checks that kube-vip does not announce the addresses for Services of the cluster, too.
func (h *hostSearch) checkServices(context.Context) (phases.Result, error) {
	return virtualip.OfServices(h.vcdCluster, h.addresses), nil
}

// checkClusters checks that no other cluster uses the addresses.
func (h *hostSearch) checkClusters(ctx context.Context) (phases.Result, error) {
	return virtualip.TakenByCluster(ctx, h.reader, h.vcdCluster, h.network, h.addresses)
}

// checkHosts checks that no VM uses the addresses.
func (h *hostSearch) checkHosts(ctx context.Context) (phases.Result, error) {
	return virtualip.TakenByHost(ctx, h.session, h.vcdCluster, h.network, h.addresses)
}

// findHosts returns the addresses or the DNS name of the endpoint. The host of the endpoint comes first.
func findHosts(ctx context.Context, claims ipam.Claims, c *infrav1.VCDCluster, now time.Time) (hosts, phases.Result, error) {
	kube := checks.KubeVIP(c)
	set := c.Spec.ControlPlaneEndpoint.Host
	switch {
	case len(kube.PoolRefs) > 0:
		return claimHosts(ctx, claims, c, now)
	case set != "" && kube.SecondaryAddress != "":
		return hosts{names: []string{set, kube.SecondaryAddress}}, phases.Done, nil
	case set != "":
		return hosts{names: []string{set}}, phases.Done, nil
	}
	return hosts{}, phases.Stop(infrav1.EndpointMissingReason, "No endpoint is specified: set spec.controlPlaneEndpoint.host, or poolRefs in spec.controlPlaneLoadBalancer.kubeVIP"), nil
}

// kubeVIPConfig returns the configuration of kube-vip for a cluster.
func kubeVIPConfig(ctx context.Context, live client.Reader, c *infrav1.VCDCluster, hosts []string) (kubevip.Config, phases.Result, error) {
	kube := checks.KubeVIP(c)
	bgp, out, err := bgpOf(ctx, live, c.Namespace, kube.BGP)
	return kubevip.Config{
		Mode:       kubevip.Mode(kube.Mode),
		Addresses:  hosts,
		Interface:  kube.Interface,
		Image:      kube.Image,
		BGP:        bgp,
		Port:       cmp.Or(c.Spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort),
		DynamicDNS: kube.AddressSource == infrav1.VIPSourceDHCP,
	}, out, err
}

// bgpOf returns the BGP settings for announcing addresses to routers; nil: addresses are announced by ARP.
func bgpOf(ctx context.Context, live client.Reader, namespace string, spec *infrav1.KubeVIPBGP) (*kubevip.BGP, phases.Result, error) {
	if spec == nil {
		return nil, phases.Done, nil
	}
	bgp := &kubevip.BGP{
		AS:              uint32(spec.ASNumber), //nolint:gosec // at most 32 bits, by the schema
		RouterInterface: spec.RouterInterface,
		SourceInterface: spec.SourceInterface,
	}
	for i := range spec.Peers {
		peer, out, err := peerOf(ctx, live, namespace, &spec.Peers[i])
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		bgp.Peers = append(bgp.Peers, peer)
	}
	return bgp, phases.Done, nil
}

// peerOf returns a router, with its password from the Secret. An empty password counts as none.
func peerOf(ctx context.Context, live client.Reader, namespace string, spec *infrav1.KubeVIPPeer) (kubevip.Peer, phases.Result, error) {
	address, _ := netip.ParseAddr(spec.Address) // rendering the manifest rejects an invalid address
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
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return peer, phases.Done, fmt.Errorf("getting Secret %s: %w", ref.Name, err)
	}
	key := cmp.Or(ref.Key, infrav1.SecretPassword)
	password, found := secret.Data[key]
	peer.Password = string(password)
	if apierrors.IsNotFound(err) || !found {
		return peer, phases.Fail(intervals.Remedy, infrav1.PeerPasswordMissingReason, "The password of BGP peer %s is not in key %s of Secret %s: create it, or correct spec.controlPlaneLoadBalancer.kubeVIP.bgp.peers", spec.Address, key,
			ref.Name), nil
	}
	return peer, phases.Done, nil
}

const (
	// kubeVIPSuffix is appended to the name of the Cluster in the name of the Secret with kube-vip's manifest.
	// Templates of control planes refer to this name.
	kubeVIPSuffix = "-kube-vip"
	// daemonSetSuffix is appended in the names of the Secret with kube-vip's DaemonSet, and of its ClusterResourceSet.
	daemonSetSuffix = kubeVIPSuffix + "-daemonset"
)

// warnOfSpoofGuard records a warning event if the network of a cluster has a SpoofGuard profile.
func warnOfSpoofGuard(ctx context.Context, in *session.Session, r events.EventRecorder, c *infrav1.VCDCluster, network vcd.Ref) error {
	profile, err := in.SpoofGuard(ctx, network)
	if err == nil && profile != "" {
		vipMayBeFiltered(r, c, network.Name, profile)
	}
	return err
}

// writeDaemonSet makes Cluster API apply kube-vip's DaemonSet, which it writes to the Secret of the set.
func writeDaemonSet(ctx context.Context, config kubevip.Config, secret nodesecret.Secret, set resourceset.Set) (phases.Result, error) {
	objects, err := kubevip.Objects(config)
	if err != nil {
		return phases.Done, fmt.Errorf("rendering kube-vip's DaemonSet: %w", err)
	}
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return phases.Done, err
	}
	secret.Type = addonsv1.ClusterResourceSetSecretType
	if out, err := secret.Write(ctx, map[string][]byte{resourceset.ManifestsKey: manifests}); err != nil ||
		out != phases.Done {
		return out, err
	}
	out, err := set.Create(ctx, daemonSetSuffix, addonsv1.ClusterResourceSetStrategyReconcile)
	if err != nil || out != phases.Done {
		return out, err
	}
	return phases.Done, set.Select(ctx, true)
}

// publishVirtualIPs stores the endpoint, and its addresses if they are known.
func publishVirtualIPs(r events.EventRecorder, c *infrav1.VCDCluster, config kubevip.Config) {
	hosts := config.Addresses
	c.Status.VirtualIPs = nil
	if _, err := netip.ParseAddr(hosts[0]); err == nil {
		c.Status.VirtualIPs = hosts
	}
	if c.Spec.InfraID != "" {
		recordVirtualIPs(c)
	}
	if !c.Spec.ControlPlaneEndpoint.IsValid() {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: hosts[0], Port: config.Port}
		endpointSet(r, c)
	}
}

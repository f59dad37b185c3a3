package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileEndpoint makes sure that the control-plane endpoint is known and prepared.
func reconcileEndpoint(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch s.vcdCluster.Spec.Endpoint.Type {
	case infrav1.EndpointKubeVIP, "":
		return s.reconcileKubeVIP(ctx)
	case infrav1.EndpointExternal:
		return s.reconcileExternal(), nil
	case infrav1.EndpointEdgeGateway:
	}
	return phases.Stop(infrav1.NotSupportedReason,
		"Endpoints of type %s are not supported yet: use KubeVIP or External in spec.endpoint.type",
		s.vcdCluster.Spec.Endpoint.Type), nil
}

// reconcileExternal waits for an endpoint that is provided externally.
func (s *scope) reconcileExternal() phases.Outcome {
	if given := &s.vcdCluster.Spec.ControlPlaneEndpoint; given.Host != "" {
		given.Port = cmp.Or(given.Port, kubevip.DefaultPort)
	}
	if s.vcdCluster.Spec.ControlPlaneEndpoint.IsValid() || s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return phases.Done
	}
	return phases.Wait(0, infrav1.WaitingForEndpointReason,
		"Waiting for spec.controlPlaneEndpoint of the VCDCluster or of the Cluster")
}

// reconcileKubeVIP finds the virtual IP, checks it, and writes what nodes need to announce it.
func (s *scope) reconcileKubeVIP(ctx context.Context) (phases.Outcome, error) {
	host, out, err := s.endpointHost(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if out := vipProblem(addr, s.network, s.vipRemedy()); out != phases.Done {
			s.session.ForgetNetwork(s.vdc, s.network.Ref) // The address may be taken out of its pool.
			s.homes.Drop(s.vcdCluster.UID)
			return out, nil
		}
	}
	spec := &s.vcdCluster.Spec
	endpoint := clusterv1.APIEndpoint{
		Host: host,
		Port: cmp.Or(spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort),
	}
	data, err := kubevip.Render(kubeVIPConfig(spec.Endpoint, endpoint))
	if err != nil {
		return phases.Stop(infrav1.VIPInvalidReason, "kube-vip cannot be set up: %v: correct spec.endpoint.kubeVIP",
			err), nil
	}
	if out, err := writeKubeVIP(ctx, s, data); err != nil || out != phases.Done {
		return out, err
	}
	if !spec.ControlPlaneEndpoint.IsValid() {
		spec.ControlPlaneEndpoint = endpoint
		endpointKnown(s.Recorder, s.vcdCluster)
	}
	return phases.Done, nil
}

// endpointHost returns the host of the endpoint: the one that is set already, else the one that the spec asks for.
func (s *scope) endpointHost(ctx context.Context) (string, phases.Outcome, error) {
	spec := s.vcdCluster.Spec
	kube := spec.Endpoint.KubeVIP
	switch {
	case spec.ControlPlaneEndpoint.Host != "":
		return spec.ControlPlaneEndpoint.Host, phases.Done, nil
	case kube == nil:
	case len(kube.Addresses) > 0:
		return kube.Addresses[0], phases.Done, nil
	case len(kube.PoolRefs) > 0:
		return s.claimAddress(ctx, kube.PoolRefs[0])
	case kube.DNSName != "":
		return kube.DNSName, phases.Done, nil
	}
	return "", phases.Stop(infrav1.EndpointMissingReason,
		"The endpoint is not specified: set addresses, poolRefs or dnsName in spec.endpoint.kubeVIP"), nil
}

// claimAddress claims the virtual IP from a pool.
func (s *scope) claimAddress(ctx context.Context, pool infrav1.IPPoolReference) (string, phases.Outcome, error) {
	claim := &ipamv1.IPAddressClaim{}
	key := claimKey(s.vcdCluster, s.cluster.Name)
	err := s.Client.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		return "", phases.Wait(0, infrav1.AddressClaimedReason, "Waiting for an address from %s %s", pool.Kind,
			pool.Name), s.createClaim(ctx, key, pool)
	case err != nil:
		return "", phases.Done, fmt.Errorf("getting IPAddressClaim %s: %w", key, err)
	case !claim.DeletionTimestamp.IsZero():
		return "", phases.Wait(session.TaskPoll, infrav1.AddressClaimedReason,
			"Waiting for an earlier IPAddressClaim %s to be deleted", key.Name), nil
	case !controllerutil.HasControllerReference(claim) || !metav1.IsControlledBy(claim, s.vcdCluster):
		return "", phases.Fail(session.RemedyPoll, infrav1.NameConflictReason, "IPAddressClaim %s is not this "+
			"VCDCluster's: delete it, or give the address in spec.endpoint.kubeVIP.addresses", key.Name), nil
	case claim.Status.AddressRef.Name == "":
		return "", phases.Wait(0, infrav1.AddressClaimedReason,
			"Waiting for an address from %s %s: see IPAddressClaim %s", pool.Kind, pool.Name, key.Name), nil
	}
	address := &ipamv1.IPAddress{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: claim.Status.AddressRef.Name},
		address); err != nil {
		if apierrors.IsNotFound(err) {
			return "", phases.Wait(session.TaskPoll, infrav1.AddressClaimedReason, "Waiting for IPAddress %s",
				claim.Status.AddressRef.Name), nil
		}
		return "", phases.Done, fmt.Errorf("getting IPAddress %s: %w", claim.Status.AddressRef.Name, err)
	}
	return address.Spec.Address, phases.Done, nil
}

func claimKey(c *infrav1.VCDCluster, clusterName string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: clusterName + "-vip"}
}

func (s *scope) createClaim(ctx context.Context, key client.ObjectKey, pool infrav1.IPPoolReference) error {
	claim := &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: session.OfCluster(s.cluster.Name),
		},
		Spec: ipamv1.IPAddressClaimSpec{
			ClusterName: s.cluster.Name,
			PoolRef:     ipamv1.IPPoolReference{Name: pool.Name, Kind: pool.Kind, APIGroup: pool.APIGroup},
		},
	}
	if err := controllerutil.SetControllerReference(s.vcdCluster, claim, s.Client.Scheme()); err != nil {
		return fmt.Errorf("owning IPAddressClaim %s: %w", key, err)
	}
	if err := s.Client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating IPAddressClaim %s: %w", key, err)
	}
	return nil
}

// vipRemedy returns how to get another virtual IP.
func (s *scope) vipRemedy() string {
	spec := s.vcdCluster.Spec
	switch kube := spec.Endpoint.KubeVIP; {
	case spec.ControlPlaneEndpoint.Host != "":
		return "choose another in spec.controlPlaneEndpoint"
	case kube != nil && len(kube.PoolRefs) > 0:
		return "take it out of the pool of spec.endpoint.kubeVIP.poolRefs and delete IPAddressClaim " +
			claimKey(s.vcdCluster, s.cluster.Name).Name
	}
	return "choose another in spec.endpoint.kubeVIP.addresses"
}

// vipProblem reports why addr cannot be a virtual IP in network: it must be in it, and in no pool.
func vipProblem(addr netip.Addr, network vcd.Network, remedy string) phases.Outcome {
	for _, subnet := range network.Subnets {
		if !subnet.Prefix.Contains(addr) {
			continue
		}
		if addr == subnet.Gateway || addr == subnet.Prefix.Masked().Addr() {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInvalidReason,
				"%s is the address of the gateway or of the network %s itself: %s", addr, network.Name, remedy)
		}
		if r, in := rangeOf(addr, subnet.StaticPool); in {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInStaticPoolReason,
				"%s is in the static pool %s-%s of network %s, from which VCD gives addresses to VMs: %s, or take it "+
					"out of the static pool", addr, r.From, r.To, network.Name, remedy)
		}
		if r, in := rangeOf(addr, subnet.DHCPPool); in {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInDHCPRangeReason,
				"%s is in the DHCP range %s-%s of network %s, from which addresses are leased: %s, or take it out of "+
					"the DHCP range", addr, r.From, r.To, network.Name, remedy)
		}
		return phases.Done
	}
	return phases.Fail(session.RemedyPoll, infrav1.VIPOutsideNetworkReason, "%s is in no subnet of network %s: %s",
		addr, network.Name, remedy)
}

func rangeOf(addr netip.Addr, ranges []vcd.AddressRange) (vcd.AddressRange, bool) {
	for _, r := range ranges {
		if r.Contains(addr) {
			return r, true
		}
	}
	return vcd.AddressRange{}, false
}

// kubeVIPSuffix follows the name of the Cluster in the name of the Secret with kube-vip's manifest.
const kubeVIPSuffix = "-kube-vip"

// kubeVIPConfig is what differs between clusters.
func kubeVIPConfig(spec infrav1.EndpointSpec, endpoint clusterv1.APIEndpoint) kubevip.Config {
	config := kubevip.Config{Addresses: []string{endpoint.Host}, Port: endpoint.Port}
	if kube := spec.KubeVIP; kube != nil {
		config.Interface, config.Image, config.DynamicDNS = kube.Interface, kube.Image, kube.DNSName == endpoint.Host
	}
	return config
}

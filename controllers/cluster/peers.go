package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// bgp returns how the addresses are announced to routers; nil: by ARP.
func (v virtualIPs) bgp(ctx context.Context) (*kubevip.BGP, phases.Outcome, error) {
	spec := v.kube().BGP
	if spec == nil {
		return nil, phases.Done, nil
	}
	bgp := &kubevip.BGP{
		AS:              uint32(spec.ASNumber), //nolint:gosec // at most 32 bits, by the schema
		RouterInterface: spec.RouterInterface, SourceInterface: spec.SourceInterface,
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
		Address: address, AS: uint32(spec.ASNumber), //nolint:gosec // at most 32 bits, by the schema
		MultiHop: ptr.Deref(spec.MultiHop, false),
	}
	ref := spec.PasswordSecretRef
	if ref == nil {
		return peer, phases.Done, nil
	}
	secret := &corev1.Secret{}
	err := v.Live.Get(ctx, client.ObjectKey{Namespace: v.vcdCluster.Namespace, Name: ref.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return peer, phases.Done, fmt.Errorf("getting Secret %s: %w", ref.Name, err)
	}
	key := cmp.Or(ref.Key, infrav1.SecretPassword)
	password, found := secret.Data[key]
	peer.Password = string(password)
	if apierrors.IsNotFound(err) || !found {
		return peer, phases.Fail(session.RemedyPoll, infrav1.PeerPasswordMissingReason, "The password of BGP peer %s is "+
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

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A vipPools are the pools of one virtual IP, in order.
type vipPools struct {
	refs  []infrav1.IPPoolReference
	field string // that lists them
	claim string // name of the claim of the first; those of the others have a number behind it
}

// at returns the claim of the pool with an index.
func (p vipPools) at(i int) ipam.Claim {
	claim := ipam.Claim{Name: p.claim, Pool: p.refs[i], Field: fmt.Sprintf("%s[%d]", p.field, i)}
	if i > 0 {
		claim.Name += "-" + strconv.Itoa(i+1)
	}
	return claim
}

// claims returns the addresses that a VCDCluster claims. Its id is its UID until it is complete.
func (s *scope) claims(cluster string) ipam.Claims {
	c := s.vcdCluster
	return ipam.Claims{
		Client:  s.reconciler.Client,
		Live:    s.reconciler.Live,
		Owner:   c,
		ID:      cmp.Or(c.Spec.InfraID, string(c.UID)),
		Cluster: cluster,
	}
}

// primary returns the pools of the endpoint's host.
func primary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.PoolRefs, "spec.endpoint.kubeVIP.poolRefs", cluster + "-vip"}
}

// secondary returns the pools of the virtual IP of the other family.
func secondary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.SecondaryPoolRefs, "spec.endpoint.kubeVIP.secondaryPoolRefs", cluster + "-vip-second"}
}

// claimed returns the virtual IPs from pools. One that was stored stays, whatever happens to its claim: its IPAddress
// is held.
func (v virtualIPs) claimed(ctx context.Context) ([]string, phases.Outcome, error) {
	hosts := []string{v.scope.vcdCluster.Spec.ControlPlaneEndpoint.Host}
	pools := primary(virtualip.KubeVIP(v.scope.vcdCluster), v.scope.cluster.Name)
	if hosts[0] == "" {
		addr, out, err := v.claim(ctx, pools)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		hosts[0] = addr.String()
	} else if err := v.keep(ctx, pools, hosts[0]); err != nil {
		return nil, phases.Done, err
	}
	if len(virtualip.KubeVIP(v.scope.vcdCluster).SecondaryPoolRefs) == 0 {
		return hosts, phases.Done, nil
	}
	pools = secondary(virtualip.KubeVIP(v.scope.vcdCluster), v.scope.cluster.Name)
	if stored := v.stored(); len(stored) > 1 && established(v.scope.vcdCluster) {
		return append(hosts, stored[1]), phases.Done, v.keep(ctx, pools, stored[1])
	}
	addr, out, err := v.claim(ctx, pools)
	return append(hosts, addr.String()), out, err
}

// stored returns the virtual IPs that were published. A move and a restore drop the status, but not the annotation.
func (v virtualIPs) stored() []string {
	if stored := v.scope.vcdCluster.Status.VirtualIPs; len(stored) > 0 {
		return stored
	}
	return placement.EndpointAddresses(v.scope.vcdCluster)
}

// claim returns the address from the first of some pools that gives one. An address that was given stays. Pools that
// gave none keep their claims until another one has.
func (v virtualIPs) claim(ctx context.Context, pools vipPools) (netip.Addr, phases.Outcome, error) {
	order := make([]int, len(pools.refs))
	for i := range order {
		order[i] = i
	}
	if given := slices.IndexFunc(order, func(i int) bool { return v.wasGiven(ctx, pools.at(i).Name) }); given >= 0 {
		order = []int{given}
	}
	var problem phases.Outcome
	claims := v.scope.claims(v.scope.cluster.Name)
	for _, i := range order {
		claim := pools.at(i)
		claim.InUse = established(v.scope.vcdCluster)
		address, out, err := claims.Ensure(ctx, claim)
		if err == nil && out == phases.Done {
			if err = claims.Hold(ctx, address); err == nil {
				err = v.dropOthers(ctx, pools, i)
			}
		}
		if err != nil || out == phases.Done {
			return address.Addr, out, err
		}
		problem = cmp.Or(problem, out)
		if !v.passOver(ctx, claim.Name, out) {
			break
		}
	}
	return netip.Addr{}, problem, nil
}

// keep makes the claim of a virtual IP that is known the cluster's again after a restore, and holds its address. It notes
// a warning if no pool has a claim of it any more.
func (v virtualIPs) keep(ctx context.Context, pools vipPools, vip string) error {
	claims := v.scope.claims(v.scope.cluster.Name)
	var all []ipam.Claim
	found := false
	for i := range pools.refs {
		claim := pools.at(i)
		all = append(all, claim)
		key := client.ObjectKey{Namespace: v.scope.vcdCluster.Namespace, Name: claim.Name}
		err := v.scope.reconciler.Client.Get(ctx, key, &ipamv1.IPAddressClaim{})
		if apierrors.IsNotFound(err) {
			continue // Without it, the address may still be held.
		}
		if err != nil {
			return fmt.Errorf("getting IPAddressClaim %s: %w", claim.Name, err)
		}
		found = true
		claim.InUse = true
		address, out, err := claims.Ensure(ctx, claim)
		if err == nil && out == phases.Done {
			err = claims.Hold(ctx, address)
		}
		if err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	warning, err := claims.Unclaimed(ctx, vip, all)
	v.scope.unclaimed = cmp.Or(v.scope.unclaimed, warning)
	return err
}

// wasGiven reports whether a claim of the cluster has an address.
func (v virtualIPs) wasGiven(ctx context.Context, name string) bool {
	claim := &ipamv1.IPAddressClaim{}
	err := v.scope.reconciler.Client.Get(ctx, client.ObjectKey{Namespace: v.scope.vcdCluster.Namespace, Name: name}, claim)
	return err == nil && metav1.IsControlledBy(claim, v.scope.vcdCluster) && claim.Status.AddressRef.Name != ""
}

// poolPatience is how long a pool is waited for whose provider says nothing.
const poolPatience = session.RemedyPoll

// passOver reports whether the next pool is asked, too: this one has no address, does not exist, or its provider has
// not answered for a while.
func (v virtualIPs) passOver(ctx context.Context, name string, out phases.Outcome) bool {
	if out.Problem {
		return true
	}
	claim := &ipamv1.IPAddressClaim{}
	err := v.scope.reconciler.Client.Get(ctx, client.ObjectKey{Namespace: v.scope.vcdCluster.Namespace, Name: name}, claim)
	return err == nil && !claim.CreationTimestamp.IsZero() &&
		v.scope.now().Sub(claim.CreationTimestamp.Time) > poolPatience
}

// dropOthers frees the claims of the other pools of a virtual IP. Nothing uses their addresses.
func (v virtualIPs) dropOthers(ctx context.Context, pools vipPools, used int) error {
	claims := v.scope.claims(v.scope.cluster.Name)
	for i := range pools.refs {
		if i == used {
			continue
		}
		claim := &ipamv1.IPAddressClaim{}
		key := client.ObjectKey{Namespace: v.scope.vcdCluster.Namespace, Name: pools.at(i).Name}
		err := v.scope.reconciler.Client.Get(ctx, key, claim)
		if err == nil && metav1.IsControlledBy(claim, v.scope.vcdCluster) {
			err = claims.Free(ctx, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("freeing IPAddressClaim %s: %w", key.Name, err)
		}
	}
	return nil
}

// freeAddresses gives the claimed addresses back. Those of a copy's original, which has its id, stay.
func (s *scope) freeAddresses(ctx context.Context, shared bool) error {
	name := session.ClusterName(s.vcdCluster, s.cluster)
	if name == "" {
		return nil
	}
	var names []string
	for _, pools := range []vipPools{primary(virtualip.KubeVIP(s.vcdCluster), name), secondary(virtualip.KubeVIP(s.vcdCluster), name)} {
		for i := range pools.refs {
			names = append(names, pools.at(i).Name)
		}
	}
	claims := s.claims(name)
	if shared {
		claims.ID = ""
	}
	return claims.Release(ctx, names...)
}

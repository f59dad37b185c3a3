// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// claimHosts returns the virtual IPs of a cluster from pools. A stored virtual IP stays, even if its claim is lost,
// because its IPAddress is held.
func claimHosts(ctx context.Context, claims ipam.Claims, c *infrav1.VCDCluster, now time.Time) (hosts, phases.Result, error) {
	kube := checks.KubeVIP(c)
	vip := vipClaim{
		claims:      claims,
		pools:       primary(kube, claims.Cluster),
		established: ownership.Established(c),
		now:         now,
	}
	found := hosts{names: []string{c.Spec.ControlPlaneEndpoint.Host}}
	if found.names[0] == "" {
		addr, out, err := vip.claim(ctx)
		if err != nil || out != phases.Done {
			return hosts{}, out, err
		}
		found.names[0] = addr.String()
	} else if err := found.keep(ctx, vip, found.names[0]); err != nil {
		return hosts{}, phases.Done, err
	}
	if len(kube.SecondaryPoolRefs) == 0 {
		return found, phases.Done, nil
	}
	vip.pools = secondary(kube, claims.Cluster)
	if stored := storedVIPs(c); len(stored) > 1 && vip.established {
		err := found.keep(ctx, vip, stored[1])
		found.names = append(found.names, stored[1])
		return found, phases.Done, err
	}
	addr, out, err := vip.claim(ctx)
	found.names = append(found.names, addr.String())
	return found, out, err
}

// storedVIPs returns the published virtual IPs. A move and a restore drop the status, but not the recorded state.
func storedVIPs(c *infrav1.VCDCluster) []string {
	if stored := c.Status.VirtualIPs; len(stored) > 0 {
		return stored
	}
	return placement.EndpointAddresses(c)
}

// freeAddresses releases the addresses that a cluster claimed.
func freeAddresses(ctx context.Context, claims ipam.Claims, c *infrav1.VCDCluster) error {
	if claims.Cluster == "" {
		return nil
	}
	kube := checks.KubeVIP(c)
	var names []string
	for _, pools := range []vipPools{primary(kube, claims.Cluster), secondary(kube, claims.Cluster)} {
		for i := range pools.refs {
			names = append(names, pools.at(i).Name)
		}
	}
	return claims.Release(ctx, names...)
}

// hosts are the addresses of an endpoint, or its DNS name.
type hosts struct {
	names   []string
	warning phases.Result // about a virtual IP that no pool reserves
}

// keep keeps a known virtual IP. It records a warning if no pool reserves the address.
func (h *hosts) keep(ctx context.Context, of vipClaim, vip string) error {
	warning, err := of.keep(ctx, vip)
	h.warning = cmp.Or(h.warning, warning)
	return err
}

// A vipPools lists the pools of one virtual IP, in order.
type vipPools struct {
	refs  []infrav1.IPPoolReference
	field string // field with the list
	claim string // name of the claim for the first pool; the names for other pools have a number appended
}

// primary returns the pools for the host of the endpoint.
func primary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.PoolRefs, "spec.controlPlaneLoadBalancer.kubeVIP.poolRefs", cluster + "-vip"}
}

// secondary returns the pools for the virtual IP of the other family.
func secondary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.SecondaryPoolRefs, "spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs", cluster + "-vip-second"}
}

// at returns the claim for the pool with an index.
func (p vipPools) at(i int) ipam.Claim {
	claim := ipam.Claim{Name: p.claim, Pool: p.refs[i], Field: fmt.Sprintf("%s[%d]", p.field, i)}
	if i > 0 {
		claim.Name += "-" + strconv.Itoa(i+1)
	}
	return claim
}

// A vipClaim claims one virtual IP.
type vipClaim struct {
	claims      ipam.Claims // of the cluster
	pools       vipPools
	established bool // the address is in use
	now         time.Time
}

// claim returns an address from the first pool that assigns one. An assigned address is kept. Pools that assigned none
// keep their claims until another pool has assigned an address.
func (v vipClaim) claim(ctx context.Context) (netip.Addr, phases.Result, error) {
	order := make([]int, len(v.pools.refs))
	for i := range order {
		order[i] = i
	}
	assigned := slices.IndexFunc(order, func(i int) bool { return v.isAssigned(ctx, v.pools.at(i).Name) })
	if assigned >= 0 {
		order = []int{assigned}
	}
	var problem phases.Result
	for _, i := range order {
		claim := v.pools.at(i)
		claim.InUse = v.established
		address, out, err := v.claims.Ensure(ctx, claim)
		if err == nil && out == phases.Done {
			if err = v.claims.Hold(ctx, address); err == nil {
				err = v.dropOthers(ctx, i)
			}
		}
		if err != nil || out == phases.Done {
			return address.Addr, out, err
		}
		problem = cmp.Or(problem, out)
		if !v.tryNext(ctx, claim.Name, out) {
			break
		}
	}
	return netip.Addr{}, problem, nil
}

// keep adopts the claim of a known virtual IP after a restore, and holds its address. It returns a warning if no pool
// has a claim of the address any longer.
func (v vipClaim) keep(ctx context.Context, vip string) (phases.Result, error) {
	var all []ipam.Claim
	found := false
	for i := range v.pools.refs {
		claim := v.pools.at(i)
		all = append(all, claim)
		err := v.get(ctx, claim.Name, &ipamv1.IPAddressClaim{})
		if apierrors.IsNotFound(err) {
			continue // The address may still be held without the claim.
		}
		if err != nil {
			return phases.Done, fmt.Errorf("getting IPAddressClaim %s: %w", claim.Name, err)
		}
		found = true
		claim.InUse = true
		address, out, err := v.claims.Ensure(ctx, claim)
		if err == nil && out == phases.Done {
			err = v.claims.Hold(ctx, address)
		}
		if err != nil {
			return phases.Done, err
		}
	}
	if found {
		return phases.Done, nil
	}
	return v.claims.Unclaimed(ctx, vip, all)
}

// isAssigned reports whether a claim of the cluster has an address.
func (v vipClaim) isAssigned(ctx context.Context, name string) bool {
	claim := &ipamv1.IPAddressClaim{}
	err := v.get(ctx, name, claim)
	return err == nil && metav1.IsControlledBy(claim, v.claims.Owner) && claim.Status.AddressRef.Name != ""
}

// poolPatience is how long to wait for a pool whose provider does not respond.
const poolPatience = intervals.Remedy

// tryNext reports whether to try the next pool, too, because this one has no free address or does not exist, or because
// its provider has not responded for a while.
func (v vipClaim) tryNext(ctx context.Context, name string, out phases.Result) bool {
	if out.IsProblem() {
		return true
	}
	claim := &ipamv1.IPAddressClaim{}
	err := v.get(ctx, name, claim)
	return err == nil && !claim.CreationTimestamp.IsZero() && v.now.Sub(claim.CreationTimestamp.Time) > poolPatience
}

// dropOthers releases the claims of the other pools of a virtual IP. Their addresses are not in use.
func (v vipClaim) dropOthers(ctx context.Context, used int) error {
	for i := range v.pools.refs {
		if i == used {
			continue
		}
		name := v.pools.at(i).Name
		claim := &ipamv1.IPAddressClaim{}
		err := v.get(ctx, name, claim)
		if err == nil && metav1.IsControlledBy(claim, v.claims.Owner) {
			err = v.claims.Free(ctx, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing IPAddressClaim %s: %w", name, err)
		}
	}
	return nil
}

func (v vipClaim) get(ctx context.Context, name string, claim *ipamv1.IPAddressClaim) error {
	return v.claims.Client.Get(ctx, client.ObjectKey{Namespace: v.claims.Owner.GetNamespace(), Name: name}, claim)
}

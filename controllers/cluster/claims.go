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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// claimHosts returns the virtual IPs of a cluster from pools. One that was stored stays, whatever happens to its claim:
// its IPAddress is held.
func claimHosts(ctx context.Context, claims ipam.Claims, c *infrav1.VCDCluster, now time.Time) (hosts, phases.Result,
	error,
) {
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

// storedVIPs returns the virtual IPs that were published. A move and a restore drop the status, but not the annotation.
func storedVIPs(c *infrav1.VCDCluster) []string {
	if stored := c.Status.VirtualIPs; len(stored) > 0 {
		return stored
	}
	return placement.EndpointAddresses(c)
}

// freeAddresses gives the addresses that a cluster claimed back.
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

// hosts are the addresses of an endpoint, or its name.
type hosts struct {
	names   []string
	warning phases.Result // of a virtual IP that no pool keeps
}

// keep keeps a virtual IP that is known, with a warning if no pool does.
func (h *hosts) keep(ctx context.Context, of vipClaim, vip string) error {
	warning, err := of.keep(ctx, vip)
	h.warning = cmp.Or(h.warning, warning)
	return err
}

// A vipPools are the pools of one virtual IP, in order.
type vipPools struct {
	refs  []infrav1.IPPoolReference
	field string // that lists them
	claim string // name of the claim of the first; those of the others have a number behind it
}

// primary returns the pools of the endpoint's host.
func primary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.PoolRefs, "spec.controlPlaneLoadBalancer.kubeVIP.poolRefs", cluster + "-vip"}
}

// secondary returns the pools of the virtual IP of the other family.
func secondary(kube infrav1.KubeVIPEndpoint, cluster string) vipPools {
	return vipPools{kube.SecondaryPoolRefs, "spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs", cluster + "-vip-second"}
}

// at returns the claim of the pool with an index.
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

// claim returns the address from the first of the pools that gives one. An address that was given stays. Pools that
// gave none keep their claims until another one has.
func (v vipClaim) claim(ctx context.Context) (netip.Addr, phases.Result, error) {
	order := make([]int, len(v.pools.refs))
	for i := range order {
		order[i] = i
	}
	given := slices.IndexFunc(order, func(i int) bool { return v.wasGiven(ctx, v.pools.at(i).Name) })
	if given >= 0 {
		order = []int{given}
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
		if !v.passOver(ctx, claim.Name, out) {
			break
		}
	}
	return netip.Addr{}, problem, nil
}

// keep makes the claim of a virtual IP that is known the cluster's again after a restore, and holds its address. It
// returns a warning if no pool has a claim of it any more.
func (v vipClaim) keep(ctx context.Context, vip string) (phases.Result, error) {
	var all []ipam.Claim
	found := false
	for i := range v.pools.refs {
		claim := v.pools.at(i)
		all = append(all, claim)
		err := v.get(ctx, claim.Name, &ipamv1.IPAddressClaim{})
		if apierrors.IsNotFound(err) {
			continue // Without it, the address may still be held.
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

// wasGiven reports whether a claim of the cluster has an address.
func (v vipClaim) wasGiven(ctx context.Context, name string) bool {
	claim := &ipamv1.IPAddressClaim{}
	err := v.get(ctx, name, claim)
	return err == nil && metav1.IsControlledBy(claim, v.claims.Owner) && claim.Status.AddressRef.Name != ""
}

// poolPatience is how long a pool is waited for whose provider does not answer.
const poolPatience = session.RemedyPoll

// passOver reports whether the next pool is asked, too: this one has no address, does not exist, or its provider has
// not answered for a while.
func (v vipClaim) passOver(ctx context.Context, name string, out phases.Result) bool {
	if out.IsProblem() {
		return true
	}
	claim := &ipamv1.IPAddressClaim{}
	err := v.get(ctx, name, claim)
	return err == nil && !claim.CreationTimestamp.IsZero() && v.now.Sub(claim.CreationTimestamp.Time) > poolPatience
}

// dropOthers frees the claims of the other pools of a virtual IP. Nothing uses their addresses.
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

// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var (
	claimMachines = flag.Int("claim-machines", 30, "machines of the test that kills the manager")
	claimSeed     = flag.Uint64("claim-seed", 1, "seed of the test that kills the manager; 0: of the time")
)

var errKilled = errors.New("the manager was killed")

// A killer kills the manager before or after writes to the API server.
type killer struct {
	rng   *rand.Rand
	rate  float64
	dead  bool
	kills int
}

// at performs a write, unless the manager is killed before it.
func (k *killer) at(write func() error) error {
	before := k.rng.Float64() < k.rate
	after := k.rng.Float64() < k.rate
	if k.dead || before {
		k.dead = true
		return errKilled
	}
	err := write()
	if after {
		k.dead = true
		return errKilled
	}
	return err
}

func (k *killer) client(c client.Client) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return k.at(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return k.at(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return k.at(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return k.at(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// A crowd is a set of machines that are created and deleted while the manager is killed.
type crowd struct {
	*controllertest.Env

	t      *testing.T
	killer *killer
	api    client.Client // that never dies
	pools  []*controllertest.Pool
	steps  int
}

// step reconciles a machine once, in a new manager if the last one was killed.
func (c *crowd) step(name string) {
	if c.steps%10 == 0 {
		for _, pool := range c.pools {
			c.Expect(pool.Serve(c.Ctx, c.api)).To(Succeed())
		}
		c.noDuplicates()
	}
	c.steps++
	_, err := c.ReconcileMachine(name)
	if c.killer.dead || c.killer.rng.Float64() < c.killer.rate {
		c.killer.kills++
		c.killer.dead = false
		c.Restart(c.t, events.NewFakeRecorder(10_000))
		return
	}
	c.Expect(err).NotTo(HaveOccurred())
}

// noDuplicates checks that no two VMs, and no two claims, have the same address.
func (c *crowd) noDuplicates() {
	seen := map[string]string{}
	for _, vm := range c.Sim.State().VMs {
		for _, address := range []string{vm.NICs[0].Address, vm.NICs[0].Secondary} {
			c.Expect(seen).NotTo(HaveKey(address), "%s and %s", vm.Name, seen[address])
			seen[address] = vm.Name
		}
	}
	list := &ipamv1.IPAddressList{}
	c.Expect(c.api.List(c.Ctx, list)).To(Succeed())
	owners := map[string]string{}
	for _, a := range list.Items {
		c.Expect(owners).NotTo(HaveKey(a.Spec.Address), "%s and %s", a.Name, owners[a.Spec.Address])
		owners[a.Spec.Address] = a.Name
	}
}

// until reconciles machines in random order until each is done.
func (c *crowd) until(names []string, done func(name string) bool) {
	patience := controllertest.Patience * time.Duration(1+len(names)/25) // Machines are created together, not one by one.
	deadline := time.Now().Add(patience)
	for left := slices.Clone(names); len(left) > 0; {
		c.Expect(time.Now().Before(deadline)).To(BeTrue(), "%d machines are not done, such as %s", len(left), left[0])
		i := c.killer.rng.IntN(len(left))
		c.step(left[i])
		if done(left[i]) {
			left = slices.Delete(left, i, i+1)
			deadline = time.Now().Add(patience)
		}
	}
}

func (c *crowd) gone(name string) bool {
	m := &infrav1.VCDMachine{}
	return apierrors.IsNotFound(c.api.Get(c.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name}, m))
}

func (c *crowd) ready(name string) bool {
	return conditions.IsTrue(c.VCDMachine(name), clusterv1.ReadyCondition)
}

func (c *crowd) remove(names []string) {
	for _, name := range names {
		c.Expect(c.api.Delete(c.Ctx, c.VCDMachine(name))).To(Succeed())
	}
	c.until(names, c.gone)
}

func TestNoAddressIsLostOrGivenTwiceWhenTheManagerIsKilled(t *testing.T) {
	seed := *claimSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-claim-seed=%d", seed)
	pools := []*controllertest.Pool{v4Pool(*claimMachines), v6Pool(*claimMachines)}
	var names []string
	objects := []client.Object{pools[0].Object(), pools[1].Object()}
	for i := range *claimMachines {
		names = append(names, fmt.Sprintf("m-%d", i))
		objects = append(objects, controllertest.NewMachine(names[i], fromPools(pools))...)
	}
	w := controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: dualStack()}, objects...)
	w.Ready()
	c := &crowd{
		Env:    w,
		killer: &killer{rng: rand.New(rand.NewPCG(seed, 0)), rate: 0.01},
		t:      t,
		api:    w.Client,
		pools:  pools,
	}
	w.Client = c.killer.client(w.Client)
	w.Restart(t, events.NewFakeRecorder(10_000))

	tenth := *claimMachines / 10
	for _, name := range names[:tenth] {
		for range c.killer.rng.IntN(12) {
			c.step(name)
		}
	}
	c.remove(names[:tenth])
	c.until(names[tenth:], c.ready)
	w.Expect(w.Sim.State().VMs).To(HaveLen(len(names) - tenth))
	c.remove(names[tenth:])

	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	for range 2 {
		for _, pool := range pools {
			w.Expect(pool.Serve(w.Ctx, c.api)).To(Succeed())
		}
	}
	claims := &ipamv1.IPAddressClaimList{}
	addresses := &ipamv1.IPAddressList{}
	w.Expect(c.api.List(w.Ctx, claims)).To(Succeed())
	w.Expect(c.api.List(w.Ctx, addresses)).To(Succeed())
	w.Expect(claims.Items).To(BeEmpty())
	w.Expect(addresses.Items).To(BeEmpty(), "all addresses are back in the pools")
	t.Logf("the manager was killed %d times in %d reconciles", c.killer.kills, c.steps)
	w.Expect(c.killer.kills).To(BeNumerically(">", *claimMachines/10))
}

// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var errDead = errors.New("the process is dead")

// A process is a manager that dies before and after each write, to VCD or to Kubernetes, that none died at before.
type process struct {
	killer *killer

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// die cuts the process off.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, c := range p.conns {
		_ = c.Close()
	}
}

func (p *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, errDead
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		p.conns = append(p.conns, c)
	}
	return c, err
}

// A killer decides which writes are fatal: each before it is done, and each once it is done, for the first time.
type killer struct {
	mu     sync.Mutex
	armed  bool
	killed map[string]bool
	done   map[string]int // writes to VCD, by request

	random *rand.Rand // nil: at every write, once
	rate   float64    // of writes that are fatal, with random
}

func (k *killer) fatal(moment, write string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := moment + " " + write
	switch {
	case !k.armed:
		return false
	case k.random != nil && k.random.Float64() >= k.rate:
		return false
	case k.random == nil && k.killed[key]:
		return false
	}
	k.killed[key] = true
	return true
}

// number counts requests to VCD that look the same: pools are written again and again.
func (k *killer) number(request string, did bool) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.done[request]
	if did {
		k.done[request]++
	}
	return fmt.Sprintf("%s #%d", request, n)
}

// write does a write to Kubernetes, unless the process dies before; it may die after.
func (p *process) write(what string, do func() error) error {
	switch {
	case p.isDead():
		return errDead
	case p.killer.fatal("before", what):
		p.die()
		return errDead
	}
	err := do()
	if err == nil && p.killer.fatal("after", what) {
		p.die()
		return errDead
	}
	return err
}

// client is the API server as the process sees it.
func (p *process) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption,
		) error {
			if p.isDead() {
				return errDead
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if p.isDead() {
				return errDead
			}
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return p.write("create "+nameOf(o), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return p.write("update "+nameOf(o), func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return p.write("delete "+nameOf(o), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, change client.Patch,
			opts ...client.PatchOption,
		) error {
			return p.write(patchOf(o, change), func() error { return c.Patch(ctx, o, change, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, change client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return p.write(patchOf(o, change), func() error { return c.SubResource(sub).Patch(ctx, o, change, opts...) })
		},
	})
}

func nameOf(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// patchOf names a patch by the fields that it changes.
func patchOf(o client.Object, change client.Patch) string {
	raw, err := change.Data(o)
	var body map[string]any
	if err != nil || json.Unmarshal(raw, &body) != nil {
		return "patch " + nameOf(o)
	}
	fields := map[string]bool{}
	flatten("", body, fields)
	delete(fields, ".metadata.resourceVersion")
	return "patch " + nameOf(o) + strings.Join(slices.Sorted(maps.Keys(fields)), " ")
}

func flatten(at string, value any, fields map[string]bool) {
	m, ok := value.(map[string]any)
	if !ok {
		fields[at] = true
		return
	}
	for k, v := range m {
		flatten(at+"."+k, v, fields)
	}
}

// A life is a cluster whose manager dies again and again.
type life struct {
	*world

	t       *testing.T
	killer  *killer
	probe   *probe
	api     client.WithWatch
	process *process
	ahead   time.Duration
	deaths  int
}

func newLife(t *testing.T, config vcdsim.Config, spec *infrav1.EdgeGatewayEndpoint) *life {
	t.Helper()
	l := &life{
		world:  newWorld(t, config, spec),
		t:      t,
		killer: &killer{killed: map[string]bool{}, done: map[string]int{}},
		probe:  newProbe(),
	}
	api, ok := l.Client.(client.WithWatch)
	l.Expect(ok).To(BeTrue())
	l.api = api
	l.Sim.SetGate(l.gate)
	l.start()
	return l
}

// start starts a manager that remembers nothing.
func (l *life) start() {
	l.process = &process{killer: l.killer}
	l.Client = l.process.client(l.api)
	l.Dial = l.process.dial
	l.Restart(l.t, events.NewFakeRecorder(100))
	l.Client = l.api
}

func (l *life) gate(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
	state := l.Sim.State()
	l.probe.observe(state, endpoint(state))
	if !r.Changes() {
		return true
	}
	request := r.Method + " " + r.Path
	moment := "before"
	did := false
	if m == vcdsim.Worked {
		moment = "after"
		did = r.Status < http.StatusMultipleChoices
		if !did {
			return true
		}
	}
	if l.killer.fatal(moment, l.killer.number(request, did)) {
		l.process.die()
		return false
	}
	return true
}

// until reconciles the cluster and machines until something holds, and starts the manager again when it died.
func (l *life) until(holds func() bool, machines ...string) {
	l.t.Helper()
	l.Eventually(func() bool {
		l.ahead += 2 * time.Second
		l.Later(l.ahead)
		l.Clock.Add(int64(time.Second))
		_, _ = l.ReconcileCluster()
		for _, name := range machines {
			_, _ = l.ReconcileMachine(name)
		}
		if l.process.isDead() {
			l.deaths++
			l.start()
		}
		return holds()
	}, 4*controllertest.Patience, "2ms").Should(BeTrue(), l.describe)
}

// describe returns the state of the cluster, for failure messages.
func (l *life) describe() string {
	return fmt.Sprintf("conditions of the VCDCluster: %v", l.VCDCluster().Status.Conditions)
}

func (l *life) ready(name string) bool {
	return conditions.GetReason(l.VCDMachine(name), clusterv1.ReadyCondition) == infrav1.ReadyReason
}

func (l *life) gone(o client.Object, name string) bool {
	return l.api.Get(l.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name}, o) != nil
}

func (l *life) joins(name string, others ...string) {
	l.add(name)
	l.until(func() bool { return l.ready(name) }, append(others, name)...)
}

func (l *life) leaves(name string, others ...string) {
	l.Expect(l.Client.Delete(l.Ctx, l.VCDMachine(name))).To(Succeed())
	l.until(func() bool { return l.gone(&infrav1.VCDMachine{}, name) }, append(others, name)...)
}

// TestTheManagerDiesAtEveryWrite lets the manager die before and after every write to VCD and to Kubernetes while a
// cluster with three control planes is created, rolled and deleted.
func TestTheManagerDiesAtEveryWrite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config vcdsim.Config
		spec   *infrav1.EdgeGatewayEndpoint
		// the first control planes, and those that replace them, one for one from the first on
		planes, next []string
		addresses    []string
		bothFamilies bool
		deaths       int
	}{
		{
			name:   "on a block of addresses",
			config: instant(),
			planes: []string{"a", "b", "c"},
			next:   []string{"d", "e"},
			deaths: 150,
		},
		{
			name:   "of an IP Space in one-arm mode",
			config: onSpaces(),
			spec:   &infrav1.EdgeGatewayEndpoint{ArmMode: infrav1.ArmModeOneArm},
			planes: []string{"a"},
			next:   []string{"b"},
			deaths: 70,
		},
		{
			name:         "of both families, IPv6 first",
			config:       vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.CloudProvider()},
			addresses:    []string{"2001:db8::40", "203.0.113.50"},
			planes:       []string{"a"},
			next:         []string{"b"},
			bothFamilies: true,
			deaths:       40,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLife(t, tt.config, tt.spec)
			if tt.bothFamilies {
				l.edit(requesting(tt.addresses...))
				l.bothFamilies()
			}

			l.run(tt.planes, tt.next)

			l.Expect(l.deaths).To(BeNumerically(">=", tt.deaths))
		})
	}
}

// run creates a cluster with control planes, replaces them one for one, deletes it, and checks that its endpoint
// answered, and that nothing is left.
func (l *life) run(planes, next []string) {
	l.t.Helper()
	l.killer.armed = true
	began := time.Now()
	l.until(func() bool { return l.reason(clusterv1.ReadyCondition) == infrav1.ReadyReason })
	var now []string
	for _, name := range planes {
		l.joins(name, now...)
		now = append(now, name)
	}
	for _, name := range next {
		l.joins(name, now...)
		now = append(now, name)
		l.leaves(now[0], now[1:]...)
		now = now[1:]
	}
	l.serves(now)
	l.probe.end()
	for i, name := range now {
		l.leaves(name, now[i+1:]...)
	}
	l.Expect(l.Client.Delete(l.Ctx, l.VCDCluster())).To(Succeed())
	l.until(func() bool { return l.gone(&infrav1.VCDCluster{}, "vc1") })

	l.t.Logf("died %d times at %d moments in %s; %s", l.deaths, len(l.killer.killed),
		time.Since(began).Round(time.Millisecond), l.probe)
	l.Expect(l.probe.faults).To(BeEmpty())
	l.Expect(l.probe.connections).To(BeNumerically(">", 100))
	l.empty()
}

// serves checks that each port leads to the control planes.
func (l *life) serves(planes []string) {
	l.t.Helper()
	var want []any
	for _, name := range planes {
		want = append(want, HaveField("Addr()", l.addressOf(name).Addr()))
	}
	found := endpoint(l.Sim.State())
	l.Expect(found).NotTo(BeEmpty())
	l.Expect(found).To(HaveEach(HaveField("Members", ConsistOf(want...))))
}

var (
	crashRounds = flag.Int("crash-rounds", 0, "rounds in which the manager dies at random writes; none by default")
	crashSeed   = flag.Uint64("crash-seed", 1, "seed of the first of these rounds; 0: of the time")
)

// TestTheManagerDiesAtRandomWrites is the long version: the manager dies more than once at a write, and soon after it
// was started.
func TestTheManagerDiesAtRandomWrites(t *testing.T) {
	if *crashRounds == 0 {
		t.Skip("is long: make test-crash runs it")
	}
	first := *crashSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for seed := first; seed < first+uint64(*crashRounds); seed++ {
		for name, spec := range map[string]*infrav1.EdgeGatewayEndpoint{
			"on two arms":      nil,
			"on one arm":       {ArmMode: infrav1.ArmModeOneArm},
			"with extra ports": {ExtraPorts: []infrav1.EndpointPort{{Port: 8132}}},
		} {
			t.Run(fmt.Sprintf("%s, -crash-seed=%d", name, seed), func(t *testing.T) {
				l := newLife(t, onSpaces(), spec)
				l.killer.random = rand.New(rand.NewPCG(seed, 0))
				l.killer.rate = 0.15

				l.run([]string{"a", "b", "c"}, []string{"d", "e", "f"})
			})
		}
	}
}

// empty makes sure that nothing of the cluster is left in VCD.
func (l *life) empty() {
	state := l.Sim.State()
	l.Expect(state.VMs).To(BeEmpty())
	l.Expect(state.VApps).To(BeEmpty())
	for _, d := range state.Documents {
		l.Expect(string(d.Body)).NotTo(ContainSubstring("cluster-api-provider-vcd"), d.Path)
	}
	for _, space := range state.Model.IPSpaces {
		l.Expect(space.Allocations).To(BeEmpty())
	}
}

// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// crashed is the number of clusters in the middle of which the manager crashes. One in five of them remains.
const crashed = 50

// longest is the maximum number of writes before a crash: enough for the endpoint of a cluster and for its VMs.
const longest = 16

// settled is the number of reconciles without a write after which a cluster counts as complete.
const settled = 6

// layouts are the vApp layouts of the clusters.
var layouts = []infrav1.VAppLayout{infrav1.VAppPerFailureDomain, infrav1.VAppPerMachine, infrav1.VAppPerCluster}

// addresses is the address pool of some endpoints.
var addresses = controllertest.NewPool("vips", 24, "192.168.100.1", controllertest.Range("192.168.100.201", 50)...)

// endpoints are the variants of endpoints, by how they are configured.
var endpoints = []func(c *infrav1.VCDCluster, i int){
	func(c *infrav1.VCDCluster, i int) {
		c.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointKubeVIP
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: fmt.Sprintf("192.168.100.%d", 201+i), Port: 6443}
	},
	func(c *infrav1.VCDCluster, _ int) {
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
			Type: infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{
				AddressSource: infrav1.VIPSourceIPAM,
				PoolRefs:      []infrav1.IPPoolReference{addresses.IPPoolReference},
			},
		}
	},
	func(c *infrav1.VCDCluster, i int) {
		c.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: fmt.Sprintf("192.168.100.%d", 201+i), Port: 6443}
	},
	func(c *infrav1.VCDCluster, _ int) { c.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway },
	func(c *infrav1.VCDCluster, _ int) {
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
			Type: infrav1.EndpointEdgeGateway,
			EdgeGateway: &infrav1.EdgeGatewayEndpoint{
				ArmMode: infrav1.ArmModeOneArm,
				OneArm: infrav1.OneArmSpec{
					InternalRange: infrav1.AddressRange{StartIP: "192.168.8.2", EndIP: "192.168.8.100"},
				},
				ExtraPorts: []infrav1.EndpointPort{{Port: 8132}},
			},
		}
	},
}

// clusterNumber returns the objects of a separate cluster with two machines.
func clusterNumber(sim *vcdsim.Simulator, i int) (name string, machines []string, objects []client.Object) {
	name = fmt.Sprintf("k%02d", i)
	owner := controllertest.NewCAPICluster()
	owner.Name = name
	owner.UID = types.UID("uid-of-" + name)
	owner.Labels = capicluster.Labels(name)
	owner.Spec.InfrastructureRef.Name = name
	infra := controllertest.NewVCDCluster(sim)
	infra.Name = name
	infra.UID = types.UID("id-of-" + name)
	infra.Labels = capicluster.Labels(name)
	infra.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       name,
		UID:        owner.UID,
	}}
	infra.Spec.VApp.Layout = layouts[i%len(layouts)]
	infra.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{}
	infra.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	endpoints[i/len(layouts)%len(endpoints)](infra, i)
	objects = []client.Object{owner, infra}
	for n := range 2 {
		machine := fmt.Sprintf("%s-m%d", name, n)
		machines = append(machines, machine)
		made := controllertest.NewMachine(machine)
		for _, o := range made[:2] {
			o.SetLabels(capicluster.Labels(name))
			if n == 0 {
				o.GetLabels()[clusterv1.MachineControlPlaneLabel] = ""
			}
		}
		made[1].SetUID(types.UID("uid-of-vcdmachine-" + machine))
		if m, ok := made[0].(*clusterv1.Machine); ok {
			m.Spec.ClusterName = name
		}
		objects = append(objects, made...)
	}
	return name, machines, objects
}

// start starts a manager without any earlier state. The requests of 50 clusters would take minutes at the default rate.
func start(t *testing.T, w *controllertest.Env) *vcd.Pool {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{
		TaskPoll:          5 * time.Millisecond,
		LookupTTL:         time.Millisecond,
		RequestsPerSecond: 10000,
		Burst:             10000,
	})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	endpoints := &edgeendpoint.Endpoints{}
	w.Cluster.Sessions = session.Of(pool)
	w.Machine.Sessions = session.Of(pool)
	w.Cluster.Endpoints = endpoints
	w.Machine.Endpoints = endpoints
	return pool
}

// crash reconciles a cluster until the manager has made a number of writes. The response to the last one is lost.
func crash(w *controllertest.Env, name string, machines []string, writes int) {
	var done atomic.Int32
	w.Sim.SetGate(func(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		if !r.Changes() || r.User != "capvcd" {
			return true
		}
		if m == vcdsim.Worked && r.Status < http.StatusBadRequest {
			return done.Add(1) < int32(writes)
		}
		return int(done.Load()) < writes
	})
	defer w.Sim.SetGate(nil)
	key := func(name string) ctrl.Request {
		return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: controllertest.Namespace, Name: name}}
	}
	last := int32(0)
	idle := 0
	for idle < settled {
		_, _ = reconcile.AsReconciler(w.Client, w.Cluster).Reconcile(w.Ctx, key(name))
		w.Expect(addresses.Serve(w.Ctx, w.Client)).To(Succeed())
		for _, machine := range machines {
			if int(done.Load()) >= writes {
				return
			}
			_, _ = reconcile.AsReconciler(w.Client, w.Machine).Reconcile(w.Ctx, key(machine))
		}
		if idle++; done.Load() > last {
			last = done.Load()
			idle = 0
		}
	}
}

// carrying returns the IDs of all objects in the simulator that contain the ID of one of the clusters.
func carrying(sim *vcdsim.Simulator, is func(cluster string) bool) []string {
	var ids []string
	add := func(id, text string) {
		_, after, found := strings.Cut(text, "cluster-api-provider-vcd cluster=")
		if found && is(strings.FieldsFunc(after, func(r rune) bool { return r == ' ' || r == '"' })[0]) {
			ids = append(ids, id)
		}
	}
	state := sim.State()
	for _, v := range state.VApps {
		add(v.ID, v.Description)
	}
	for _, vm := range state.VMs {
		add(vm.ID, vm.Description)
	}
	for _, d := range state.Documents {
		add(d.ID, string(d.Body))
	}
	slices.Sort(ids)
	return ids
}

// endpointsLeft counts the remaining objects of control plane endpoints on edge gateways, by cluster.
func endpointsLeft(objects []leaks.Object) (sizes []int) {
	kinds := map[string]int{}
	for _, o := range objects {
		if strings.Contains(o.Name, "control-plane") {
			kinds[o.Cluster]++
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(kinds)))
}

func bareIDs(objects []leaks.Object) []string {
	var ids []string
	for _, o := range objects {
		ids = append(ids, o.ID[strings.LastIndex(o.ID, ":")+1:])
	}
	slices.Sort(ids)
	return ids
}

// The manager crashes for good in the middle of 50 clusters. All orphaned resources of deleted clusters are listed, and
// none of the remaining clusters. A purge of each deleted cluster removes everything, and does not touch the others.
func TestOrphansOfCrashesAreListedAndPurged(t *testing.T) {
	w := controllertest.NewBalancedOn(t, vcdsim.CloudProvider())
	alive := leaks.Alive{w.VCDCluster().Spec.InfraID: "mgmt: team-a/vc1"}
	w.Balance(w.VCDCluster().Spec.InfraID, "web", nil)
	var dead []string
	for i := range crashed {
		name, machines, objects := clusterNumber(w.Sim, i)
		for _, o := range objects {
			w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
		}
		start(t, w)
		crash(w, name, machines, i*7%longest+1)
		if i%7 == 0 {
			w.Balance("id-of-"+name, "web", nil)
		}
		if i%5 == 1 {
			alive["id-of-"+name] = "mgmt: team-a/" + name
		} else {
			dead = append(dead, "id-of-"+name)
		}
	}
	lives := alive.Has
	isDead := func(cluster string) bool { return slices.Contains(dead, cluster) }
	before := carrying(w.Sim, lives)
	w.Expect(carrying(w.Sim, isDead)).NotTo(BeEmpty())
	powerOff(w, isDead)
	s, err := start(t, w).Session(w.Ctx, vcd.Config{
		Site:        w.Sim.URL(),
		Org:         "acme",
		CABundle:    w.Sim.CA(),
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	})
	w.Expect(err).NotTo(HaveOccurred())

	early, err := leaks.Take(w.Ctx, s, time.Now())
	w.Expect(err).NotTo(HaveOccurred())
	for _, cluster := range dead {
		if len(early.Of(cluster)) > 0 {
			w.Expect(early.Plan(leaks.Options{Cluster: cluster, Alive: alive}).Refusals).
				To(ContainElement(ContainSubstring("changed")), "a new object must not be deleted: %s", cluster)
		}
	}

	inventory, err := leaks.Take(w.Ctx, s, time.Now().Add(48*time.Hour))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(inventory.Hidden).To(BeEmpty())
	w.Expect(bareIDs(inventory.Left(alive))).To(Equal(bareURNs(carrying(w.Sim, isDead))))
	w.Expect(endpointsLeft(inventory.Left(alive))).To(And(ContainElements(2, 8),
		ContainElement(And(BeNumerically(">", 2), BeNumerically("<", 8)))),
		"managers crashed before and after the creation of endpoints")
	expectDrift(w, s, inventory)
	t.Logf("%d orphaned objects of %d clusters, %d objects of living clusters", len(inventory.Left(alive)), len(dead), len(before))
	for _, cluster := range dead {
		if len(inventory.Of(cluster)) > 0 {
			options := leaks.Options{Cluster: cluster, Alive: alive, NoMachines: true}
			w.Expect(inventory.Purge(w.Ctx, s, options)).To(Succeed(), cluster)
		}
	}

	w.Expect(carrying(w.Sim, isDead)).To(BeEmpty())
	w.Expect(carrying(w.Sim, lives)).To(Equal(before))
	for cluster := range alive {
		w.Expect(inventory.Purge(w.Ctx, s, leaks.Options{Cluster: cluster, Alive: alive})).
			To(MatchError(leaks.ErrRefused))
	}
}

// expectDrift expects that no object of a cluster with nodes and a load balancer is marked, until a user adds another
// VM to its pools.
func expectDrift(w *controllertest.Env, s *vcd.Session, inventory leaks.Inventory) {
	var objects []leaks.Object
	for _, o := range inventory.Objects {
		has := func(kind string) bool {
			return slices.ContainsFunc(inventory.Of(o.Cluster), func(x leaks.Object) bool { return x.Kind == kind })
		}
		if o.Kind == leaks.KindVM && len(o.Addresses) > 0 && has(string(lb.KindPool)) && has(string(lb.KindService)) {
			objects = inventory.Of(o.Cluster)
			break
		}
	}
	w.Expect(objects).NotTo(BeEmpty())
	before, err := leaks.Drift(w.Ctx, s, objects)
	w.Expect(err).NotTo(HaveOccurred())
	const why = "members without a VM of the cluster: 192.168.100.250"
	for _, o := range objects {
		if o.Kind != string(lb.KindPool) {
			continue
		}
		w.Expect(before[o.ID]).To(BeEmpty())
		before[o.ID] = why
		w.Sim.Edit(func(e *vcdsim.Editor) {
			w.Expect(e.Document(o.ID, func(body map[string]any) {
				body["memberGroupRef"] = nil
				body["members"] = []any{map[string]any{"ipAddress": "192.168.100.250", "port": 80, "enabled": true}}
			})).To(BeTrue())
		})
	}
	w.Expect(leaks.Drift(w.Ctx, s, objects)).To(Equal(before))
}

func bareURNs(ids []string) []string {
	for i, id := range ids {
		ids[i] = id[strings.LastIndex(id, ":")+1:]
	}
	slices.Sort(ids)
	return ids
}

// powerOff powers off the VMs of clusters, as a user does before a purge.
func powerOff(w *controllertest.Env, is func(string) bool) {
	ids := carrying(w.Sim, is)
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for _, id := range ids {
			if vm := e.VM(id); vm != nil && vm.Status == vcdsim.PoweredOn {
				e.PowerOff(vm)
			}
		}
	})
}

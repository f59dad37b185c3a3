// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// An entityEnv is an environment with a cluster of mode Project. Tests advance its clock.
type entityEnv struct {
	*controllertest.Env

	reconciler *Reconciler
	ahead      time.Duration
	start      time.Time
}

func newEntityEnv(t *testing.T, config vcdsim.Config, objects ...client.Object) *entityEnv {
	t.Helper()
	config.Profile = vcdsim.Instant
	w := &entityEnv{Env: controllertest.NewWith(t, config, objects...), start: time.Now()}
	w.restart()
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.change(func(c *infrav1.VCDCluster) { c.Spec.RDE.Mode = infrav1.RDEProject })
	return w
}

// restart replaces the reconciler by one without cached state.
func (w *entityEnv) restart() {
	recorder := events.NewFakeRecorder(1000)
	w.Events = recorder.Events
	w.reconciler = &Reconciler{
		Client:     w.Client,
		Live:       w.Client,
		Identities: w.Cluster.Identities,
		Sessions:   w.Cluster.Sessions,
		Recorder:   recorder,
		Version:    "v2.0.0",
		Now:        func() time.Time { return w.start.Add(w.ahead) },
	}
}

func (w *entityEnv) change(change func(*infrav1.VCDCluster)) {
	c := w.VCDCluster()
	change(c)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// pass reconciles once.
func (w *entityEnv) pass() ctrl.Result {
	res, err := reconcile.AsReconciler(w.Client, w.reconciler).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"}})
	w.Expect(err).NotTo(HaveOccurred())
	return res
}

// settle reconciles until no immediate reconcile is requested.
func (w *entityEnv) settle() {
	for range 4 {
		w.pass()
		w.ahead += 2 * interval
	}
}

// condition returns the reason and the message of the entity condition.
func (w *entityEnv) condition() (reason, message string) {
	c := conditions.Get(w.VCDCluster(), infrav1.RDEReadyCondition)
	if c == nil {
		return "", ""
	}
	return c.Reason, c.Message
}

// entity reads the entity of the cluster.
func (w *entityEnv) entity() vcd.Entity {
	read, err := w.session().Entities.Get(w.Ctx, notes.EntityID(w.VCDCluster()))
	w.Expect(err).NotTo(HaveOccurred())
	return read
}

func (w *entityEnv) session() *vcd.Session { return w.sessionOf("capvcd") }

func (w *entityEnv) sessionOf(user string) *vcd.Session {
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 5 * time.Millisecond})
	s, err := pool.Session(w.Ctx, vcd.Config{
		Site:        w.Sim.URL(),
		Org:         "acme",
		CABundle:    w.Sim.CA(),
		Credentials: vcd.Credentials{Username: user, Password: "password"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	return s
}

const (
	typePrefix = "urn:vcloud:type:vmware:capvcdCluster:"
	least      = `{"kind":"CAPVCDCluster","apiVersion":"capvcd.vmware.com/v1.1","metadata":{},"spec":{}`
)

// given creates an entity as another client would, and returns its URN.
func (w *entityEnv) given(version, more string) string {
	s := w.session()
	id, err := s.Entities.Create(w.Ctx, vcd.EntitySpec{
		Type:    typePrefix + version,
		Name:    "given",
		Content: json.RawMessage(least + more + `}`),
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(s.Entities.Resolve(w.Ctx, id)).To(BeEmpty())
	return id
}

// entityCalls counts the requests of a method to entities.
func (w *entityEnv) entityCalls(method string) int {
	n := 0
	for call, times := range w.Sim.Counters() {
		if strings.HasPrefix(call, method+" /cloudapi/1.0.0/entit") {
			n += times
		}
	}
	return n
}

// entityWrites counts the requests that change entities.
func (w *entityEnv) entityWrites() int {
	return w.entityCalls("PUT") + w.entityCalls("POST") + w.entityCalls("DELETE")
}

// machinesOf returns the objects of the machines of a cluster.
func machinesOf(n int) []client.Object {
	var out []client.Object
	for i := range n {
		name := "w" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		objects := controllertest.NewMachine(name)
		m, ok := objects[0].(*clusterv1.Machine)
		if !ok {
			continue
		}
		m.Labels[clusterv1.MachineDeploymentNameLabel] = "workers"
		m.Spec.Version = "v1.36.3"
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group,
			Kind:     "VCDMachine",
			Name:     name,
		}
		out = append(out, objects...)
	}
	d := &clusterv1.MachineDeployment{ObjectMeta: controllertest.Meta("workers")}
	d.Spec.Replicas = ptr.To(int32(n))
	return append(out, d)
}

// ready sets a VCDMachine ready at a time, as the machine controller does.
func (w *entityEnv) ready(name string, at time.Time) {
	m := w.VCDMachine(name)
	m.Status.VM = &infrav1.ResourceReference{Name: name, ID: "urn:vcloud:vm:" + name}
	m.Status.VApp = &infrav1.ResourceReference{Name: "c1", ID: "urn:vcloud:vapp:1"}
	for _, condition := range []string{infrav1.VAppReadyCondition, infrav1.PoweredOnCondition} {
		conditions.Set(m, metav1.Condition{
			Type:               condition,
			Status:             metav1.ConditionTrue,
			Reason:             infrav1.ReadyReason,
			LastTransitionTime: metav1.NewTime(at),
		})
	}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
}

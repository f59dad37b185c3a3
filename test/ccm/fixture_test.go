// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

const (
	// patience is how long anything may take on a busy machine.
	patience = 4 * time.Minute
	// crashPatience is how long a flow may take in which the controller is killed and started again at each write, up
	// to 40 times.
	crashPatience = 5 * patience
	poll          = 100 * time.Millisecond
	// pause is how long nothing must happen where nothing should.
	pause = 3 * time.Second
)

// A fixture is a cloud, and a cloud controller manager that creates load balancers there for Services of its class.
type fixture struct {
	*cluster

	cloud      cloud
	controller *controller
	name       string // on the label of its Services
	class      string // empty: Services without a class
	settings   settings
	patience   time.Duration // of its Services
}

// A fixtureOption changes a fixture from the default.
type fixtureOption struct {
	cluster  *cluster
	cloud    cloud // nil: a VMware Cloud Director
	class    string
	machines int
	settings settings
	args     []string
	vcd      []vcdOption
	patience time.Duration           // 0: the default
	prepare  func(*controller) error // before it starts; nil: nothing
}

// nodeControllers are the controllers that only one fixture in a cluster may run.
const nodeControllers = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller"

// newFixture starts a fixture, which ends with the test. Its cloud must be empty then.
func newFixture(t *testing.T, name string, o fixtureOption) *fixture {
	t.Helper()
	g := NewWithT(t)
	w, err := startFixture(t.Context(), name, o)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if !t.Failed() {
			g.Eventually(func() []string { return w.cloud.left("") }, patience, poll).Should(BeEmpty(),
				"left in the cloud")
		}
		g.Expect(w.end()).To(Succeed())
	})
	return w
}

func startFixture(ctx context.Context, name string, o fixtureOption) (*fixture, error) {
	if o.cluster == nil {
		o.cluster = sharedCluster
	}
	if o.machines == 0 {
		o.machines = fleet
	}
	if o.cloud == nil {
		v, err := newVCD(o.machines, o.vcd...)
		if err != nil {
			return nil, err
		}
		o.cloud = v
		o.args = append([]string{"--vcd-task-poll=100ms"}, o.args...)
	}
	w := &fixture{
		cluster:  o.cluster,
		cloud:    o.cloud,
		name:     name,
		class:    o.class,
		settings: settings{"clusterid": "cluster-" + name},
		patience: max(o.patience, patience),
	}
	args := append([]string{"--controllers=service-lb-controller"}, o.args...)
	if o.class != "" {
		w.settings["loadbalancer.class"] = o.class
		w.settings["loadbalancer.classOnly"] = true
	}
	for key, value := range o.settings {
		w.settings[key] = value
	}
	config, files, err := o.cloud.files(w.settings)
	if err != nil {
		return nil, err
	}
	if w.controller, err = newController(ctx, o.cluster, name, files, config, args...); err != nil {
		return nil, err
	}
	if o.prepare != nil {
		if err := o.prepare(w.controller); err != nil {
			return nil, err
		}
	}
	if err := w.store(ctx); err != nil {
		return nil, err
	}
	return w, w.controller.Start(ctx)
}

// store writes the Secret of the cloud.
func (w *fixture) store(ctx context.Context) error {
	data := w.cloud.secret()
	if data == nil {
		return nil
	}
	return w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: addons.Namespace, Name: w.cloud.manifest().CredentialsSecret},
		StringData: data,
	})
}

// end stops the fixture. It fails if its controller exited by itself before.
func (w *fixture) end() error {
	if err := w.controller.died(); err != nil {
		return err
	}
	if err := w.controller.Stop(); err != nil {
		return err
	}
	return w.cloud.close()
}

// patientWithCrashes allows flows to take crashPatience until restore is called.
func (w *fixture) patientWithCrashes() (restore func()) {
	usual := w.patience
	w.patience = max(usual, crashPatience)
	return func() { w.patience = usual }
}

// vcd returns the cloud in tests of VMware Cloud Director.
func (w *fixture) vcd() *vcd {
	v, ok := w.cloud.(*vcd)
	if !ok {
		panic("this fixture has another cloud")
	}
	return v
}

// sharedFixture is the fixture of most scenarios, with all controllers.
var sharedFixture struct {
	sync.Mutex
	*fixture
}

// shared returns the fixture that scenarios share. The first of them starts it.
func shared(t *testing.T) *fixture {
	t.Helper()
	sharedFixture.Lock()
	defer sharedFixture.Unlock()
	if sharedFixture.fixture == nil {
		w, err := startFixture(context.WithoutCancel(t.Context()), "shared",
			fixtureOption{args: []string{nodeControllers}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		sharedFixture.fixture = w
	}
	return sharedFixture.fixture
}

// endSharedFixture stops the shared fixture, which must be empty if every test passed.
func endSharedFixture(code int) int {
	w := sharedFixture.fixture
	if w == nil {
		return code
	}
	for deadline := time.Now().Add(patience); len(w.cloud.left("")) > 0 && time.Now().Before(deadline) && code == 0; {
		<-time.After(poll)
	}
	if left := w.cloud.left(""); len(left) > 0 && code == 0 {
		code = report(fmt.Errorf("left in the cloud: %v", left))
	}
	if err := w.end(); err != nil {
		code = report(err)
	}
	return code
}

// context returns a context that outlives tests, for cleanups.
func (w *fixture) context() context.Context { return context.Background() }

// namespace creates a namespace that is deleted with the test.
func (w *fixture) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ccm-"}}
	NewWithT(t).Expect(w.client.Create(t.Context(), ns)).To(Succeed())
	t.Logf("%s has namespace %s", t.Name(), ns.Name)
	return ns.Name
}

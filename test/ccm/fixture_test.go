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
	// timeout is the maximum duration of any step on a busy machine.
	timeout = 4 * time.Minute
	// crashTimeout is the maximum duration of a flow in which the controller is killed and restarted at each write, up
	// to 40 times.
	crashTimeout = 5 * timeout
	poll         = 100 * time.Millisecond
	// quietPeriod is the time for which tests check that nothing happens.
	quietPeriod = 3 * time.Second
)

// A fixture is a cloud, and a cloud controller manager that creates load balancers there for Services of its class.
type fixture struct {
	*cluster

	cloud      cloud
	controller *controller
	name       string // value of the label of its Services
	class      string // load balancer class; empty for Services without one
	settings   settings
	timeout    time.Duration // for changes of its Services
}

// A fixtureOption configures a fixture. The zero value is the default.
type fixtureOption struct {
	cluster  *cluster
	cloud    cloud // nil means VMware Cloud Director
	class    string
	machines int
	settings settings
	args     []string
	vcd      []vcdOption
	timeout  time.Duration           // 0 means the default
	prepare  func(*controller) error // called before the controller starts; may be nil
}

// nodeControllers enables all controllers, including those that only one fixture per cluster may run.
const nodeControllers = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller"

// newFixture starts a fixture that is stopped when the test ends. Nothing may be left in its cloud then.
func newFixture(t *testing.T, name string, o fixtureOption) *fixture {
	t.Helper()
	g := NewWithT(t)
	w, err := startFixture(t.Context(), name, o)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if !t.Failed() {
			g.Eventually(func() []string { return w.cloud.leftovers("") }, timeout, poll).Should(BeEmpty(),
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
		timeout:  max(o.timeout, timeout),
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

// end stops the fixture. It returns an error if the controller had already exited.
func (w *fixture) end() error {
	if err := w.controller.died(); err != nil {
		return err
	}
	if err := w.controller.Stop(); err != nil {
		return err
	}
	return w.cloud.close()
}

// extendTimeoutForCrashes extends the timeout of flows to crashTimeout until restore is called.
func (w *fixture) extendTimeoutForCrashes() (restore func()) {
	usual := w.timeout
	w.timeout = max(usual, crashTimeout)
	return func() { w.timeout = usual }
}

// vcd returns the cloud of a fixture that runs on VMware Cloud Director. It panics on other clouds.
func (w *fixture) vcd() *vcd {
	v, ok := w.cloud.(*vcd)
	if !ok {
		panic("the cloud of this fixture is not VMware Cloud Director")
	}
	return v
}

// sharedFixture is the fixture of most scenarios, with all controllers.
var sharedFixture struct {
	sync.Mutex
	*fixture
}

// shared returns the fixture that most scenarios share. The first call starts it.
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

// endSharedFixture stops the shared fixture. If all tests passed, nothing may be left in its cloud.
func endSharedFixture(code int) int {
	w := sharedFixture.fixture
	if w == nil {
		return code
	}
	for deadline := time.Now().Add(timeout); len(w.cloud.leftovers("")) > 0 && time.Now().Before(deadline) && code == 0; {
		<-time.After(poll)
	}
	if left := w.cloud.leftovers(""); len(left) > 0 && code == 0 {
		code = report(fmt.Errorf("left in the cloud: %v", left))
	}
	if err := w.end(); err != nil {
		code = report(err)
	}
	return code
}

// context returns a context that outlives tests, for cleanups.
func (w *fixture) context() context.Context { return context.Background() }

// namespace creates a namespace.
func (w *fixture) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ccm-"}}
	NewWithT(t).Expect(w.client.Create(t.Context(), ns)).To(Succeed())
	t.Logf("%s has namespace %s", t.Name(), ns.Name)
	return ns.Name
}

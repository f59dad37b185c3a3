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
)

const (
	// patience is how long anything may take on a busy machine.
	patience = 2 * time.Minute
	// crashPatience is how long a flow may take in which the controller is killed and started again at each write, up
	// to 40 times.
	crashPatience = 5 * patience
	poll          = 100 * time.Millisecond
	// pause is how long nothing may happen, where nothing should.
	pause = 3 * time.Second
)

// A world is a cloud, and a cloud controller manager that makes load balancers there for Services of its class.
type world struct {
	*house

	cloud      cloud
	controller *controller
	name       string // on the label of its Services
	class      string // empty: Services without a class
	settings   settings
	patience   time.Duration // of its Services
}

// A worldOption says how a world differs from others.
type worldOption struct {
	house    *house
	class    string
	machines int
	settings settings
	args     []string
	vcd      []vcdOption
	patience time.Duration // 0: as anything
}

// nodeControllers are those that only one world in a house may have.
const nodeControllers = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller"

// newWorld starts a world, which ends with the test. Nothing may be left in its cloud then.
func newWorld(t *testing.T, name string, o worldOption) *world {
	t.Helper()
	g := NewWithT(t)
	w, err := startWorld(t.Context(), name, o)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if !t.Failed() {
			g.Eventually(func() []string { return w.cloud.left("") }, patience, poll).Should(BeEmpty(), "left in the cloud")
		}
		g.Expect(w.end()).To(Succeed())
	})
	return w
}

func startWorld(ctx context.Context, name string, o worldOption) (*world, error) {
	if o.house == nil {
		o.house = home
	}
	if o.machines == 0 {
		o.machines = fleet
	}
	v, err := newVCD(o.machines, o.vcd...)
	if err != nil {
		return nil, err
	}
	w := &world{house: o.house, cloud: v, name: name, class: o.class, settings: settings{"clusterid": "cluster-" + name}, patience: max(o.patience, patience)}
	args := append([]string{"--controllers=service-lb-controller", "--vcd-task-poll=100ms"}, o.args...)
	if o.class != "" {
		w.settings["loadbalancer.class"], w.settings["loadbalancer.classOnly"] = o.class, true
	}
	for key, value := range o.settings {
		w.settings[key] = value
	}
	config, files, err := v.files(w.settings)
	if err != nil {
		return nil, err
	}
	if w.controller, err = newController(ctx, o.house, name, files, config, args...); err != nil {
		return nil, err
	}
	if err := w.controller.Start(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// end stops the world and says whether its controller ended by itself before.
func (w *world) end() error {
	if err := w.controller.died(); err != nil {
		return err
	}
	if err := w.controller.Stop(); err != nil {
		return err
	}
	return w.cloud.close()
}

// patientWithCrashes lets flows take crashPatience until restore is called.
func (w *world) patientWithCrashes() (restore func()) {
	usual := w.patience
	w.patience = max(usual, crashPatience)
	return func() { w.patience = usual }
}

// vcd is the cloud of tests that are about VMware Cloud Director.
func (w *world) vcd() *vcd {
	v, ok := w.cloud.(*vcd)
	if !ok {
		panic("this world has another cloud")
	}
	return v
}

// commons is the world of most scenarios, with all controllers.
var commons struct {
	sync.Mutex
	*world
}

// common returns the world that scenarios share; it begins with the first of them.
func common(t *testing.T) *world {
	t.Helper()
	commons.Lock()
	defer commons.Unlock()
	if commons.world == nil {
		w, err := startWorld(context.WithoutCancel(t.Context()), "shared", worldOption{args: []string{nodeControllers}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		commons.world = w
	}
	return commons.world
}

// endCommons ends the shared world, in which nothing may be left when every test passed.
func endCommons(code int) int {
	w := commons.world
	if w == nil {
		return code
	}
	for deadline := time.Now().Add(patience); len(w.cloud.left("")) > 0 && time.Now().Before(deadline) && code == 0; {
		<-time.After(poll)
	}
	if left := w.cloud.left(""); len(left) > 0 && code == 0 {
		code = complain(fmt.Errorf("left in the cloud: %v", left))
	}
	if err := w.end(); err != nil {
		code = complain(err)
	}
	return code
}

// context is one that outlives tests: cleaning up needs it.
func (w *world) context() context.Context { return context.Background() }

// namespace makes a namespace that ends with the test.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ccm-"}}
	NewWithT(t).Expect(w.client.Create(t.Context(), ns)).To(Succeed())
	t.Logf("%s has namespace %s", t.Name(), ns.Name)
	return ns.Name
}

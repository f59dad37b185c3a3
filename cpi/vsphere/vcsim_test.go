// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi"
	_ "github.com/vmware/govmomi/lookup/simulator"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere/vspheresim"
)

// A site is a vCenter of govmomi's simulator, behind a proxy that counts requests and can be unavailable.
type site struct {
	*WithT

	t      *testing.T
	model  *simulator.Model
	sim    *simulator.Server
	proxy  *httptest.Server
	client *govmomi.Client // of the administrator

	mu         sync.Mutex
	away       bool
	calls      map[string]int // by method
	tagsHidden []mo.Reference // objects whose tags the user may not read

	forgetTagSession bool
	tagsStatus       int           // of every response of the tag endpoint; 0: it works
	held             chan struct{} // requests wait until it is closed; nil: they do not wait
}

// newSite starts a vCenter whose VMs have the names of the model.
func newSite(t *testing.T, mods ...func(*simulator.Model)) *site {
	t.Helper()
	s := &site{WithT: NewWithT(t), t: t, model: simulator.VPX(), calls: map[string]int{}}
	s.model.Machine = 2
	for _, mod := range mods {
		mod(s.model)
	}
	s.Expect(s.model.Create()).To(Succeed())
	t.Cleanup(s.model.Remove)
	s.model.Service.TLS = new(tls.Config)
	s.model.Service.RegisterEndpoints = true
	s.sim = s.model.Service.NewServer()
	t.Cleanup(s.sim.Close)
	s.proxy = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.proxy.Close)
	var err error
	s.client, err = govmomi.NewClient(t.Context(), s.sim.URL, true)
	s.Expect(err).NotTo(HaveOccurred())
	s.permit(true)
	for _, vm := range s.model.Map().All("VirtualMachine") { // otherwise two sites have the same IDs
		vm.(*simulator.VirtualMachine).Config.Uuid = uuid.NewString()
	}
	return s
}

var soapMethod = regexp.MustCompile(`Body[^>]*><(?:\w+:)?(\w+)`)

func (s *site) serve(to http.ResponseWriter, r *http.Request) {
	method := r.Method + " " + r.URL.Path
	if body, err := io.ReadAll(r.Body); err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if match := soapMethod.FindSubmatch(body); match != nil && strings.HasPrefix(r.URL.Path, "/sdk") {
			method = string(match[1])
		}
	}
	s.mu.Lock()
	s.calls[method]++
	away := s.away
	isREST := !strings.HasPrefix(r.URL.Path, "/sdk")
	status := s.tagsStatus
	if s.hidesTags(r) {
		status = http.StatusForbidden
	}
	held := s.held
	if isREST && s.forgetTagSession {
		s.forgetTagSession = false
		r.Header.Del("Vmware-Api-Session-Id")
		r.Header.Del("Cookie")
	}
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	if isREST && status != 0 {
		http.Error(to, "later", status)
		return
	}
	if away {
		panic(http.ErrAbortHandler)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: s.sim.URL.Host})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	proxy.ServeHTTP(to, r)
}

// permit grants the user a role on the root folder, with or without propagation.
func (s *site) permit(propagate bool) {
	s.Expect(vspheresim.Permit(s.t.Context(), s.client, "user", propagate)).To(Succeed())
}

func (s *site) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// hideTags makes the tag endpoint reject whole requests that contain one of the objects; nil: none.
func (s *site) hideTags(of ...mo.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tagsHidden = of
}

// hidesTags reports whether a request is rejected because of an object in it. The lock is held.
func (s *site) hidesTags(r *http.Request) bool {
	if len(s.tagsHidden) == 0 || !strings.Contains(r.URL.RawQuery, "list-attached-tags-on-objects") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && slices.ContainsFunc(s.tagsHidden, func(ref mo.Reference) bool {
		return bytes.Contains(body, []byte(`"`+ref.Reference().Value+`"`))
	})
}

// failTags makes the tag endpoint respond with a status; 0: it works.
func (s *site) failTags(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tagsStatus = status
}

// hold delays new requests until the returned function is called.
func (s *site) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	})
}

// counted returns the requests since the last call.
func (s *site) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = map[string]int{}
	return calls
}

// vCenter returns the site as configured.
func (s *site) vCenter(mods ...func(*vsphere.VCenter)) vsphere.VCenter {
	u, err := url.Parse(s.proxy.URL)
	s.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(u.Port())
	s.Expect(err).NotTo(HaveOccurred())
	v := vsphere.VCenter{Name: "vc", Host: u.Hostname(), Port: port, Insecure: true, Credentials: password("user", "pass")}
	for _, mod := range mods {
		mod(&v)
	}
	return v
}

func password(user, password string) func(context.Context) (vsphere.Credentials, string, error) {
	return func(context.Context) (vsphere.Credentials, string, error) {
		return vsphere.Credentials{User: user, Password: password}, user + password, nil
	}
}

// machines returns the VMs of the site.
func (s *site) machines(clock *clocktesting.FakeClock, mods ...func(*vsphere.MachineOptions)) *vsphere.Machines {
	o := vsphere.MachineOptions{VCenters: []vsphere.VCenter{s.vCenter()}, Clock: clock}
	for _, mod := range mods {
		mod(&o)
	}
	m := vsphere.NewMachines(o)
	s.t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// all returns the VMs by name.
func (s *site) all() map[string]*simulator.VirtualMachine {
	out := map[string]*simulator.VirtualMachine{}
	for _, vm := range vspheresim.VMs(s.model) {
		out[vm.Name] = vm
	}
	return out
}

// vm returns the VM with a name.
func (s *site) vm(name string) *simulator.VirtualMachine {
	vm := s.all()[name]
	s.Expect(vm).NotTo(BeNil(), name)
	return vm
}

// change changes a VM without using its API.
func (s *site) change(name string, change func(*mo.VirtualMachine)) {
	vm := s.vm(name)
	s.model.Map().WithLock(s.model.Service.Context, vm, func() { change(&vm.VirtualMachine) })
}

// boot gives a VM a hostname and addresses, as VMware Tools report them.
func (s *site) boot(name, hostname string, addresses ...string) {
	s.change(name, func(vm *mo.VirtualMachine) { vspheresim.Boot(vm, hostname, addresses...) })
}

func (s *site) object(name string) *object.VirtualMachine {
	return object.NewVirtualMachine(s.client.Client, s.vm(name).Reference())
}

func (s *site) done(task *object.Task, err error) {
	s.t.Helper()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(task.Wait(s.t.Context())).To(Succeed())
}

func (s *site) powerOff(name string) { s.done(s.object(name).PowerOff(s.t.Context())) }

func (s *site) destroy(name string) {
	if s.vm(name).Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
		s.powerOff(name)
	}
	s.done(s.object(name).Destroy(s.t.Context()))
}

// rename names the VMs of the model n1, n2, …; it returns the names.
func (s *site) rename(n int) []string {
	var names []string
	for _, vm := range vspheresim.VMs(s.model)[:n] {
		name := fmt.Sprintf("n%d", len(names)+1)
		s.model.Map().WithLock(s.model.Service.Context, vm, func() { vm.Name = name })
		s.boot(name, name, fmt.Sprintf("10.0.%d.%d", len(names)/250, len(names)%250+1))
		names = append(names, name)
	}
	return names
}

// tag attaches a tag to objects.
func (s *site) tag(category, name string, refs ...mo.Reference) {
	s.t.Helper()
	s.Expect(vspheresim.Tag(s.t.Context(), s.client, s.sim.URL.User, category, name, refs...)).To(Succeed())
}

// any returns an object of a kind.
func (s *site) any(kind string) mo.Entity { return s.model.Map().Any(kind) }

// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// largest is the number of VMs in the measurements.
const largest = 10000

// A direct calls a simulator without a network.
type direct struct {
	sim   *vcdsim.Simulator
	token string
}

func newDirect(tb testing.TB) *direct {
	tb.Helper()
	sim, err := vcdsim.New(vcdsim.Config{Model: vcdsim.Large(), Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	d := &direct{sim: sim}
	d.logIn("/cloudapi/1.0.0/sessions", "capvcd@acme")
	return d
}

// logIn makes further requests those of a user.
func (d *direct) logIn(path, user string) {
	req := httptest.NewRequest(http.MethodPost, "https://vcd"+path, nil)
	req.SetBasicAuth(user, "password")
	d.token = ""
	d.token = d.do(req).Header().Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
}

func (d *direct) do(req *http.Request) *httptest.ResponseRecorder {
	req.Header.Set("Accept", "application/*;version=37.2")
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	w := httptest.NewRecorder()
	d.sim.ServeHTTP(w, req)
	return w
}

func (d *direct) get(tb testing.TB, path string) []byte {
	tb.Helper()
	w := d.do(httptest.NewRequest(http.MethodGet, "https://vcd"+path, nil))
	if w.Code != http.StatusOK {
		tb.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// pages returns the queries that are measured.
func pages(sim *vcdsim.Simulator) map[string]string {
	const page = "/api/query?type=vm&pageSize=128"
	state := sim.State()
	return map[string]string{
		"FirstPage": page,
		"LastPage":  page + "&page=78",
		"OfVDC": page + "&filter=isVAppTemplate==false;vdc==https://vcd/api/vdc/" +
			state.Model.Orgs[1].VDCs[0].ID + "&sortAsc=id",
		"OfVApp":    page + "&filter=container==https://vcd/api/vApp/vapp-" + state.VApps[0].ID,
		"OfNames":   page + "&filter=name==*-07*;status==POWERED_ON&sortAsc=name",
		"ByName":    page + "&sortAsc=name",
		"ByMemory":  page + "&sortDesc=memoryMB",
		"OfCPUs":    page + "&filter=numberOfCpus=gt=1",
		"OfProfile": page + "&filter=storageProfileName==standard",
		"OfAddress": page + "&filter=ipAddress==10.40.1.*",
		"OfDate":    page + "&filter=dateCreated=gt=2020-01-01T00:00:00.000Z",
	}
}

func BenchmarkStart10000(b *testing.B) {
	for b.Loop() {
		if _, err := vcdsim.New(vcdsim.Config{Model: vcdsim.Large(), Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQuery10000 measures pages of new lists, and further pages of the same list.
func BenchmarkQuery10000(b *testing.B) {
	d := newDirect(b)
	for name, path := range pages(d.sim) {
		b.Run(name+"/NewList", func(b *testing.B) {
			d.benchmark(b, path, func() { d.sim.Edit(func(*vcdsim.Editor) {}) })
		})
		b.Run(name+"/SameList", func(b *testing.B) {
			d.benchmark(b, path, func() {})
		})
	}
}

// benchmark gets a path again and again, and calls between before each request.
func (d *direct) benchmark(b *testing.B, path string, between func()) {
	b.Helper()
	before := processorTime(b)
	for b.Loop() {
		between()
		d.get(b, path)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the CPU time of the process. Other programs affect it less than the elapsed time.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func BenchmarkGetVM10000(b *testing.B) {
	benchmarkGet(b, func(s vcdsim.State) string { return "/api/vApp/vm-" + s.VMs[5000].ID })
}

func BenchmarkGetVApp10000(b *testing.B) {
	benchmarkGet(b, func(s vcdsim.State) string { return "/api/vApp/vapp-" + s.VApps[50].ID })
}

func benchmarkGet(b *testing.B, path func(vcdsim.State) string) {
	b.Helper()
	d := newDirect(b)
	at := path(d.sim.State())
	for b.Loop() { // which starts the clock
		d.get(b, at)
	}
}

// TestTenThousandVMs counts the allocations of a page, which are the same on every machine: only the returned rows are
// created. The benchmarks measure the time.
func TestTenThousandVMs(t *testing.T) {
	g := NewWithT(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := newDirect(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d MiB", used>>20)

	g.Expect(d.sim.State().VMs).To(HaveLen(largest))
	g.Expect(used).To(BeNumerically("<", 100<<20))
	for name, path := range pages(d.sim) {
		allocations := testing.AllocsPerRun(3, func() {
			d.sim.Edit(func(*vcdsim.Editor) {})
			d.get(t, path)
		})
		t.Logf("%s: %.0f allocations", name, allocations)
		g.Expect(allocations).To(BeNumerically("<", 4*largest), name)
	}
	g.Expect(string(d.get(t, "/api/query?type=vm&pageSize=128&page=79"))).To(ContainSubstring(fmt.Sprintf(`total="%d"`,
		largest+1)))
}

// TestPagesOfALongListShowChanges changes a VM between two requests for the same page.
func TestPagesOfALongListShowChanges(t *testing.T) {
	g := NewWithT(t)
	d := newDirect(t)
	const page = "/api/query?type=vm&pageSize=2&sortDesc=name"
	g.Expect(d.get(t, page)).To(Equal(d.get(t, page)), "nothing has changed")
	g.Expect(string(d.get(t, page))).NotTo(ContainSubstring("zzz"))

	vm := d.sim.State().VMs[7].ID
	g.Expect(d.get(t, page)).NotTo(BeEmpty())
	d.sim.Edit(func(e *vcdsim.Editor) { e.VM(vm).Name = "zzz" })
	g.Expect(string(d.get(t, page))).To(ContainSubstring(`name="zzz"`))

	next := string(d.get(t, page+"&page=2"))
	g.Expect(next).To(ContainSubstring(`page="2"`))
	g.Expect(next).NotTo(ContainSubstring("zzz"), "another page of the same list")
	g.Expect(string(d.get(t, page+"&filter=name==zzz"))).To(ContainSubstring(`total="1"`), "another list")
}

// TestAListIsOfItsCaller sends the same query as two users, without any other request between them.
func TestAListIsOfItsCaller(t *testing.T) {
	g := NewWithT(t)
	tenant := newDirect(t)
	provider := &direct{sim: tenant.sim}
	provider.logIn("/cloudapi/1.0.0/sessions/provider", "administrator@System")
	const page = "/api/query?type=vm&pageSize=2&sortAsc=name"

	g.Expect(string(tenant.get(t, page))).NotTo(ContainSubstring("vmNameInVc="))
	g.Expect(string(provider.get(t, page))).To(ContainSubstring("vmNameInVc="))
	g.Expect(string(tenant.get(t, page))).NotTo(ContainSubstring("vmNameInVc="))
}

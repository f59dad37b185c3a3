// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

// siteOf returns the value of the label site for a fake.
func siteOf(f *fakeVCD) string { return strings.TrimPrefix(f.URL, "https://") }

// expectMetrics compares the named metrics with their text format, in which SITE is replaced by the site of the fake.
func expectMetrics(g *WithT, registry prometheus.Gatherer, f *fakeVCD, names []string, want string) {
	var lines []string
	for line := range strings.Lines(want) {
		lines = append(lines, strings.TrimLeft(line, "\t"))
	}
	text := strings.ReplaceAll(strings.Join(lines, ""), "SITE", siteOf(f))
	g.ExpectWithOffset(1, testutil.GatherAndCompare(registry, strings.NewReader(text), names...)).To(Succeed())
}

// value returns the value of a series, whose labels are written as in a query, or 0.
func value(g *WithT, registry prometheus.Gatherer, name string, labels map[string]string) float64 {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			found := map[string]string{}
			for _, l := range m.GetLabel() {
				found[l.GetName()] = l.GetValue()
			}
			matches := family.GetName() == name
			for k, v := range labels {
				matches = matches && found[k] == v
			}
			if matches {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue() +
					float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}

func TestCallsAreCountedByOperationAndResult(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) { o.Metrics = registry })

	_, err := s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
	for _, status := range []int{400, 403, 404, 500, 429} { // After the last, calls wait.
		code := ""
		if status == 400 {
			code = "BUSY_ENTITY"
		}
		f.on(opVM, func(w http.ResponseWriter, _ *http.Request) { xmlError(w, status, code, "no") })
		_, err = s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(HaveOccurred())
	}

	expectMetrics(g, registry, f, []string{"capvcd_vcd_calls_total"}, `
		# HELP capvcd_vcd_calls_total Number of requests to VCD.
		# TYPE capvcd_vcd_calls_total counter
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="ok"} 1
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="busy"} 1
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="forbidden"} 1
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="not_found"} 1
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="throttled"} 1
		capvcd_vcd_calls_total{operation="GET /api/vApp/vm-{id}",site="SITE",status="unavailable"} 1
		capvcd_vcd_calls_total{operation="GET /api/versions",site="SITE",status="ok"} 1
		capvcd_vcd_calls_total{operation="POST /cloudapi/1.0.0/sessions",site="SITE",status="ok"} 1
	`)
	g.Expect(value(g, registry, "capvcd_vcd_call_duration_seconds", nil)).To(BeEquivalentTo(8))
	g.Expect(value(g, registry, "capvcd_vcd_throttled_total", map[string]string{"by": "vcd"})).To(BeEquivalentTo(1))
}

func TestSessionsAndLoginsAreCounted(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	registry := prometheus.NewRegistry()
	pool := NewPool(PoolOptions{Metrics: registry})
	wrong := f.config()
	wrong.Credentials.Password = "wrong"

	_, err := pool.Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = pool.Session(t.Context(), wrong)
	g.Expect(err).To(MatchError(ErrUnauthorized))

	names := []string{
		"capvcd_vcd_sessions", "capvcd_vcd_credentials_refused", "capvcd_vcd_logins_total",
		"capvcd_vcd_site_up",
	}
	expectMetrics(g, registry, f, names, `
		# HELP capvcd_vcd_credentials_refused Number of sessions whose credentials VCD rejects.
		# TYPE capvcd_vcd_credentials_refused gauge
		capvcd_vcd_credentials_refused{site="SITE"} 1
		# HELP capvcd_vcd_logins_total Logins.
		# TYPE capvcd_vcd_logins_total counter
		capvcd_vcd_logins_total{result="rejected",site="SITE"} 1
		capvcd_vcd_logins_total{result="success",site="SITE"} 1
		# HELP capvcd_vcd_sessions Number of logged-in sessions.
		# TYPE capvcd_vcd_sessions gauge
		capvcd_vcd_sessions{site="SITE"} 1
		# HELP capvcd_vcd_site_up Availability of a site: 1 if it responds, otherwise 0.
		# TYPE capvcd_vcd_site_up gauge
		capvcd_vcd_site_up{site="SITE"} 1
	`)
	f.on("DELETE /api/session", func(http.ResponseWriter, *http.Request) {})
	g.Expect(pool.Close(t.Context())).To(Succeed())
	g.Expect(testutil.GatherAndCount(registry, "capvcd_vcd_sessions")).To(BeZero(), "a closed pool has no series")
}

func TestPoolsOfARegistryShareTheirMetrics(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	registry := prometheus.NewRegistry()

	for range 2 {
		session(t, f, func(o *PoolOptions) { o.Metrics = registry })
	}

	g.Expect(value(g, registry, "capvcd_vcd_sessions", nil)).To(BeEquivalentTo(2))
	g.Expect(value(g, registry, "capvcd_vcd_logins_total", nil)).To(BeEquivalentTo(2))
}

func TestAnOutageIsReportedUntilTheSiteResponds(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	clock := newFakeClock()
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) {
		o.Metrics = registry
		o.Clock = clock
	})
	site := map[string]string{"site": siteOf(f)}
	f.on(opVM, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	for range 5 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	g.Expect(value(g, registry, "capvcd_vcd_site_up", site)).To(BeZero())
	g.Expect(value(g, registry, "capvcd_vcd_outages_total", site)).To(BeEquivalentTo(1))
	g.Expect(value(g, registry, "capvcd_vcd_throttled_total", map[string]string{"by": "outage"})).To(BeEquivalentTo(3),
		"two calls noticed")

	clock.Advance(time.Minute)
	g.Expect(value(g, registry, "capvcd_vcd_site_up", site)).To(BeZero(), "not tried yet")
	f.on(opVM, answerVM)
	_, err := s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(value(g, registry, "capvcd_vcd_site_up", site)).To(BeEquivalentTo(1))
}

func TestWaitsAreCountedByCause(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	clock := newFakeClock()
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) {
		o.Metrics = registry
		o.Clock = clock
		o.InFlight = 1
	})
	release := hang(t, f, opVM)
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.VMs.VM(t.Context(), testVM)
			results <- err
		}()
	}
	g.Eventually(clock.Waiting).Should(Equal(1))
	g.Eventually(func() float64 {
		return value(g, registry, "capvcd_vcd_calls_in_flight",
			nil)
	}).Should(BeEquivalentTo(1))

	clock.Advance(2 * time.Second)
	release()

	for range 2 {
		g.Eventually(results).Should(Receive())
	}
	inFlight := map[string]string{"by": "in_flight", "site": siteOf(f)}
	g.Expect(value(g, registry, "capvcd_vcd_throttled_total", inFlight)).To(BeEquivalentTo(1))
	g.Expect(value(g, registry, "capvcd_vcd_wait_seconds_total", inFlight)).To(BeEquivalentTo(2))
	g.Expect(value(g, registry, "capvcd_vcd_calls_in_flight", nil)).To(BeZero())
}

func TestTheRateLimitIsCounted(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) {
		o.Metrics = registry
		o.RequestsPerSecond = 2
		o.Burst = 2 // for the login
	})

	g.Eventually(func() float64 { // A late call uses resources that became free in the meantime.
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).NotTo(HaveOccurred())
		return value(g, registry, "capvcd_vcd_throttled_total", map[string]string{"by": "rate_limit"})
	}, testtime.Patience, "1ns").Should(BeNumerically(">=", 1))

	g.Expect(value(g, registry, "capvcd_vcd_wait_seconds_total",
		map[string]string{"by": "rate_limit"})).To(BeNumerically(">", 0))
}

func TestATaskIsCountedOnceForAllFollowers(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) {
		o.Metrics = registry
		o.TaskPoll = 10 * time.Millisecond
	})
	woken := make(chan struct{}, 3)
	follow := func(key string, state TaskState) {
		started := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		task := Task{ID: testTask, Operation: "vdcComposeVapp", State: state, Started: started}
		if state != TaskRunning {
			task.Ended = started.Add(30 * time.Second)
		}
		s.Tasks.Follow(key, task, func() { woken <- struct{}{} })
	}
	release := hang(t, f, "GET /api/query?type=task")
	defer release()

	follow("a", TaskRunning)
	follow("b", TaskRunning)
	g.Expect(value(g, registry, "capvcd_vcd_tasks_running", nil)).To(BeEquivalentTo(1))
	s.Tasks.settle(testTask, Task{
		ID:        testTask,
		Operation: "vdcComposeVapp",
		State:     TaskSucceeded,
		Started:   time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		Ended:     time.Date(2026, 8, 1, 12, 0, 30, 0, time.UTC),
	}, true)
	follow("c", TaskSucceeded)

	for range 3 {
		g.Eventually(woken).Should(Receive())
	}
	success := map[string]string{"operation": "vdcComposeVapp", "result": "success"}
	g.Expect(value(g, registry, "capvcd_vcd_tasks_total", success)).To(BeEquivalentTo(1))
	g.Expect(value(g, registry, "capvcd_vcd_task_duration_seconds", success)).To(BeEquivalentTo(1))
	g.Expect(value(g, registry, "capvcd_vcd_tasks_running", nil)).To(BeZero())
}

func TestTheInventoryAgesUntilVCDRespondsCompletely(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	clock := newFakeClock()
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) {
		o.Metrics = registry
		o.Clock = clock
	})
	f.on(opQueryVM, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<QueryResultRecords xmlns="http://www.vmware.com/vcloud/v1.5" total="0" pageSize="128" page="1"/>`)
	})
	ask := func() error {
		_, err := s.Inventory.VMs(t.Context(), VDC{Ref: Ref{ID: testVDC, Name: "acme-vdc"}}, "alpha", 0)
		return err
	}

	g.Expect(ask()).To(Succeed())
	clock.Advance(10 * time.Minute)
	f.on(opQueryVM, func(w http.ResponseWriter, _ *http.Request) { xmlError(w, http.StatusBadRequest, "", "no") })
	g.Expect(ask()).NotTo(Succeed())

	g.Expect(value(g, registry, "capvcd_vcd_inventory_age_seconds", nil)).To(BeEquivalentTo(600))
	g.Expect(value(g, registry, "capvcd_vcd_inventory_queries_total",
		map[string]string{"result": "failure"})).To(BeEquivalentTo(1))
	clock.Advance(forgetVApp + time.Second)
	g.Expect(testutil.GatherAndCount(registry, "capvcd_vcd_inventory_age_seconds")).To(BeZero(),
		"it is no longer requested")
}

func TestNamesAndIDsDoNotCreateOperations(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	registry := prometheus.NewRegistry()
	s := session(t, f, func(o *PoolOptions) { o.Metrics = registry })
	operations := func() int {
		count, err := testutil.GatherAndCount(registry, "capvcd_vcd_calls_total")
		g.Expect(err).NotTo(HaveOccurred())
		return count
	}
	exercise := func(i int) {
		id := func(kind string) string {
			return fmt.Sprintf("urn:vcloud:%s:%08d-1111-4111-8111-111111111111", kind, i)
		}
		vdc := VDC{Ref: Ref{ID: id("vdc"), Name: fmt.Sprint("vdc-", i)}}
		ctx := t.Context()
		_, _ = s.VDCs.FindVDC(ctx, vdc.Name)
		_, _ = s.VDCs.FindVDC(ctx, vdc.ID)
		_, _ = s.Networks.FindNetwork(ctx, vdc, fmt.Sprint("net-", i))
		_, _ = s.Templates.FindTemplate(ctx, fmt.Sprint("catalog-", i), fmt.Sprint("template-", i))
		_, _ = s.VApps.FindVApp(ctx, vdc, fmt.Sprint("vapp-", i))
		_, _ = s.Inventory.VMs(ctx, vdc, fmt.Sprint("vapp-", i), 0)
		_, _ = s.VMs.VM(ctx, id("vm"))
		_, _ = s.VMs.PowerOn(ctx, id("vm"))
		_, _ = s.VMs.DeleteVM(ctx, id("vm"))
		_, _ = s.VApps.DeleteVApp(ctx, id("vapp"))
	}

	exercise(0)
	once := operations()
	for i := range 20 {
		exercise(i + 1)
	}

	g.Expect(once).To(BeNumerically(">", 5))
	g.Expect(operations()).To(Equal(once))
}

func TestAnInstantTaskIsCountedAsZeroSeconds(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	s := session(t, newFakeVCD(t), func(o *PoolOptions) { o.Metrics = registry })
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	done := Task{ID: testTask, Operation: "vdcComposeVapp", State: TaskSucceeded, Started: at, Ended: at}

	s.Tasks.Follow("a", done, func() {})

	success := map[string]string{"operation": "vdcComposeVapp", "result": "success"}
	g.Expect(value(g, registry, "capvcd_vcd_task_duration_seconds", success)).To(BeEquivalentTo(1))
}

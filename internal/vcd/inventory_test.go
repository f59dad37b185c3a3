// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// vmServer responds to VM queries page by page.
type vmServer struct {
	*fakeVCD

	rows    []string // names; all VMs are in vApp "a"
	shift   int      // rows that vanish after the first page, this many times
	filters []string
}

func newVMServer(t *testing.T, rows ...string) *vmServer {
	t.Helper()
	s := &vmServer{fakeVCD: newFakeVCD(t), rows: rows}
	s.on(opQueryVM, s.reply)
	return s
}

func (s *vmServer) reply(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page int
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if value, ok := strings.CutPrefix(part, "page="); ok {
			page, _ = strconv.Atoi(value)
		}
		if value, ok := strings.CutPrefix(part, "filter="); ok {
			s.filters = append(s.filters, value)
		}
	}
	from := min((page-1)*api.PageSize, len(s.rows))
	to := min(from+api.PageSize, len(s.rows))
	reply(w, `<QueryResultRecords total="%d" page="%d" pageSize="%d">`, len(s.rows), page, api.PageSize)
	for _, name := range s.rows[from:to] {
		reply(w, `<VMRecord name="%s" containerName="a" container="%s" status="POWERED_ON" isBusy="true" ipAddress="10.0.0.1" `+
			`numberOfCpus="2" memoryMB="4096" totalStorageAllocatedMb="20480" storageProfileName="standard" networkName="nodes" `+
			`vmSizingPolicyId="urn:vcloud:vdcComputePolicy:11111111-1111-4111-8111-111111111111" autoUndeployDate="2026-09-01T00:00:00.000Z" vdc="https://x/api/vdc/%s" vdcName="acme-vdc" href="https://x/api/vApp/vm-%s"/>`,
			name, testVApp, urn.UUID(testVDC), rowID(name))
	}
	reply(w, `</QueryResultRecords>`)
	if page == 1 && s.shift > 0 {
		s.shift--
		s.rows = s.rows[1:]
	}
}

func rowID(name string) string {
	n, _ := strconv.Atoi(strings.TrimLeft(name, "vm-"))
	return fmt.Sprintf("%08d-2222-4222-8222-222222222222", n)
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("vm-%04d", i)
	}
	return all
}

func inVDC() VDC { return VDC{Ref: Ref{ID: testVDC, Name: "acme-vdc"}} }

func TestInventoryRows(t *testing.T) {
	g := NewWithT(t)
	f := newVMServer(t, "vm-2", "vm-1")
	s := session(t, f.fakeVCD)

	got, err := s.Inventory.VMs(t.Context(), inVDC(), "a", 0)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(HaveLen(2))
	g.Expect(got[0]).To(Equal(VMRecord{
		Ref:            Ref{ID: "urn:vcloud:vm:" + rowID("vm-1"), Name: "vm-1"},
		VApp:           Ref{ID: testVApp, Name: "a"},
		VDC:            Ref{ID: testVDC, Name: "acme-vdc"},
		Status:         StatusPoweredOn,
		Busy:           true,
		PrimaryAddress: "10.0.0.1",
		LeaseEnd:       time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC),
		CPUs:           2,
		MemoryMiB:      4096,
		StorageMiB:     "20480",
		StorageProfile: "standard",
		PrimaryNetwork: "nodes",
		SizingPolicyID: "urn:vcloud:vdcComputePolicy:" + urn.UUID(testVDC),
	}))
	g.Expect(f.filters[0]).To(Equal("vdc==" + fiql.Escape(testVDC) +
		";isVAppTemplate==false;(containerName==a)"))
}

func TestInventoryIsSharedUntilItIsTooOld(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newVMServer(t, names(3)...)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	ask := func(maxAge time.Duration) {
		got, err := s.Inventory.VMs(t.Context(), inVDC(), "a", maxAge)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(HaveLen(3))
	}

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { ask(time.Minute) })
	}
	wg.Wait()
	g.Expect(f.count(opQueryVM)).To(Equal(1))
	clock.Advance(59 * time.Second)
	ask(time.Minute)
	g.Expect(f.count(opQueryVM)).To(Equal(1))
	clock.Advance(2 * time.Second)
	ask(time.Minute)
	g.Expect(f.count(opQueryVM)).To(Equal(2))
	s.Inventory.Invalidate(inVDC(), "a")
	ask(time.Minute)
	g.Expect(f.count(opQueryVM)).To(Equal(3))
}

func TestInventoryIsSharedByAllThatNoticedAnEndBeforeIt(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newVMServer(t, names(3)...)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	queries := func() int {
		_, err := s.Inventory.VMs(t.Context(), inVDC(), "a", time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
		return f.count(opQueryVM)
	}
	g.Expect(queries()).To(Equal(1))

	clock.Advance(time.Second)
	noticed := clock.Now()
	s.Inventory.InvalidateBefore(inVDC(), "a", noticed)
	clock.Advance(time.Second)
	g.Expect(queries()).To(Equal(2))
	s.Inventory.InvalidateBefore(inVDC(), "a", noticed)
	g.Expect(queries()).To(Equal(2), "the query was sent after the end was noticed")

	clock.Advance(time.Second)
	s.Inventory.InvalidateBefore(inVDC(), "a", clock.Now())
	s.Inventory.InvalidateBefore(inVDC(), "a", noticed)
	g.Expect(queries()).To(Equal(3), "an older end does not replace a newer one")
}

func TestInventoryIncludesRequestedVApps(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newVMServer(t, names(1)...)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	for _, vApp := range []string{"a", "b", "a", "b"} {
		_, err := s.Inventory.VMs(t.Context(), inVDC(), vApp, time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(f.count(opQueryVM)).To(Equal(2))
	g.Expect(f.filters[1]).To(HaveSuffix("(containerName==a,containerName==b)"))

	clock.Advance(time.Hour)
	_, err := s.Inventory.VMs(t.Context(), inVDC(), "b", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.filters[2]).To(HaveSuffix("(containerName==b)"), "vApp a was dropped")
}

func TestALargeInventoryIsQueriedInPart(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newVMServer(t, names(fewVMs+1)...)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	// listed returns the vApps in the filter of the query that a request causes.
	listed := func(request func(context.Context, VDC, string) ([]VMRecord, error), vApp string) string {
		before := len(f.filters)
		_, err := request(t.Context(), inVDC(), vApp)
		g.Expect(err).NotTo(HaveOccurred())
		if len(f.filters) == before {
			return "none"
		}
		_, filter, _ := strings.Cut(f.filters[len(f.filters)-1], "false;")
		return strings.ReplaceAll(strings.Trim(filter, "()"), "containerName==", "")
	}
	within := func(maxAge time.Duration) func(context.Context, VDC, string) ([]VMRecord, error) {
		return func(ctx context.Context, vdc VDC, vApp string) ([]VMRecord, error) {
			return s.Inventory.VMs(ctx, vdc, vApp, maxAge)
		}
	}
	for _, vApp := range []string{"a", "b", "c", "d"} {
		g.Expect(listed(within(time.Minute), vApp)).To(Equal(vApp), "the others were just listed")
	}

	clock.Advance(90 * time.Second)
	s.Inventory.Invalidate(inVDC(), "b")
	g.Expect(listed(within(time.Hour), "c")).To(Equal("none"), "only vApp b has changed")
	g.Expect(listed(within(time.Hour), "b")).To(Equal("b,c"), "vApp c is in use")
	s.Inventory.Invalidate(inVDC(), "a")
	s.Inventory.InvalidateBefore(inVDC(), "b", clock.Now().Add(time.Second))
	clock.Advance(time.Second)
	g.Expect(listed(within(time.Hour), "a")).To(Equal("a,b"), "one query follows the end of both tasks")
	g.Expect(listed(within(time.Hour), "b")).To(Equal("none"))

	clock.Advance(5 * time.Minute)
	g.Expect(listed(within(time.Minute), "d")).To(Equal("d"), "nobody needs the other vApps")
	due := clock.Now().Add(-time.Minute)
	sinceDue := func(ctx context.Context, vdc VDC, vApp string) ([]VMRecord, error) {
		return s.Inventory.DueVMs(ctx, vdc, vApp, func(time.Time) time.Time { return due })
	}
	g.Expect(listed(sinceDue, "c")).To(Equal("a,b,c"), "all vApps are due; d was just listed")
	for _, vApp := range []string{"a", "b", "c", "d"} {
		clock.Advance(time.Minute)
		g.Expect(listed(sinceDue, vApp)).To(Equal("none"), "requests may be delayed")
	}
}

func TestCallersCannotModifyTheInventory(t *testing.T) {
	g := NewWithT(t)
	f := newVMServer(t, names(2)...)
	s := session(t, f.fakeVCD)
	got, err := s.Inventory.VMs(t.Context(), inVDC(), "a", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	want := slices.Clone(got)
	got[0].Name = "spoilt"

	g.Expect(s.Inventory.VMs(t.Context(), inVDC(), "a", time.Minute)).To(Equal(want))
}

func TestPaging(t *testing.T) {
	tests := []struct {
		name         string
		rows, shifts int
		calls        int
		kind         error
	}{
		{"one page", api.PageSize, 0, 1, nil},
		{"three pages", 2*api.PageSize + 1, 0, 3, nil},
		{"a row that vanishes between pages causes a retry", 2 * api.PageSize, 1, 4, nil},
		{"rows that keep vanishing cause an error", 3 * api.PageSize, 9, 4, ErrUnavailable},
		{"none", 0, 0, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newVMServer(t, names(tt.rows)...)
			f.shift = tt.shifts
			s := session(t, f.fakeVCD)

			got, err := s.Inventory.VMs(t.Context(), inVDC(), "a", 0)

			g.Expect(f.count(opQueryVM)).To(Equal(tt.calls))
			if tt.kind != nil {
				g.Expect(err).To(MatchError(tt.kind))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(HaveLen(len(f.rows)))
		})
	}
}

func TestAFailureIsNotCached(t *testing.T) {
	g := NewWithT(t)
	f := newVMServer(t, names(1)...)
	f.on(opQueryVM, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s := session(t, f.fakeVCD)
	_, err := s.Inventory.VMs(t.Context(), inVDC(), "a", time.Hour)
	g.Expect(err).To(MatchError(ErrUnavailable))
	f.on(opQueryVM, f.reply)

	got, err := s.Inventory.VMs(t.Context(), inVDC(), "a", time.Hour)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(HaveLen(1))
}

func TestNamesThatWouldChangeTheFilterAreRejected(t *testing.T) {
	g := NewWithT(t)
	f := newVMServer(t)
	s := session(t, f.fakeVCD)

	_, err := s.Inventory.VMs(t.Context(), inVDC(), "a,containerName==*", 0)

	g.Expect(err).To(MatchError(ErrInvalid))
	g.Expect(f.count(opQueryVM)).To(BeZero())
}

// SPDX-License-Identifier: Apache-2.0

package verifysite_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// everyWrite makes the tests below interrupt runs at each write, instead of at a sample.
var everyWrite = flag.Bool("every-write", false, "interrupt and kill runs at every write (minutes)")

// sampled is the step between the writes at which runs are interrupted without the flag. It is a prime, so that the
// sample contains all kinds of writes.
const sampled = 41

// A trap counts the writes of a run, and stops the run at one of them, before or after the site has executed it.
type trap struct {
	at     int
	moment vcdsim.Moment
	spring func()
	// cut drops all connections from then on, as if the process had ended.
	cut bool

	mu     sync.Mutex
	writes int
	sprung bool
}

func (tr *trap) gate(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.cut && tr.sprung {
		return false
	}
	if m != tr.moment || !r.Changes() {
		return true
	}
	tr.writes++
	if tr.writes != tr.at || tr.sprung {
		return true
	}
	tr.sprung = true
	tr.spring()
	return !tr.cut
}

// runInto runs all probes until a trap stops the run at a write, and reports whether the write was reached.
func (to *target) runInto(t *testing.T, at int, moment vcdsim.Moment, cut bool) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := &trap{at: at, moment: moment, spring: cancel, cut: cut}
	session := to.login(t, "capvcd")
	o := options()
	o.Poll = time.Millisecond
	v, err := verifysite.Prepare(ctx, session, o)
	to.Expect(err).NotTo(HaveOccurred())
	to.sim.SetGate(tr.gate)
	_, err = v.Run(ctx)
	to.sim.SetGate(nil)
	switch {
	case !tr.sprung:
		to.Expect(err).NotTo(HaveOccurred())
	case cut:
		to.Expect(err).To(HaveOccurred())
	default:
		to.Expect(errors.Is(err, context.Canceled)).To(BeTrue(), "%v", err)
	}
	return tr.sprung
}

// eachWrite calls f with the numbers of writes until the last one.
func eachWrite(f func(n int) bool) {
	step := sampled
	if *everyWrite {
		step = 1
	}
	for n := 1; f(n); n += step {
		continue
	}
}

func TestAnInterruptedRunRemovesWhatItCreated(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", slower)
	eachWrite(func(n int) bool {
		moment := vcdsim.Moment(n % 2)
		more := to.runInto(t, n, moment, false)
		to.Expect(to.left()).To(BeEmpty(), "interrupted at write %d, moment %d", n, moment)
		return more
	})
}

// A task of the interrupted request may change a vApp while it is removed.
func TestARejectedRemovalIsRetriedAfterAnInterruption(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", slower)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := &trap{
		at:     sampled,
		moment: vcdsim.Worked,
		spring: func() {
			to.sim.Faults().Add(vcdsim.Fault{
				Operation: "DELETE /api/vApp/*",
				Count:     1,
				Status:    http.StatusBadRequest,
			})
			cancel()
		},
	}
	o := options()
	o.Poll = time.Millisecond
	v, err := verifysite.Prepare(ctx, to.login(t, "capvcd"), o)
	to.Expect(err).NotTo(HaveOccurred())
	to.sim.SetGate(tr.gate)

	_, err = v.Run(ctx)

	to.Expect(err).To(MatchError("the run was interrupted: context canceled"))
	to.Expect(to.left()).To(BeEmpty())
	to.Expect(to.sim.Faults().List()).To(BeEmpty(), "the fault occurred")
}

func TestCleanUpRemovesWhatAKilledRunLeft(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", slower)
	eachWrite(func(n int) bool {
		moment := vcdsim.Moment(n % 2)
		more := to.runInto(t, n, moment, true)
		session := to.login(t, "capvcd")
		left, hidden, err := verifysite.Leftovers(t.Context(), session)
		to.Expect(err).NotTo(HaveOccurred())
		to.Expect(hidden).To(BeEmpty())
		to.Expect(verifysite.CleanUp(t.Context(), session, left, verifysite.Options{Poll: time.Millisecond})).To(Succeed())
		to.Expect(to.left()).To(BeEmpty(), "killed at write %d, moment %d", n, moment)
		return more
	})
}

// slower makes tasks slow while a run is stopped, and probes see busy objects.
func slower(cfg *vcdsim.Config) { cfg.Profile.Scale = 0.002 }

func TestObjectsOutsideTheRunAreKept(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", slower)
	to.runInto(t, 12, vcdsim.Arrived, true)
	state := to.sim.State()
	to.Expect(state.VApps).To(HaveLen(1))
	name := state.VApps[0].Name
	ofRun := And(HaveField("Name", name), HaveField("Kind", "vApps"))
	leftovers := func() []verifysite.Leftover {
		left, _, err := verifysite.Leftovers(t.Context(), to.login(t, "capvcd"))
		to.Expect(err).NotTo(HaveOccurred())
		return left
	}
	to.Expect(leftovers()).To(ContainElement(ofRun))

	to.sim.Edit(func(e *vcdsim.Editor) { e.CopyVApp(e.VApp(name), name+"-copied") })
	to.Expect(leftovers()).NotTo(ContainElement(HaveField("Name", name+"-copied")), "it has the name, but no marker")
	to.Expect(leftovers()).To(ContainElement(ofRun))

	to.sim.Edit(func(e *vcdsim.Editor) { e.MoveVM(e.VM(name+"-copied-"+state.VMs[0].Name), e.VApp(name)) })
	to.Expect(leftovers()).NotTo(ContainElement(ofRun), "it contains a foreign VM")
}

func TestAForeignDiskStaysAttached(t *testing.T) {
	to := newTarget(t, vcdsim.K8sTenant(), "capvcd", slower)
	to.runInto(t, 12, vcdsim.Arrived, true)
	session := to.login(t, "capvcd")
	send := func(path, kind, body string) {
		_, err := session.Raw(t.Context(), vcd.RawCall{
			Method:      http.MethodPost,
			Path:        path,
			ContentType: "application/vnd.vmware.vcloud." + kind + "+xml",
			Body:        []byte(body),
		})
		to.Expect(err).NotTo(HaveOccurred())
	}
	state := to.sim.State()
	const name = "capvcd-verify-00000000-disk" // It has the name of a run, but no marker.
	send("/api/vdc/"+state.Model.Orgs[1].VDCs[0].ID+"/disk", "diskCreateParams",
		`<DiskCreateParams xmlns="http://www.vmware.com/vcloud/v1.5"><Disk name="`+name+`" sizeMb="16"/></DiskCreateParams>`)
	disk := ""
	to.Eventually(func() string {
		for _, d := range to.sim.State().Disks {
			if d.Name == name && d.Status == vcdsim.Resolved {
				disk = d.ID
			}
		}
		return disk
	}).ShouldNot(BeEmpty())
	send("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach", "diskAttachOrDetachParams",
		`<DiskAttachOrDetachParams xmlns="http://www.vmware.com/vcloud/v1.5"><Disk href="`+to.sim.URL()+`/api/disk/`+disk+
			`"/></DiskAttachOrDetachParams>`)
	attached := func() []string {
		for _, d := range to.sim.State().Disks {
			if d.ID == disk {
				return d.AttachedTo
			}
		}
		return nil
	}
	to.Eventually(attached).ShouldNot(BeEmpty())
	left, _, err := verifysite.Leftovers(t.Context(), session)
	to.Expect(err).NotTo(HaveOccurred())

	err = verifysite.CleanUp(t.Context(), session, left, verifysite.Options{Poll: time.Millisecond})

	to.Expect(err).To(MatchError(ContainSubstring("a disk of another owner is attached")))
	to.Expect(attached()).NotTo(BeEmpty())
}

// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

var (
	errAway    = errors.New("away")
	errRefused = errors.New("refused")
	errPrivate = errors.New("about one load balancer")
)

// An outage has a cloud that may be unavailable, and a recorder of the reports.
type outage struct {
	*WithT

	*bench
	them   *Outages
	events *record.FakeRecorder
	clock  *testclock.FakeClock
}

func newOutage(t *testing.T, services ...*corev1.Service) *outage {
	t.Helper()
	o := &outage{
		WithT:  NewWithT(t),
		bench:  newBench(t, services...),
		events: record.NewFakeRecorder(100),
		clock:  testclock.NewFakeClock(time.Now()),
	}
	o.them = NewOutages(OutageOptions{
		Explain: func(err error) (Trouble, bool) {
			return Trouble{
				Reason:  "Cloud" + err.Error(),
				Message: "it is " + err.Error(),
				Stays:   errors.Is(err, errRefused),
			}, !errors.Is(err, errPrivate)
		},
		Recorder: o.events,
		Self:     &corev1.ObjectReference{Kind: "Pod", Name: "me"},
		Services: o.bench.them.opts.Services,
		Clock:    o.clock,
	})
	o.events.IncludeObject = true
	return o
}

// after advances the clock, and returns the events.
func (o *outage) after(d time.Duration) []string {
	o.clock.Step(d)
	o.them.report(context.Background())
	var out []string
	for len(o.events.Events) > 0 {
		out = append(out, <-o.events.Events)
	}
	return out
}

const (
	onSelf    = "involvedObject{kind=Pod,apiVersion=}"
	onService = "involvedObject{kind=,apiVersion=}"
)

func TestAnOutageIsReportedOnThePodAndOnceOnEachWaitingObject(t *testing.T) {
	o := newOutage(t, balanced("waits"), balanced("works", published))
	o.them.Note(errAway)
	o.Expect(o.after(outageGracePeriod-time.Second)).To(BeEmpty(), "most outages have ended by then")

	o.Expect(o.after(time.Second)).To(ConsistOf("Warning Cloudaway it is away "+onSelf,
		"Warning Cloudaway The load balancer waits: it is away "+onService))
	o.them.Note(errAway)
	o.Expect(o.after(outageReminder-time.Second)).To(BeEmpty(), "once")
	o.services.add(balanced("came-later"))
	o.Expect(o.after(time.Second)).To(ConsistOf(HaveSuffix(onSelf), HaveSuffix(onService)),
		"a reminder, and the objects that wait now")

	o.them.Note(nil)
	o.Expect(o.after(time.Second)).To(ConsistOf(And(HavePrefix("Normal CloudReachable"), HaveSuffix(onSelf))))
	o.Expect(o.after(time.Hour)).To(BeEmpty())
}

func TestAShortOutageIsNotReported(t *testing.T) {
	o := newOutage(t, balanced("waits"))
	o.them.Note(errAway)
	o.after(outageGracePeriod / 2)
	o.them.Note(nil)
	o.Expect(o.after(outageGracePeriod)).To(BeEmpty())

	o.them.Note(errAway)
	o.Expect(o.after(outageGracePeriod/2)).To(BeEmpty(), "another outage")
}

func TestRejectedCredentialsAreReportedAtOnce(t *testing.T) {
	o := newOutage(t)
	o.them.Note(errRefused)
	o.Expect(o.after(0)).To(ConsistOf(ContainSubstring("it is refused")))

	o.them.Note(errAway)
	o.Expect(o.after(outageGracePeriod)).To(ConsistOf(ContainSubstring("it is away")), "another reason is reported, too")
}

func TestOutagesReachListeners(t *testing.T) {
	o := newOutage(t)
	down := &heard{err: errAway}
	machines := o.them.Machines(down)
	balancer := o.them.Balancer(down)
	heardOf := func() bool { return !o.them.since.IsZero() }

	_, err := machines.Snapshot(t.Context(), 0)
	o.Expect(err).To(MatchError(errAway))
	o.Expect(heardOf()).To(BeTrue())
	down.err = nil
	_, err = balancer.Plan(t.Context(), "", PlanRequest{})
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(heardOf()).To(BeTrue(), "a plan may use earlier observations")
	_, err = machines.Snapshot(t.Context(), 0)
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(heardOf()).To(BeFalse())
	down.err = errPrivate
	_, _ = balancer.Plan(t.Context(), "", PlanRequest{})
	o.Expect(heardOf()).To(BeFalse())
	down.err = fmt.Errorf("%w: %w", loadbalancer.ErrRefused, errAway)
	o.Expect(balancer.Run(t.Context(), "", fakeStep{})).To(And(MatchError(loadbalancer.ErrUnknown),
		Not(MatchError(loadbalancer.ErrRefused))), "no Service requests too much")
	o.Expect(heardOf()).To(BeTrue())
	o.them.Note(nil)
	_, err = balancer.Locate(t.Context(), "dmz")
	o.Expect(err).To(And(MatchError(loadbalancer.ErrUnknown), Not(MatchError(loadbalancer.ErrRefused))))
	o.Expect(heardOf()).To(BeTrue())
	o.them.Note(nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = machines.Snapshot(over, 0)
	_, _ = balancer.Plan(over, "", PlanRequest{})
	o.Expect(heardOf()).To(BeFalse(), "the caller was canceled, the cloud is available")
}

func TestReasonsForDelayedNodesReachListeners(t *testing.T) {
	o := newOutage(t)
	down := &heard{machines: []Machine{{}, {Unready: errRefused}}}
	machines := o.them.Machines(down)

	all, err := machines.Snapshot(t.Context(), 0)

	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(all).To(HaveLen(2))
	o.Expect(o.after(0)).To(ConsistOf(ContainSubstring("it is refused")))
	down.machines = down.machines[:1]
	_, _ = machines.Snapshot(t.Context(), 0)
	o.Expect(o.after(0)).To(ConsistOf(ContainSubstring("CloudReachable")))
}

func TestAnIncompleteSnapshotEndsAnOutageIfTheCloudAnswers(t *testing.T) {
	o := newOutage(t)
	down := &heard{err: errAway}
	machines := o.them.Machines(down)
	_, _ = machines.Snapshot(t.Context(), 0)
	o.Expect(o.after(outageGracePeriod)).To(ConsistOf(ContainSubstring("it is away")))

	down.err = &IncompleteError{Err: errAway}
	_, _ = machines.Snapshot(t.Context(), 0)
	o.Expect(o.after(outageReminder)).To(ConsistOf(ContainSubstring("it is away")), "a part of the cloud is unavailable")

	down.err = &IncompleteError{Err: errPrivate}
	_, _ = machines.Snapshot(t.Context(), 0)
	o.Expect(o.after(outageReminder)).To(ConsistOf(ContainSubstring("CloudReachable")))
}

// heard is a cloud that fails on demand.
type heard struct {
	Machines
	Balancer

	machines []Machine
	err      error
}

func (h *heard) Snapshot(context.Context, time.Duration) ([]Machine, error) { return h.machines, h.err }

func (h *heard) Plan(context.Context, string, PlanRequest) (loadbalancer.Plan, error) {
	return loadbalancer.Plan{}, h.err
}

func (h *heard) Run(context.Context, string, loadbalancer.Step) error { return h.err }

func (h *heard) Locate(context.Context, string) (string, error) { return "", h.err }

package cpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cloud-provider/api"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// soon is after what the cloud is working on.
	soon = 5 * time.Second
	// later is after what somebody has to correct.
	later = time.Minute
)

// again asks to be called again; the controller tells the text as an event, so it says how far things are.
func again(after time.Duration, format string, args ...any) error {
	return api.NewRetryError(fmt.Sprintf(format, args...), after+rand.N(after/2)) //nolint:gosec // jitter
}

// An ensuring is one go at bringing a load balancer to what its Service asks for.
type ensuring struct {
	*LoadBalancers

	service *corev1.Service
	wish    service.Wish
	at      string // id of the place; empty as long as it was not found
	// blank says that the load balancer has never been of use: when it cannot be made, nothing of it stays.
	blank bool
	// unused are addresses that were written down and are not used any more.
	unused []netip.Addr
}

// leaves says whether a Service shall have no load balancer any more. The controller tells of changes of nodes also for Services that are
// being deleted, and as they were when it last worked on them: what deletion has removed must not be made again.
func (l *LoadBalancers) leaves(s *corev1.Service) bool {
	now, err := l.opts.Services.Services(s.Namespace).Get(s.Name)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return now.UID != s.UID || now.DeletionTimestamp != nil || now.Spec.Type != corev1.ServiceTypeLoadBalancer
}

func (l *LoadBalancers) ensure(ctx context.Context, s *corev1.Service) (*corev1.LoadBalancerStatus, error) {
	if l.leaves(s) {
		return s.Status.LoadBalancer.DeepCopy(), nil
	}
	in, err := l.input(ctx, s)
	if err != nil {
		return nil, err
	}
	e := &ensuring{LoadBalancers: l, service: s, wish: service.For(in), blank: len(s.Status.LoadBalancer.Ingress) == 0 && !l.memories.of(s.UID).made}
	l.teller.notices(s, e.wish.Notices)
	if len(e.wish.Refusals) > 0 {
		return nil, e.refused(ctx, e.wish.Refusals)
	}
	if e.wish.Wait != "" {
		return nil, again(soon, "waiting: %s", e.wish.Wait)
	}
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	done, ok := l.turns.try(e.at)
	if !ok {
		return nil, again(2*soon, "waiting for other load balancers at %s", named(e.wish.Gateway))
	}
	defer done()
	if e.wish.DryRun {
		return e.dryRun(ctx)
	}
	status, err := e.converge(ctx)
	if err != nil {
		return status, err
	}
	l.teller.healed(s)
	l.memories.change(s.UID, func(m *memory) { m.made, m.refusal = true, refusal{} })
	return status, e.leaveOthers(ctx, status)
}

// begin finds the place, and leaves alone what was refused just now.
func (e *ensuring) begin(ctx context.Context) error {
	if err := e.locate(ctx); err != nil {
		return e.failed(ctx, 0, 0, err)
	}
	return e.patience()
}

// locate finds the place.
func (e *ensuring) locate(ctx context.Context) (err error) {
	e.at, err = e.place(ctx, e.wish.Gateway)
	return err
}

// converge looks, plans and runs steps until the plan is empty. With an error there is a status only if the one that is published does not
// tell all.
func (e *ensuring) converge(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	var before []string
	for round := range rounds + 1 {
		plan, err := e.choose(ctx)
		if err != nil {
			return nil, e.unseen(ctx, err)
		}
		e.teller.notices(e.service, plan.Notices)
		e.judge(plan, round)
		steps := texts(plan.Steps)
		switch {
		case len(plan.Refusals) > 0:
			return nil, e.refused(ctx, plan.Refusals)
		case plan.Done():
			e.unused = plan.Unused
			return statusOf(plan.Status, e.wish.Terminates), nil
		case len(plan.Stuck) > 0:
			return troubled(e.service, plan.Status), e.told(plan.Stuck)
		case plan.Wait != "":
			return nil, again(soon, "%s", plan.Wait)
		case round == rounds || slices.Equal(steps, before):
			return nil, again(3*soon, "waiting for the cloud to follow: %s", strings.Join(problems(plan), ", "))
		}
		before = steps
		if err := e.carryOut(ctx, plan); err != nil {
			return nil, err
		}
	}
	return nil, again(soon, "not done yet")
}

// unseen says what becomes of a look that failed. The place may be gone, and have a successor of its name.
func (e *ensuring) unseen(ctx context.Context, err error) error {
	if errors.Is(err, lb.ErrRefused) && e.replaced(ctx) {
		return again(soon, "%s is another one than before: the load balancer is made there", named(e.wish.Gateway))
	}
	return e.failed(ctx, 0, 0, err)
}

// judge sees, before anything is done, whether the load balancer is of use already.
func (e *ensuring) judge(plan lb.Plan, round int) {
	if round == 0 && len(plan.Status.Addresses) > 0 {
		e.blank = false
	}
}

// carryOut writes down what is intended, and runs the steps.
func (e *ensuring) carryOut(ctx context.Context, plan lb.Plan) error {
	if err := e.announce(ctx, plan); err != nil {
		return err
	}
	n, err := e.run(ctx, e.service, e.at, plan.Steps)
	if errors.Is(err, lb.ErrRefused) {
		e.remember()
	}
	if err != nil {
		return e.failed(ctx, n, len(plan.Steps), err)
	}
	return nil
}

func texts(steps []lb.Step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.String())
	}
	return out
}

// problems says what is not yet right, or else what is to be done next.
func problems(plan lb.Plan) []string {
	var out []string
	for _, p := range plan.Status.Ports {
		if p.Problem != "" {
			out = append(out, fmt.Sprintf("port %d %s", p.Port, p.Problem))
		}
	}
	if len(out) == 0 && len(plan.Steps) > 0 {
		out = append(out, plan.Steps[0].String())
	}
	return out
}

// failed says what becomes of a step, or a look, that failed.
func (e *ensuring) failed(ctx context.Context, done, of int, err error) error {
	switch {
	case errors.Is(err, lb.ErrBusy):
		return again(soon, "%d of %d steps done, then %s is busy", done, of, named(e.wish.Gateway))
	case errors.Is(err, lb.ErrRefused):
		return e.refused(ctx, []lb.Finding{{Reason: reasonRefused, Message: err.Error()}})
	}
	return err
}

// refused tells why a wish cannot be met, and removes what is there of a load balancer that never was of use. What works stays.
func (e *ensuring) refused(ctx context.Context, why []lb.Finding) error {
	told, err := e.told(why), e.clear(ctx)
	if err == nil {
		err = e.follow(ctx)
	}
	switch {
	case errors.Is(err, lb.ErrBusy):
		return again(soon, "%s is busy", named(e.wish.Gateway))
	case err != nil && !errors.Is(err, lb.ErrRefused):
		return err
	}
	return told
}

// follow lets what stands follow the nodes, though what is wanted now cannot be.
func (e *ensuring) follow(ctx context.Context) error {
	if e.blank || e.wish.DryRun || e.wish.Wait != "" || !slices.Contains(e.configured(), e.wish.Gateway) {
		return nil
	}
	if err := e.locate(ctx); err != nil {
		return nil //nolint:nilerr // why the place is not found is told already
	}
	plan, err := e.opts.Balancer.Plan(ctx, e.at, PlanRequest{Want: e.wish.Desired, Follow: true})
	if err != nil {
		return err
	}
	_, err = e.run(ctx, e.service, e.at, plan.Steps)
	return err
}

// told tells what somebody has to correct, and waits for it.
func (e *ensuring) told(why []lb.Finding) error {
	e.teller.refusals(e.service, why)
	reasons := make([]string, 0, len(why))
	for _, f := range why {
		reasons = append(reasons, f.Reason)
	}
	return again(later, "the Service cannot have what it asks for until something is corrected, see its events: %s", strings.Join(slices.Compact(reasons), ", "))
}

// clear removes a half-built load balancer.
func (e *ensuring) clear(ctx context.Context) error {
	if !e.blank || e.wish.DryRun || !slices.Contains(e.configured(), e.wish.Gateway) {
		return nil
	}
	if err := e.locate(ctx); err != nil {
		return err
	}
	want, err := e.absent(e.service, e.at)
	if err != nil {
		return err
	}
	plan, err := e.opts.Balancer.Plan(ctx, e.at, PlanRequest{Want: want})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(plan.Status.Objects, func(o lb.ObjectStatus) bool { return o.Old }) {
		return nil // it has worked for a predecessor
	}
	_, err = e.run(ctx, e.service, e.at, plan.Steps)
	return err
}

// dryRun tells the plan and leaves everything as it is.
func (e *ensuring) dryRun(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	plan, err := e.opts.Balancer.Plan(ctx, e.at, PlanRequest{Want: e.wish.Desired})
	if err != nil {
		return nil, err
	}
	e.teller.plan(e.service, plan)
	return e.service.Status.LoadBalancer.DeepCopy(), nil
}

// statusOf is what Kubernetes publishes. Where connections end at the load balancer, clients in the cluster must go there, too.
func statusOf(s lb.Status, terminates bool) *corev1.LoadBalancerStatus {
	mode := corev1.LoadBalancerIPModeVIP
	if terminates {
		mode = corev1.LoadBalancerIPModeProxy
	}
	out := &corev1.LoadBalancerStatus{}
	for _, a := range s.Addresses {
		out.Ingress = append(out.Ingress, corev1.LoadBalancerIngress{IP: a.String(), IPMode: &mode, Ports: portsOf(s)})
	}
	return out
}

func portsOf(s lb.Status) []corev1.PortStatus {
	var out []corev1.PortStatus
	for _, p := range s.Ports {
		port := corev1.PortStatus{Port: int32(p.Port), Protocol: corev1.Protocol(p.Protocol)} //nolint:gosec // a port
		if p.Problem != "" {
			port.Error = &p.Problem
		}
		out = append(out, port)
	}
	return out
}

// troubled is what is published of a load balancer parts of which the cloud does not make: the addresses that clients know stay, and say
// which ports they miss.
func troubled(s *corev1.Service, now lb.Status) *corev1.LoadBalancerStatus {
	out := s.Status.LoadBalancer.DeepCopy()
	for i := range out.Ingress {
		out.Ingress[i].Ports = portsOf(now)
	}
	return out
}

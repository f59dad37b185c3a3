// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const (
	// maxRounds is how often one attempt observes, plans and runs steps.
	maxRounds = 3
	// soon is the retry interval while the cloud works on something.
	soon = 5 * time.Second
	// later is the retry interval while a user has to correct something.
	later = time.Minute
)

// retry asks to be called again; the service controller emits the text as an event, so it names the progress.
func retry(after time.Duration, format string, args ...any) error {
	return api.NewRetryError(fmt.Sprintf(format, args...), wait.Jitter(after, 0.5))
}

// waits reports whether an error only asks to be called again.
func waits(err error) bool {
	var retry *api.RetryError
	return errors.As(err, &retry) || err == cloudprovider.ImplementedElsewhere //nolint:errorlint // never wrapped
}

// An attempt brings one load balancer to what its Service asks for. The lock of the Service is held.
type attempt struct {
	balancers *LoadBalancers

	service  *corev1.Service
	wish     service.Wish
	location string // id; empty until it is found
	// blank means that the load balancer has never been of use: when it cannot be made, nothing of it stays.
	blank bool
	// addresses are those of the load balancer, and unused stored ones that are not used any more.
	addresses, unused []netip.Addr
}

func (a *attempt) run(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	a.balancers.events.notices(a.service, "service", a.wish.Notices)
	if len(a.wish.Refusals) > 0 {
		return nil, a.refused(ctx, a.wish.Refusals)
	}
	if a.wish.Wait != "" {
		return nil, retry(soon, "waiting: %s", a.wish.Wait)
	}
	if err := a.locate(ctx); errors.Is(err, plan.ErrBusy) {
		return nil, retry(soon, "waiting: %v", err) // the error has the remedy
	} else if err != nil {
		return nil, a.failed(ctx, 0, 0, err)
	}
	if err := a.backOff(); err != nil {
		return nil, err
	}
	status, err := a.inQueue(ctx)
	if err != nil {
		return status, err
	}
	a.balancers.events.healed(a.service)
	a.balancers.state.change(a.service.UID, func(s *serviceState) {
		s.made = true
		s.refusal = refusal{}
	})
	return status, a.leaveOthers(ctx)
}

// inQueue works at the location, unless enough others do. What is left elsewhere holds up none of them.
func (a *attempt) inQueue(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	free, ok := a.balancers.queue.try(a.location)
	if !ok {
		return nil, retry(2*soon, "waiting for other load balancers at %s", a.where())
	}
	defer free()
	if a.wish.DryRun {
		return nil, a.dryRun(ctx)
	}
	return a.converge(ctx)
}

// locate finds the location.
func (a *attempt) locate(ctx context.Context) (err error) {
	a.location, err = a.balancers.locations.find(ctx, a.wish.Location)
	return err
}

// where describes the location for users.
func (a *attempt) where() string { return a.balancers.locations.describe(a.wish.Location) }

// converge observes, plans and runs steps until the plan is empty. With an error there is a status only if the
// published one is out of date.
func (a *attempt) converge(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	var before []string
	for round := range maxRounds + 1 {
		p, err := a.choose(ctx)
		if err != nil {
			return nil, a.unobserved(ctx, err)
		}
		a.balancers.events.notices(a.service, "plan", p.Notices)
		if round == 0 && len(p.Status.Addresses) > 0 {
			a.blank = false // it is of use already
		}
		if status, done, err := a.outcome(ctx, p); done {
			return status, err
		}
		steps := texts(p.Steps)
		if round == maxRounds || round > 0 && slices.Equal(steps, before) {
			return nil, retry(3*soon, "waiting for the cloud to follow: %s", strings.Join(problems(p), ", "))
		}
		before = steps
		if err := a.carryOut(ctx, p); err != nil {
			return nil, err
		}
	}
	return nil, retry(soon, "not done yet")
}

// outcome returns what follows from a plan without steps to run; false if it has some.
func (a *attempt) outcome(ctx context.Context, p plan.Plan) (_ *corev1.LoadBalancerStatus, done bool, _ error) {
	switch {
	case len(p.Refusals) > 0:
		return nil, true, a.refused(ctx, p.Refusals)
	case p.Done():
		a.addresses = p.Status.Addresses
		a.unused = p.Unused
		return a.published(p.Status), true, nil
	case len(p.Stuck) > 0:
		return stuckStatus(a.service, p.Status), true, a.awaitUser(p.Stuck)
	case p.Wait != "":
		return nil, true, retry(soon, "%s", p.Wait)
	}
	return nil, false, nil
}

// unobserved returns what follows from a failed observation. The location may be gone, and its name another one's now.
func (a *attempt) unobserved(ctx context.Context, err error) error {
	if errors.Is(err, plan.ErrRefused) && a.balancers.locations.replaced(ctx, a.wish.Location, a.location) {
		return retry(soon, "%s is another one than before: the load balancer is made there", a.where())
	}
	return a.failed(ctx, 0, 0, err)
}

// carryOut stores what is intended, and runs the steps.
func (a *attempt) carryOut(ctx context.Context, p plan.Plan) error {
	if err := a.announce(ctx, p); err != nil {
		return err
	}
	n, err := a.balancers.runSteps(ctx, a.service, a.location, p.Steps)
	if errors.Is(err, plan.ErrRefused) {
		a.noteRefusal()
	}
	if err != nil {
		return a.failed(ctx, n, len(p.Steps), err)
	}
	return nil
}

// announce stores what a plan is about to do for the first time: the addresses it uses, and where it makes something.
func (a *attempt) announce(ctx context.Context, p plan.Plan) error {
	n := note{addresses: p.Intent}
	if stored := a.balancers.stored(a.service); len(p.Steps) > 0 && !slices.Contains(stored, a.location) {
		n.locations = append([]string{a.location}, stored...)
		if len(stored) == 0 {
			n.locations = append(n.locations,
				slices.DeleteFunc(a.everywhere(ctx), func(id string) bool { return id == a.location })...)
		}
	}
	return a.write(ctx, n)
}

// write stores a note on the Service.
func (a *attempt) write(ctx context.Context, n note) error {
	if err := a.balancers.store(ctx, a.service, n); err != nil {
		return err
	}
	if n.addresses != nil {
		a.wish.Desired.Intent = slices.Clone(n.addresses)
	}
	return nil
}

func texts(steps []plan.Step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.String())
	}
	return out
}

// problems returns what is not yet right, or else the next step.
func problems(p plan.Plan) []string {
	var out []string
	for _, port := range p.Status.Ports {
		if port.Problem != "" {
			out = append(out, fmt.Sprintf("port %d %s", port.Port, port.Problem))
		}
	}
	if len(out) == 0 && len(p.Steps) > 0 {
		out = append(out, p.Steps[0].String())
	}
	return out
}

// failed returns what follows from a step or an observation that failed.
func (a *attempt) failed(ctx context.Context, done, of int, err error) error {
	switch {
	case errors.Is(err, plan.ErrBusy):
		return retry(soon, "%d of %d steps done, then %s is busy", done, of, a.where())
	case errors.Is(err, plan.ErrRefused):
		return a.refused(ctx, []plan.Finding{{Reason: reasonRefused, Message: err.Error()}})
	}
	return err
}

// dryRun emits the plan and changes nothing. Its error makes Kubernetes leave the status as it is, without the event
// that the load balancer was ensured.
func (a *attempt) dryRun(ctx context.Context) error {
	p, err := a.balancers.opts.Balancer.Plan(ctx, a.location, PlanRequest{Want: a.wish.Desired})
	if err != nil {
		return err
	}
	a.balancers.events.dryRun(a.service, p)
	return cloudprovider.ImplementedElsewhere
}

// ipMode is how clients in the cluster reach the address: where connections end at the load balancer, they must go
// there, too. It is nil where the API server does not store it, as those before Kubernetes 1.29 do: else the status
// would be written again and again.
func (a *attempt) ipMode() *corev1.LoadBalancerIPMode {
	before := slices.DeleteFunc(slices.Clone(a.service.Status.LoadBalancer.Ingress),
		func(i corev1.LoadBalancerIngress) bool { return i.IP == "" })
	if len(before) > 0 && !slices.ContainsFunc(before,
		func(i corev1.LoadBalancerIngress) bool { return i.IPMode != nil }) {
		return nil
	}
	if a.wish.Terminates {
		return ptr.To(corev1.LoadBalancerIPModeProxy)
	}
	return ptr.To(corev1.LoadBalancerIPModeVIP)
}

// published returns what Kubernetes publishes. With a hostname, clients in the cluster resolve it, too.
func (a *attempt) published(s plan.Status) *corev1.LoadBalancerStatus {
	if a.wish.Hostname == "" || len(s.Addresses) == 0 {
		return statusOf(s, a.ipMode())
	}
	return &corev1.LoadBalancerStatus{
		Ingress: []corev1.LoadBalancerIngress{{Hostname: a.wish.Hostname, Ports: portsOf(s)}},
	}
}

// statusOf returns what Kubernetes publishes of addresses.
func statusOf(s plan.Status, mode *corev1.LoadBalancerIPMode) *corev1.LoadBalancerStatus {
	out := &corev1.LoadBalancerStatus{}
	for _, a := range s.Addresses {
		out.Ingress = append(out.Ingress, corev1.LoadBalancerIngress{IP: a.String(), IPMode: mode, Ports: portsOf(s)})
	}
	return out
}

func portsOf(s plan.Status) []corev1.PortStatus {
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

// stuckStatus returns what is published of a load balancer that the cloud makes only in part: known addresses stay,
// with the ports they miss.
func stuckStatus(s *corev1.Service, now plan.Status) *corev1.LoadBalancerStatus {
	out := s.Status.LoadBalancer.DeepCopy()
	for i := range out.Ingress {
		out.Ingress[i].Ports = portsOf(now)
	}
	return out
}

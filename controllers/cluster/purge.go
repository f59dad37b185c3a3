// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// purgeTimeout bounds one attempt to remove the load balancers of a cluster. The next one finds what is left.
	purgeTimeout = 10 * time.Minute
	// afterlife is how long a cloud controller manager may still work when the API server of its cluster is gone: it
	// ends when it could not renew its lease for ten seconds, and no other can acquire it. The API server goes with the
	// control plane, so before the VCDCluster.
	afterlife = 20 * time.Second
	// noteInterval is how often the VCDCluster records a removal: the last one may be that much later than it says.
	noteInterval = afterlife / 4
)

// A purge is the removal of the load balancers of a cluster that is deleted.
type purge struct {
	mu        sync.Mutex
	begun     bool
	endpoint  bool      // it is of the control-plane endpoint, which no cloud controller manager writes
	attempted time.Time // the last attempt
	removal   time.Time // when something was last removed, by any manager; zero: never
	noted     time.Time // the last removal that this process recorded on the VCDCluster; zero: none
	running   bool
	listed    bool     // what a person leaves
	over      bool     // nothing is left, or a person leaves it
	step      string   // the last one
	removed   []string // by all attempts
	remains   []string // that a person leaves
	err       error    // of the last attempt
	retry     time.Time

	missing map[string]time.Time // gateways that are not shown, since when; only the running attempt uses it
}

// proceed reports the progress of the removal, and starts an attempt if one is due.
func (p *purge) proceed(ctx context.Context, s *scope, on gateways) phases.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.now()
	switch {
	case p.over:
		return phases.Done
	case p.running:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Removing load balancers of the cluster from %s: %s", on.name, p.step)
	case p.retry.IsZero():
	case p.complete():
		p.over = true
		if len(p.removed) > 0 {
			balancersDeleted(s.reconciler.Recorder, s.vcdCluster, on.name, p.removed)
		}
		return phases.Done
	case errors.Is(p.err, lb.ErrRefused) && p.mayBeLeft(s.vcdCluster):
		p.over = true
		balancersLeft(s.reconciler.Recorder, s.vcdCluster, fmt.Sprintf("%s may not be read: %v", on.name, p.err))
		return phases.Done
	case now.Before(p.retry):
		return purgeProblem(p.err, on, p.retry.Sub(now))
	}
	p.attempted = now
	p.step = "listing them"
	p.start(ctx, s, on)
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Listing load balancers of the cluster on %s",
		on.name)
}

// mayBeLeft reports whether a refusal ends the removal. With mode None, or if the provider never installed a cloud
// controller manager that creates load balancers, the user needs no right to see gateways. Once a load balancer was
// found and its removal began, the rest is waited for.
func (p *purge) mayBeLeft(c *infrav1.VCDCluster) bool {
	switch {
	case p.endpoint:
		return false
	case c.Spec.CloudProvider.Mode == infrav1.CloudProviderNone:
		return true
	}
	return p.removal.IsZero() && !balancersAllowed(c)
}

// balancersAllowed reports whether the cloud controller manager of a cluster creates load balancers, or ever did.
func balancersAllowed(c *infrav1.VCDCluster) bool {
	managed := c.Spec.CloudProvider.Mode == infrav1.CloudProviderManaged || c.Spec.CloudProvider.Mode == ""
	return c.Annotations[infrav1.LoadBalancersAllowedAnnotation] != "" ||
		managed && c.Spec.LoadBalancer.Mode != infrav1.LoadBalancerDisabled
}

// complete reports whether the last attempt found nothing, at a time when nothing could be created any more.
func (p *purge) complete() bool {
	return p.err == nil && (p.endpoint || p.removal.IsZero() || p.attempted.Sub(p.removal) >= afterlife)
}

// start starts an attempt beside reconciles. Its end wakes the cluster.
func (p *purge) start(ctx context.Context, s *scope, on gateways) {
	a := attempt{
		purge:   p,
		session: s.session,
		driver:  s.session.Balancers(),
		on:      on,
		clock:   s.now,
		options: edge.PurgeOptions{
			Cluster: s.vcdCluster.Spec.InfraID,
			NAT:     usesNAT(s.vcdCluster),
			Only:    func(o lb.Owner) bool { return o.IsEndpoint() == p.endpoint },
		},
	}
	note := removalNote(s.reconciler.Client, s.vcdCluster)
	a.options.Before = func(ctx context.Context, owner lb.Owner, step lb.Step) error {
		ctrl.LoggerFrom(ctx).Info("Removing a load balancer of the cluster", "step", step.String(), "service",
			owner.String())
		return p.before(ctx, step, a.clock(), note)
	}
	p.run(ctx, s, func(ctx context.Context) { a.run(ctx) })
}

// run runs something beside reconciles. Its end wakes the cluster.
func (p *purge) run(ctx context.Context, s *scope, f func(context.Context)) {
	p.running = true
	wake := s.reconciler.wakeUps.ForObject(s.vcdCluster)
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeTimeout)
	go func() {
		defer wake()
		defer cancel()
		f(work)
	}()
}

func (p *purge) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// leave ends the removal with an event; where says what may be left.
func (p *purge) leave(s *scope, where string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	balancersLeft(s.reconciler.Recorder, s.vcdCluster, where)
}

// list lists what is left beside reconciles, once, and ends the removal.
func (p *purge) list(ctx context.Context, s *scope, on gateways) phases.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Listing load balancers of the cluster that are left on %s", on.name)
	case !p.listed:
		p.listed = true
		cluster := s.vcdCluster.Spec.InfraID
		driver := s.session.Balancers()
		p.run(ctx, s, func(ctx context.Context) {
			remains, err := remainsOn(ctx, driver, on, cluster)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running = false
			p.remains = remains
			p.err = err
		})
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Listing load balancers of the cluster that are left on %s", on.name)
	}
	p.over = true
	if len(p.remains) > 0 || p.err != nil {
		where := "on " + on.name + ": " + strings.Join(p.remains, ", ")
		if p.err != nil {
			where += fmt.Sprintf(" (not all can be listed: %v)", p.err)
		}
		balancersLeft(s.reconciler.Recorder, s.vcdCluster, where)
	}
	return phases.Done
}

// A lister lists what a cluster has on a gateway.
type lister interface {
	Remains(ctx context.Context, gateway, cluster string) ([]string, error)
}

// remainsOn lists what a cluster has on some gateways, as far as that is shown.
func remainsOn(ctx context.Context, driver lister, on gateways, cluster string) ([]string, error) {
	all := []string{}
	failed := on.lost
	for _, id := range on.ids {
		found, err := driver.Remains(ctx, id, cluster)
		all = append(all, found...)
		if failed == nil {
			failed = err
		}
	}
	return all, failed
}

// An attempt removes load balancers once, from all gateways.
type attempt struct {
	purge *purge

	session *session.Session
	driver  *edge.Driver
	on      gateways
	options edge.PurgeOptions
	clock   func() time.Time
}

// run clears the gateways: one that fails does not keep the others from being cleared. A refusal counts only if nothing
// else failed.
func (a *attempt) run(ctx context.Context) {
	refused := a.on.lost
	failed := error(nil)
	for _, id := range a.on.ids {
		if err := a.clear(ctx, id); errors.Is(err, lb.ErrRefused) {
			refused = errors.Join(refused, err)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	a.purge.mu.Lock()
	defer a.purge.mu.Unlock()
	a.purge.running = false
	a.purge.err = cmp.Or(failed, refused)
	a.purge.retry = a.clock().Add(retryAfter(a.purge.err))
}

// clear removes what is on a gateway. If that is proved gone, it removes what is not on it.
func (a *attempt) clear(ctx context.Context, id string) error {
	options := a.options
	err := a.driver.Purge(ctx, id, options)
	if !errors.Is(err, lb.ErrRefused) || a.on.vdc.ID == "" || id == a.on.connected {
		return err
	}
	seen, lookErr := a.session.LostGateway(ctx, a.on.vdc, id)
	if lookErr != nil {
		return fmt.Errorf("%w: %w", lb.ErrUnknown, lookErr)
	}
	now := a.clock()
	verdict := gone.Decide(now, gone.Subject{
		Missing:  gone.Missing{Since: a.purge.missing[id]},
		Evidence: gone.Evidence(seen),
	}, nil)
	switch {
	case !verdict.Counts:
		delete(a.purge.missing, id)
		return err
	case a.purge.missing[id].IsZero():
		a.purge.missing[id] = now
	}
	if verdict.State != gone.Gone {
		return fmt.Errorf("%w: edge gateway %s is not shown: %s", lb.ErrRefused, id, verdict.Reason)
	}
	options.Gone = true
	return a.driver.Purge(ctx, id, options)
}

// before records that a step is about to run: first on the VCDCluster, so that another manager knows that something was
// removed.
func (p *purge) before(ctx context.Context, step lb.Step, at time.Time,
	note func(context.Context, time.Time) error,
) error {
	if !p.endpoint && at.Sub(p.noted) >= noteInterval { // only the running attempt uses it
		if err := note(ctx, at); err != nil {
			return err
		}
		p.noted = at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step.String()
	p.removal = at
	p.removed = append(p.removed, string(step.Kind)+" "+step.Name)
	return nil
}

// usesNAT reports whether load balancers of a cluster may be behind DNAT rules.
func usesNAT(c *infrav1.VCDCluster) bool {
	spec := c.Spec.LoadBalancer
	var inherited struct{ OneArm string }
	note := c.Annotations[infrav1.CloudProviderInheritedAnnotation]
	unreadable := note != "" && json.Unmarshal([]byte(note), &inherited) != nil
	endpoint := c.Spec.Endpoint.EdgeGateway
	return endpoint != nil && endpoint.OneArm != nil || spec.OneArm != nil || inherited.OneArm != "" || unreadable ||
		slices.ContainsFunc(spec.Gateways, func(g infrav1.LoadBalancerGateway) bool { return g.OneArm != nil })
}

// retryAfter is how long the next attempt waits.
func retryAfter(err error) time.Duration {
	switch {
	case err == nil:
		return afterlife
	case errors.Is(err, lb.ErrBusy):
		return session.TaskPoll
	case errors.Is(err, lb.ErrRefused):
		return session.RemedyPoll
	}
	return session.UnreachablePoll
}

func purgeProblem(err error, on gateways, after time.Duration) phases.Outcome {
	switch {
	case err == nil:
		return phases.Wait(after, infrav1.LastCheckReason,
			"Load balancers of the cluster are removed from %s, which is checked once more when no cloud controller "+
				"manager can run any more", on.name)
	case errors.Is(err, lb.ErrBusy):
		return phases.Wait(after, infrav1.EntityBusyReason,
			"Waiting for VCD, to remove load balancers of the cluster from %s", on.name)
	case errors.Is(err, lb.ErrRefused):
		return phases.Fail(after, infrav1.LoadBalancersRemainReason,
			"Load balancers of the cluster may be left on %s (%v): grant the right, or to leave them in VCD, annotate "+
				"the VCDCluster with %s=true", on.name, err, infrav1.KeepLoadBalancersAnnotation)
	}
	return phases.Unsure(after, infrav1.LoadBalancersRemainReason,
		"Load balancers of the cluster may be left on %s, which cannot be asked (%v): the deletion waits for VCD. To "+
			"leave them there, annotate the VCDCluster with %s=true", on.name, err, infrav1.KeepLoadBalancersAnnotation)
}

// notedRemoval returns when a manager last removed a load balancer of a cluster, at the latest; zero: none did. An
// annotation that cannot be read, or whose time is still to come, may be from just now.
func notedRemoval(c *infrav1.VCDCluster, now time.Time) time.Time {
	text := c.Annotations[infrav1.LoadBalancersRemovedAnnotation]
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if latest := at.Add(noteInterval); err == nil && latest.Before(now) {
		return latest
	}
	return now
}

// removalNote returns a function that records on the VCDCluster when a load balancer is removed. It runs beside
// reconciles, so it shares no object with them.
func removalNote(to client.Client, c *infrav1.VCDCluster) func(context.Context, time.Time) error {
	uid := c.UID
	namespace := c.Namespace
	name := c.Name
	return func(ctx context.Context, at time.Time) error {
		note, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": uid,
			"annotations": map[string]any{infrav1.LoadBalancersRemovedAnnotation: at.UTC().Format(
				time.RFC3339Nano)},
		}})
		if err != nil {
			return fmt.Errorf("%w: noting a removal: %w", lb.ErrUnknown, err)
		}
		noted := &infrav1.VCDCluster{}
		noted.Namespace = namespace
		noted.Name = name
		if err := to.Patch(ctx, noted, client.RawPatch(types.MergePatchType, note)); err != nil {
			return fmt.Errorf("%w: noting on VCDCluster %s that load balancers are removed: %w", lb.ErrUnknown, name,
				err)
		}
		return nil
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// teardownTime bounds one try to remove the load balancers of a cluster. The next one finds what is left.
	teardownTime = 10 * time.Minute
	// removalRounds is how often a try looks whether something is left, or what else it needs to know.
	removalRounds = 10
	// refusedPatience is how long a deletion waits where VCD refuses to show or remove load balancers, unknownPatience where it does not answer.
	refusedPatience = 2 * time.Minute
	unknownPatience = time.Hour
	// afterlife is how long a cloud controller manager may still work when the API server of its cluster is gone: it ends when it could not
	// renew its lease for ten seconds, and nobody else gets that. Its API server goes with the control plane, so before the VCDCluster.
	afterlife = 20 * time.Second
)

// deleteClusterBalancers removes what the cloud controller manager of the cluster made on the edge gateways of its network: the cloud controller
// manager died with the last machine, or a little later if it did not run on one; so it is looked once more when something was removed. The work
// is done beside reconciles, which look how far it is.
func deleteClusterBalancers(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if neverUsed(c) {
		return phases.Done, nil
	}
	if c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true" {
		s.teardowns.leave(s, "annotation "+infrav1.KeepLoadBalancersAnnotation+" says so")
		return phases.Done, nil
	}
	opened, out, err := s.Identities.Open(ctx, s.Sessions, c)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.session = opened
	at, out, err := s.place(ctx)
	if err != nil || out != phases.Done || at.name == nowhere.name {
		return out, err
	}
	return s.teardowns.step(ctx, s, at)
}

// neverUsed says whether nothing was made for a cluster: not without an id, nor by who never logged in.
func neverUsed(c *infrav1.VCDCluster) bool {
	return c.Spec.InfraID == "" || c.Status.OVDCNetwork == nil && c.Annotations[infrav1.CredentialsAcceptedAnnotation] == ""
}

// teardowns are the removals of load balancers of clusters that are deleted. The zero value is usable.
type teardowns struct {
	mu    sync.Mutex
	byUID map[types.UID]*teardown
}

// A teardown removes the load balancers of a cluster. Who holds the lock of teardowns may look.
type teardown struct {
	began   time.Time // the first try
	tried   time.Time // the last one
	removal time.Time // when something was last removed, by whatever manager; zero: never
	noted   time.Time // what of it the VCDCluster says; zero: nothing of this manager's
	running bool
	over    bool     // nothing is left, or it is given up
	doing   string   // the last step
	removed []string // by all tries
	err     error    // of the last try
	again   time.Time
}

// step looks how far the removal is, and begins it, or begins it again.
func (t *teardowns) step(ctx context.Context, s *scope, at place) (phases.Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.of(s.vcdCluster, s.now())
	switch {
	case now.over:
		return phases.Done, nil
	case now.running:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Removing load balancers of the cluster from %s: %s", at.name, now.doing), nil
	case now.again.IsZero():
	case now.last():
		now.over = true
		if len(now.removed) > 0 {
			balancersDeleted(s.Recorder, s.vcdCluster, at.name, now.removed)
		}
		return phases.Done, nil
	case now.err != nil && s.now().Sub(now.began) >= giveUpAfter(s.vcdCluster, now.err):
		now.over = true
		balancersLeft(s.Recorder, s.vcdCluster, fmt.Sprintf("%s could not be asked, or did not let them be removed: %v", at.name, now.err))
		return phases.Done, nil
	case s.now().Before(now.again):
		return teardownProblem(now.err, at, now.again.Sub(s.now())), nil
	}
	now.running, now.tried, now.doing = true, s.now(), "looking for them"
	t.begin(ctx, s, now, at)
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "Looking for load balancers of the cluster on %s", at.name), nil
}

// last says whether the last try found nothing, at a time when nobody could make anything any more.
func (t *teardown) last() bool {
	return t.err == nil && (t.removal.IsZero() || t.tried.Sub(t.removal) >= afterlife)
}

func (t *teardowns) of(c *infrav1.VCDCluster, now time.Time) *teardown {
	if t.byUID == nil {
		t.byUID = map[types.UID]*teardown{}
	}
	if t.byUID[c.UID] == nil {
		t.byUID[c.UID] = &teardown{began: now, removal: notedRemoval(c, now)}
	}
	return t.byUID[c.UID]
}

// leave ends the removal as it is, and says so once.
func (t *teardowns) leave(s *scope, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.of(s.vcdCluster, s.now()); !now.over {
		now.over = true
		balancersLeft(s.Recorder, s.vcdCluster, why)
	}
}

func (t *teardowns) forget(cluster types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byUID, cluster)
}

// begin starts a try, beside reconciles. Its end wakes the cluster.
func (t *teardowns) begin(ctx context.Context, s *scope, now *teardown, at place) {
	wake, clock := s.wakeUps.ForObject(s.vcdCluster), s.now
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownTime)
	note := s.removalNote()
	r := removal{driver: s.session.Balancers(), at: at, cluster: s.vcdCluster.Spec.InfraID, translated: translates(s.vcdCluster)}
	r.doing = func(ctx context.Context, step lb.Step) error {
		return t.doing(ctx, now, step, clock(), note)
	}
	go func() {
		defer wake()
		defer cancel()
		err := r.run(work)
		t.mu.Lock()
		defer t.mu.Unlock()
		now.running, now.err, now.again = false, err, clock().Add(pauseAfter(err))
	}()
}

// doing notes that a step is about to be taken: first on the VCDCluster, so that no other manager takes what is removed for what never was.
func (t *teardowns) doing(ctx context.Context, now *teardown, step lb.Step, at time.Time, note func(context.Context, time.Time) error) error {
	if at.Sub(now.noted) >= noteEvery { // Nobody else uses it while this runs.
		if err := note(ctx, at); err != nil {
			return err
		}
		now.noted = at
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now.doing, now.removal = step.String(), at
	now.removed = append(now.removed, string(step.Kind)+" "+step.Name)
	return nil
}

// translates says whether load balancers of a cluster may be reached through DNAT rules.
func translates(c *infrav1.VCDCluster) bool {
	spec := c.Spec.LoadBalancer
	return spec.OneArm != nil || slices.ContainsFunc(spec.Gateways, func(g infrav1.LoadBalancerGateway) bool { return g.OneArm != nil })
}

// giveUpAfter is how long a deletion waits for what fails so. A cluster without a cloud controller manager hardly has load balancers, and its user
// need not have the right to see gateways.
func giveUpAfter(c *infrav1.VCDCluster, err error) time.Duration {
	switch {
	case !errors.Is(err, lb.ErrRefused):
		return unknownPatience
	case c.Spec.CloudProvider.Mode == infrav1.CloudProviderNone:
		return 0
	}
	return refusedPatience
}

// pauseAfter is how long the next try waits.
func pauseAfter(err error) time.Duration {
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

func teardownProblem(err error, at place, after time.Duration) phases.Outcome {
	switch {
	case err == nil:
		return phases.Wait(after, infrav1.LastLookReason, "Load balancers of the cluster are removed from %s; it is looked once more when no cloud controller manager can be left", at.name)
	case errors.Is(err, lb.ErrBusy):
		return phases.Wait(after, infrav1.EntityBusyReason, "Waiting for VCD, to remove load balancers of the cluster from %s", at.name)
	case errors.Is(err, lb.ErrRefused):
		return phases.Fail(after, infrav1.LoadBalancersRemainReason,
			"Load balancers of the cluster may be left on %s (%v): grant the right, or remove them and annotate the VCDCluster with %s=true; the deletion goes on without it after %s",
			at.name, err, infrav1.KeepLoadBalancersAnnotation, refusedPatience)
	}
	return phases.Unsure(after, infrav1.LoadBalancersRemainReason,
		"Load balancers of the cluster may be left on %s, which cannot be asked (%v); the deletion goes on without it after %s", at.name, err, unknownPatience)
}

package cpi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
)

const (
	// proofInterval is how far apart two looks at what is not seen must be before it counts as gone.
	proofInterval = 61 * time.Second
	// lookAgain is how often something is looked for that may be gone and is held back.
	lookAgain = 30 * time.Second
)

// A guard decides which machines that are not seen are gone: after two looks a minute apart that show all that must be there,
// and not while so many others are missing, too, that something else must be wrong. It forgets everything with the process: then
// it only takes longer.
type guard struct {
	opts InstanceOptions

	mu      sync.Mutex
	missing map[string]*missing // by provider ID
	last    time.Time           // when a machine was last declared gone
}

// missing is what is known of a machine that is not seen.
type missing struct {
	gone.Missing

	looked  bool      // and that look proved it missing
	next    time.Time // when it is looked for again
	outcome error     // of the last look
}

// errHeldBack is what errors wrap that hold a machine back.
var errHeldBack = errors.New("held back")

func newGuard(opts InstanceOptions) *guard { return &guard{opts: opts, missing: map[string]*missing{}} }

// seen forgets that a machine was missing.
func (g *guard) seen(providerID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.missing, canonical(providerID))
}

// exists decides about the machine of a Node that is not among all.
func (g *guard) exists(ctx context.Context, node *corev1.Node, all []Machine) (bool, error) {
	known, err := knownIDs(g.opts.Nodes, g.opts.Name)
	if err != nil {
		return false, err
	}
	now := g.opts.Clock.Now()
	me := g.note(node.Spec.ProviderID, known, all, now)
	if now.Before(me.next) {
		return false, me.outcome
	}
	_, err = g.opts.Machines.Get(ctx, node.Spec.ProviderID)
	switch {
	case err == nil:
		g.seen(node.Spec.ProviderID)
		return true, nil
	case !errors.Is(err, ErrGone):
		g.unproved(node.Spec.ProviderID, now)
		return false, fmt.Errorf("machine %s of node %s: %w", node.Spec.ProviderID, node.Name, err)
	}
	return g.proved(node, known, now)
}

// note notes every machine that a Node has and VCD does not show, and returns what is known of one.
func (g *guard) note(providerID string, known []string, all []Machine, now time.Time) missing {
	g.mu.Lock()
	defer g.mu.Unlock()
	there := map[string]bool{}
	for _, m := range all {
		there[canonical(m.ProviderID)] = true
	}
	id := canonical(providerID)
	for _, k := range append(known, id) {
		if !there[k] && g.missing[k] == nil {
			g.missing[k] = &missing{Missing: gone.Missing{Name: k, Since: now}}
		}
	}
	maps.DeleteFunc(g.missing, func(k string, m *missing) bool {
		released := !m.Gone.IsZero() // its Node is deleted: it counts for the others for a while
		return there[k] || k != id && !slices.Contains(known, k) && (!released || now.Sub(m.Gone) >= time.Hour)
	})
	return *g.missing[id]
}

// unproved notes that a look proved nothing: the next that does is the first.
func (g *guard) unproved(providerID string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.missing[canonical(providerID)]; m != nil {
		m.looked, m.Since, m.next = false, now, time.Time{}
	}
}

// proved notes that a look showed everything but the machine, and decides.
func (g *guard) proved(node *corev1.Node, known []string, now time.Time) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.missing[canonical(node.Spec.ProviderID)]
	if m == nil {
		return true, nil // seen meanwhile
	}
	if !m.looked {
		m.looked, m.Since = true, now
		g.opts.event(node, "MachineNotSeen", "%s is not seen: it counts as gone if it is not seen in a minute either", m.Name)
	}
	if left := m.Since.Add(proofInterval).Sub(now); left > 0 {
		m.next = now.Add(left)
		m.outcome = fmt.Errorf("machine %s is not seen: it counts as gone if it is not seen in a minute either", m.Name)
		return false, m.outcome
	}
	together := g.together(now)
	if left := gone.HeldBack(now, m.Missing, together, len(known), g.last); left > 0 {
		m.next = now.Add(min(left, lookAgain))
		if !errors.Is(m.outcome, errHeldBack) {
			g.opts.event(node, "GoneHeldBack", "%s is not seen, as are more than a third of the %d machines: they count as gone after ten minutes, one by one. If this one is, delete the Node",
				m.Name, len(known))
		}
		m.outcome = fmt.Errorf("machine %s is not seen, as are too many of the %d machines of the cluster: %w", m.Name, len(known), errHeldBack)
		return false, m.outcome
	}
	m.Gone, g.last = now, now
	return false, nil
}

// together returns all that is missing. What no look has proved missing counts, but is in nobody's way.
func (g *guard) together(now time.Time) []gone.Missing {
	var all []gone.Missing
	for _, m := range g.missing {
		one := m.Missing
		if !m.looked {
			one.Since = now
		}
		all = append(all, one)
	}
	return all
}

// event tells of a Node what people should know.
func (o InstanceOptions) event(node *corev1.Node, reason, format string, args ...any) {
	if o.Recorder != nil {
		o.Recorder.Eventf(node, corev1.EventTypeWarning, reason, format, args...)
	}
}

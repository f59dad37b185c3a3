// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
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

// holdRetry is the interval of checks of a machine whose deletion is held back, or whose absence cannot be proved.
const holdRetry = 30 * time.Second

// A circuitBreaker keeps the input of [gone.Decide] about missing machines. It is lost on restart, which only delays
// decisions.
type circuitBreaker struct {
	opts InstanceOptions

	mu       sync.Mutex
	missing  map[string]*missingMachine // by provider ID
	released time.Time                  // when a machine was last declared gone
}

// missingMachine is the state of a machine that the cloud does not show.
type missingMachine struct {
	gone.Missing

	proved       bool // by one observation, at Since
	holdReported bool // an event was emitted about it
	// elsewhereReported means that an event about the location of the machine was emitted.
	elsewhereReported bool
	next              time.Time // when it is checked again
	outcome           error     // of the last check
}

func newCircuitBreaker(opts InstanceOptions) *circuitBreaker {
	return &circuitBreaker{opts: opts, missing: map[string]*missingMachine{}}
}

// seen records that a machine is not missing.
func (b *circuitBreaker) seen(providerID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.missing, b.opts.canonical(providerID))
}

// exists decides whether the machine of a Node exists, if it is not among all.
func (b *circuitBreaker) exists(ctx context.Context, node *corev1.Node, all []Machine) (bool, error) {
	known, err := b.opts.knownIDs()
	if err != nil {
		return false, err
	}
	now := b.opts.Clock.Now()
	me := b.note(node.Spec.ProviderID, known, all, now)
	if now.Before(me.next) {
		return false, me.outcome
	}
	_, err = b.opts.Machines.Get(ctx, node.Spec.ProviderID)
	if err == nil {
		b.seen(node.Spec.ProviderID)
		return true, nil
	}
	if elsewhere, moved := errors.AsType[*ElsewhereError](err); moved {
		b.reportElsewhere(node, elsewhere)
	}
	absence, ok := errors.AsType[*AbsenceError](err)
	if !ok {
		absence = &AbsenceError{} // a failed read is no evidence
	}
	exists, verdict := b.decide(node, absence.Evidence, len(known), now)
	if ok {
		err = verdict
	}
	if err != nil {
		err = fmt.Errorf("machine %s of node %s: %w", node.Spec.ProviderID, node.Name, err)
	}
	return exists && err == nil, err
}

// reportElsewhere emits once that the machine of a Node is outside the parts of the cloud that are read.
func (b *circuitBreaker) reportElsewhere(node *corev1.Node, err *ElsewhereError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.missing[b.opts.canonical(node.Spec.ProviderID)]; m != nil && !m.elsewhereReported {
		m.elsewhereReported = true
		b.opts.event(node, reasonOutOfScope, "%s is missing: %s", m.Name, err.Message)
	}
}

// note records every machine that a Node has and the cloud does not show, and returns the state of one of them.
func (b *circuitBreaker) note(providerID string, known []string, all []Machine, now time.Time) missingMachine {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := b.opts.ids(all)
	id := b.opts.canonical(providerID)
	for _, k := range append(known, id) {
		if !there[k] && b.missing[k] == nil {
			b.missing[k] = &missingMachine{Missing: gone.Missing{Name: k, Since: now}}
		}
	}
	maps.DeleteFunc(b.missing, func(k string, m *missingMachine) bool {
		released := !m.Gone.IsZero() // its Node is being deleted: the others count it for an hour
		return there[k] || k != id && !slices.Contains(known, k) && (!released || now.Sub(m.Gone) >= time.Hour)
	})
	return *b.missing[id]
}

// decide decides about the machine of a Node after an observation. n is the number of machines in the cluster.
func (b *circuitBreaker) decide(node *corev1.Node, evidence gone.Evidence, n int, now time.Time) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.missing[b.opts.canonical(node.Spec.ProviderID)]
	if m == nil {
		return true, nil // it appeared in the meantime
	}
	verdict := gone.Decide(now, m.subject(node, evidence),
		&gone.Site{Missing: b.others(m, now), Machines: n, Released: b.released})
	if !verdict.Counts {
		m.proved = false
		m.Since = now
		m.next = now.Add(holdRetry)
		m.outcome = errors.New(verdict.Reason.String())
		return false, m.outcome
	}
	if !m.proved {
		m.proved = true
		m.Since = now
		b.opts.event(node, reasonMissing, "%s is missing: %s", m.Name, verdict.Reason)
	}
	switch verdict.State {
	case gone.Gone:
		m.Gone = now
		b.released = now
		return false, nil
	case gone.HeldBack:
		m.Held = now
		if !m.holdReported {
			m.holdReported = true
			b.opts.event(node, reasonTooManyMissing,
				"%s is missing, as are more than a third of the %d machines. After ten minutes, they are treated as deleted, one by one. If this machine is deleted, delete the Node",
				m.Name, n)
		}
		m.outcome = fmt.Errorf("its deletion is postponed: too many of the %d machines of the cluster are missing", n)
	default:
		m.outcome = fmt.Errorf("it is missing: %s", verdict.Reason)
	}
	wait := verdict.After
	if verdict.State != gone.Waiting {
		wait = min(cmp.Or(wait, holdRetry), holdRetry)
	}
	m.next = now.Add(wait)
	return false, m.outcome
}

// subject returns a missing machine as the subject of a decision.
func (m *missingMachine) subject(node *corev1.Node, evidence gone.Evidence) gone.Subject {
	s := gone.Subject{Missing: m.Missing, Evidence: evidence, Born: node.CreationTimestamp.Time}
	if !m.proved {
		s.Since = time.Time{}
	}
	return s
}

// others returns the other missing machines. A machine whose absence is not proved counts, but its age holds nothing
// back.
func (b *circuitBreaker) others(but *missingMachine, now time.Time) []gone.Missing {
	var all []gone.Missing
	for _, m := range b.missing {
		one := m.Missing
		if !m.proved {
			one.Since = now
		}
		if m != but {
			all = append(all, one)
		}
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// maxThings is the maximum number of things of a worker.
const maxThings = 6

// patience bounds the retries of a deletion while other workers keep the object busy. It is long: on a loaded machine, many
// workers of one gateway can starve another for minutes.
const patience = 5 * time.Minute

// sessionAge is the age of a worker's sessions at which it logs in again. Sessions end after an hour.
const sessionAge = 10 * time.Minute

// A worker makes a client create, change and delete its own things. It reports problems at once.
type worker struct {
	name    string
	program string
	rng     *rand.Rand
	client  client
	kinds   []kind
	made    int // counts the created things, for their names
	things  []*thing
	done    map[string]int
	problem func(format string, args ...any)
}

// newWorker logs a client in.
func newWorker(p program, a assignment, problem func(format string, args ...any)) (*worker, error) {
	c, err := p.create(a)
	if err != nil {
		return nil, err
	}
	if err := c.login(); err != nil {
		return nil, fmt.Errorf("logging in: %w", err)
	}
	return &worker{
		name:    fmt.Sprintf("%s-%d", p.name, a.number),
		program: p.name,
		rng:     a.rng,
		client:  c,
		kinds:   c.kinds(),
		done:    map[string]int{},
		problem: problem,
	}, nil
}

// run works until a time, logs in again at intervals, deletes the remaining things, and logs out.
func (w *worker) run(until time.Time) {
	renewal := min(sessionAge, time.Until(until)/3)
	renewed := time.Now()
	for time.Now().Before(until) {
		if time.Since(renewed) > renewal {
			w.logout()
			if err := w.client.login(); err != nil {
				w.problem("%s: logging in: %s", w.name, err)
				return
			}
			renewed = time.Now()
			w.count("log in again")
		}
		w.step()
	}
	for len(w.things) > 0 {
		w.remove(len(w.things) - 1)
	}
	w.logout()
}

// logout ends the sessions of the client.
func (w *worker) logout() {
	if err := w.client.logout(); err != nil {
		w.problem("%s: logging out: %s", w.name, err)
	}
}

// step does one random operation.
func (w *worker) step() {
	n := w.rng.IntN(10)
	switch {
	case len(w.things) == 0, n < 3 && len(w.things) < maxThings:
		w.create()
	case n < 8:
		w.change(w.things[w.rng.IntN(len(w.things))])
	default:
		w.remove(w.rng.IntN(len(w.things)))
	}
}

// create creates a thing. It also keeps a partially created thing, so that it is removed.
func (w *worker) create() {
	k := w.kinds[w.rng.IntN(len(w.kinds))]
	if k.alone && w.has(k.name) {
		return
	}
	w.made++
	t := &thing{
		kind:   k.name,
		number: w.made,
		name:   fmt.Sprintf("%s-%d", w.name, w.made),
	}
	err := k.create(t)
	w.note("create "+k.name, t.name, err)
	if t.remove != nil {
		w.things = append(w.things, t)
	}
}

func (w *worker) has(kind string) bool {
	for _, t := range w.things {
		if t.kind == kind {
			return true
		}
	}
	return false
}

func (w *worker) change(t *thing) {
	if len(t.changes) == 0 {
		return
	}
	c := t.changes[w.rng.IntN(len(t.changes))]
	w.note(c.name+" "+t.kind, t.name, c.do())
}

// remove deletes a thing, and retries while it is busy.
func (w *worker) remove(i int) {
	t := w.things[i]
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = t.remove(); err == nil || !w.client.expected(err) {
			break
		}
	}
	if err != nil {
		w.problem("delete %s %s: %s", t.kind, t.name, err)
	} else {
		w.count("delete " + t.kind)
	}
	w.things = append(w.things[:i], w.things[i+1:]...)
}

// note counts an operation. An error that other clients cause is not a problem.
func (w *worker) note(what, name string, err error) {
	switch {
	case err == nil:
		w.count(what)
	case w.client.expected(err):
		w.count(what + " (in vain)")
	default:
		w.problem("%s %s: %s", what, name, err)
	}
}

func (w *worker) count(what string) { w.done[w.program+": "+what]++ }

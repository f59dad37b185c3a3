// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// maxObjects is the maximum number of objects per worker.
const maxObjects = 6

// timeout limits retries while other workers keep an object busy. It is long, because many workers on one gateway can
// starve another for minutes on a loaded machine.
const timeout = 5 * time.Minute

// sessionAge is the age at which a worker renews its sessions. VCD ends sessions after an hour.
const sessionAge = 10 * time.Minute

// A worker calls a client at random to create, change and delete objects of this worker.
type worker struct {
	name    string
	program string
	rng     *rand.Rand
	client  client
	kinds   []kind
	created int // counts the created objects, for their names
	objects []*object
	done    map[string]int
	problem func(format string, args ...any)
}

// newWorker creates a client and logs it in.
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

// run works until the given time and renews sessions at intervals. Then it deletes the remaining objects and logs out.
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
			w.count("renew sessions")
		}
		w.step()
	}
	for len(w.objects) > 0 {
		w.remove(len(w.objects) - 1)
	}
	w.logout()
}

// logout ends the sessions of the client.
func (w *worker) logout() {
	if err := w.client.logout(); err != nil {
		w.problem("%s: logging out: %s", w.name, err)
	}
}

// step runs one random operation.
func (w *worker) step() {
	n := w.rng.IntN(10)
	switch {
	case len(w.objects) == 0, n < 3 && len(w.objects) < maxObjects:
		w.create()
	case n < 8:
		w.change(w.objects[w.rng.IntN(len(w.objects))])
	default:
		w.remove(w.rng.IntN(len(w.objects)))
	}
}

// create creates an object. Partially created objects are also stored, so that they are removed later.
func (w *worker) create() {
	k := w.kinds[w.rng.IntN(len(w.kinds))]
	if k.single && w.has(k.name) {
		return
	}
	w.created++
	t := &object{
		kind:   k.name,
		number: w.created,
		name:   fmt.Sprintf("%s-%d", w.name, w.created),
	}
	err := k.create(t)
	w.record("create "+k.name, t.name, err)
	if t.remove != nil {
		w.objects = append(w.objects, t)
	}
}

func (w *worker) has(kind string) bool {
	for _, t := range w.objects {
		if t.kind == kind {
			return true
		}
	}
	return false
}

func (w *worker) change(t *object) {
	if len(t.changes) == 0 {
		return
	}
	c := t.changes[w.rng.IntN(len(t.changes))]
	w.record(c.name+" "+t.kind, t.name, c.do())
}

// remove deletes an object. It retries while the object is busy.
func (w *worker) remove(i int) {
	t := w.objects[i]
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		if err = t.remove(); err == nil || !w.client.expected(err) {
			break
		}
	}
	if err != nil {
		w.problem("delete %s %s: %s", t.kind, t.name, err)
	} else {
		w.count("delete " + t.kind)
	}
	w.objects = append(w.objects[:i], w.objects[i+1:]...)
}

// record counts an operation. An error is a problem unless other clients may cause it.
func (w *worker) record(what, name string, err error) {
	switch {
	case err == nil:
		w.count(what)
	case w.client.expected(err):
		w.count(what + " (busy or refused)")
	default:
		w.problem("%s %s: %s", what, name, err)
	}
}

func (w *worker) count(what string) { w.done[w.program+": "+what]++ }

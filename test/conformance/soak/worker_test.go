// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/go-vcloud-director/v2/govcd"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// maxThings is how many things a worker has at most.
const maxThings = 6

// patience is how long a worker tries to delete what others keep busy.
const patience = time.Minute

// sessionAge is how old the sessions of a worker become before it logs in again: they end after an hour.
const sessionAge = 10 * time.Minute

// A thing is something that a worker made.
type thing struct {
	kind    string
	name    string
	changes []change
	remove  func() error
}

// A change is one way to change a thing.
type change struct {
	name string
	do   func() error
}

// A worker is a client with things of its own.
type worker struct {
	number   int
	rng      *rand.Rand
	client   *govcd.VCDClient
	author   *govcd.VCDClient // whose role has entities
	org      *govcd.Org
	vdc      *govcd.Vdc
	edge     *govcd.NsxtEdgeGateway
	made     int // numbers the names
	things   []*thing
	done     map[string]int
	problems []string
}

// newWorker logs a client in and finds where it works.
func newWorker(sim *vcdsim.Simulator, number int, rng *rand.Rand) (*worker, error) {
	site, err := url.Parse(sim.URL() + "/api")
	if err != nil {
		return nil, err
	}
	w := &worker{
		number: number,
		rng:    rng,
		client: govcd.NewVCDClient(*site, true),
		author: govcd.NewVCDClient(*site, true),
		done:   map[string]int{},
	}
	if err := w.login(); err != nil {
		return nil, err
	}
	if w.org, err = w.client.GetOrgByName("acme"); err != nil {
		return nil, fmt.Errorf("finding the organization: %w", err)
	}
	if w.vdc, err = w.org.GetVDCByName("acme-vdc", false); err != nil {
		return nil, fmt.Errorf("finding the VDC: %w", err)
	}
	if w.edge, err = w.vdc.GetNsxtEdgeGatewayByName("acme-vdc-gateway"); err != nil {
		return nil, fmt.Errorf("finding the edge gateway: %w", err)
	}
	return w, nil
}

// login opens the sessions of both clients.
func (w *worker) login() error {
	if err := w.client.Authenticate("admin", "password", "acme"); err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	if err := w.author.Authenticate("capvcd", "password", "acme"); err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	return nil
}

// logout ends the sessions of both clients.
func (w *worker) logout() {
	for _, client := range []*govcd.VCDClient{w.client, w.author} {
		if err := client.Disconnect(); err != nil {
			w.problems = append(w.problems, fmt.Sprintf("worker %d: logging out: %s", w.number, err))
		}
	}
}

// run works until a time, with a new session now and then, deletes what is left, and logs out.
func (w *worker) run(until time.Time) {
	renewal := min(sessionAge, time.Until(until)/3)
	renewed := time.Now()
	for time.Now().Before(until) {
		if time.Since(renewed) > renewal {
			w.logout()
			if err := w.login(); err != nil {
				w.problems = append(w.problems, fmt.Sprintf("worker %d: %s", w.number, err))
				return
			}
			renewed = time.Now()
			w.done["log in again"]++
		}
		w.step()
	}
	for len(w.things) > 0 {
		w.remove(len(w.things) - 1)
	}
	w.logout()
}

// step does one thing at random.
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

// create makes something. What could be made in part only is kept, too, so that it is removed.
func (w *worker) create() {
	k := kinds[w.rng.IntN(len(kinds))]
	if k.alone && w.has(k.name) {
		return
	}
	w.made++
	t := &thing{kind: k.name, name: fmt.Sprintf("soak-%d-%d", w.number, w.made)}
	err := k.create(w, t)
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

// remove deletes a thing, and tries again while it is busy.
func (w *worker) remove(i int) {
	t := w.things[i]
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = t.remove(); err == nil || !busy(err) {
			break
		}
	}
	if busy(err) {
		w.problems = append(w.problems, fmt.Sprintf("worker %d: %s was busy for %s: %s", w.number, t.name, patience, err))
	}
	w.note("delete "+t.kind, t.name, err)
	w.things = append(w.things[:i], w.things[i+1:]...)
}

// note counts what was done. A refusal because something is busy is no problem.
func (w *worker) note(what, name string, err error) {
	switch {
	case err == nil:
		w.done[what]++
	case busy(err):
		w.done[what+" (busy)"]++
	default:
		w.problems = append(w.problems, fmt.Sprintf("worker %d: %s %s: %s", w.number, what, name, err))
	}
}

// busy reports whether something could not be done because another operation runs on it. The client keeps no code.
func busy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "BUSY_ENTITY") || strings.Contains(err.Error(), " is busy ") ||
		strings.Contains(err.Error(), "Unable to perform this action. Contact your cloud administrator."))
}

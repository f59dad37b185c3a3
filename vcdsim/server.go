// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A request is one call while it is answered; handlers run under the simulator's lock.
type request struct {
	*http.Request

	cloud   *cloud
	site    wire.Site // what hrefs begin with
	cell    *Cell     // that answers; nil if none can
	started time.Time
	id      string // request id
	vars    map[string]string
	op      string
	version string
	session *store.Session // nil on open routes
	body    []byte
	size    int64 // of the body; of large files only the beginning is kept
	query   values
}

// A response is what a handler answers: XML, JSON or neither.
type response struct {
	status      int
	xml         *xmltree.Node
	json        any
	raw         []byte // of the control API, or a download
	contentType string
	header      map[string]string
}

type handler func(*request) (*response, error)

// An endpoint is what a route leads to.
type endpoint struct {
	handle  handler
	latency time.Duration
	open    bool // needs no session
	control bool // the simulator's own API
}

// frontend takes requests in, at the site's address or a cell's, and answers them.
type frontend struct {
	sim      *Simulator
	routes   route.Table[endpoint]
	gate     atomic.Pointer[Gate]
	observer func(Exchange)

	balancerMu sync.Mutex // guards lastPicked
	lastPicked int        // counts the balancer's choices of a cell
}

type addRoute func(method, pattern string, h handler, latency time.Duration)

// ServeHTTP answers a request at the site's address, by the cell that the balancer picks.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	s.frontend.serve(w, hr, nil, true) //nolint:contextcheck // the request has it
}

// serve answers a request at the address of the site or of a cell.
func (fe *frontend) serve(w http.ResponseWriter, hr *http.Request, cell *Cell, atSite bool) {
	defer fe.logPanic(hr)
	match, found := fe.routes.Find(hr.Method, hr.URL.EscapedPath())
	r := &request{
		Request: hr,
		cloud:   fe.sim.cloud,
		site:    fe.sim.siteOf(hr),
		cell:    cell,
		vars:    match.Vars,
		op:      match.Operation,
		query:   parseQuery(hr.URL.RawQuery),
		started: time.Now(),
	}
	if strings.HasSuffix(r.op, " /api/query") {
		r.op += " type=" + r.query.get("type")
	}
	if match.Value.control || found != route.Found && isControl(hr.URL.Path) {
		fe.sim.control.serve(w, r, match.Value)
		return
	}
	if atSite {
		r.cell = fe.pick()
	}
	if status, ok := r.cell.admit(w, atSite && len(fe.sim.cells) > 1); !ok {
		fe.sim.journal.add(fe.entry(r, status))
		dropIf(status == 0)
		return
	}
	fe.serveVCD(w, r, match, found)
}

// siteOf is the site part of hrefs: VCD's public address, or where the request came in.
func (s *Simulator) siteOf(hr *http.Request) wire.Site {
	if s.public != "" {
		return wire.Site(s.public)
	}
	return wire.Site("https://" + hr.Host)
}

// logPanic logs a panic, which is a bug of the simulator, and closes the connection.
func (fe *frontend) logPanic(hr *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { //nolint:errorlint // It is compared as net/http does.
		fe.sim.cloud.log.Error("A bug of the simulator: a request could not be answered", "method", hr.Method, "path",
			hr.URL.Path, "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// serveVCD answers a request to VCD: fault, session, version, handler under the lock, fault again, answer.
func (fe *frontend) serveVCD(w http.ResponseWriter, r *request, match route.Match[endpoint], found route.Result) {
	if err := r.read(); err != nil {
		return
	}
	fault := fe.sim.injector.faultFor(r)
	if fault != nil && !fe.sim.injector.pause(r, fault.Delay) {
		panic(http.ErrAbortHandler)
	}
	if fault.replaces() {
		fe.sim.journal.add(fe.entry(r, fault.status()))
		fe.sim.injector.apply(w, r, fault)
		return
	}
	fe.sim.injector.revoke(r, fault)
	fe.enter(Arrived, r, 0)
	if !fe.delay(r.Request, match.Value.latency) {
		return
	}
	res := fe.answer(r, match, found)
	fe.sim.journal.add(fe.entry(r, res.status))
	fe.sim.cloud.log.Debug("Request", "method", r.Method, "path", r.URL.Path, "status", res.status, "took",
		time.Since(r.started))
	fe.enter(Worked, r, res.status)
	dropIf(fault.dropsAfter())
	fe.write(w, r, res, fault)
}

// dropIf closes the connection without an answer.
func dropIf(drop bool) {
	if drop {
		panic(http.ErrAbortHandler)
	}
}

// delay waits as the profile says; only a clock that ticks makes requests slow. False means the caller went away.
func (fe *frontend) delay(hr *http.Request, d time.Duration) bool {
	if hr.Method != http.MethodGet && d < latencyWrite {
		d = latencyWrite
	}
	d = fe.sim.cloud.profile.scaled(d)
	if c, ok := fe.sim.cloud.clock.(*SimClock); d <= 0 || ok && !c.Ticks() {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-hr.Context().Done():
		return false
	}
}

// answer runs the handler under the lock and makes responses of refusals.
func (fe *frontend) answer(r *request, match route.Match[endpoint], found route.Result) *response {
	fe.sim.cloud.mu.Lock()
	defer fe.sim.cloud.mu.Unlock()
	r.id = fe.sim.cloud.ids.Next("request")
	res, err := fe.dispatch(r, match.Value, found)
	fe.sim.cloud.settle()
	if err == nil {
		return res
	}
	var refusal *store.Refusal
	if !errors.As(err, &refusal) {
		refusal = store.Refuse(http.StatusInternalServerError, store.CodeInternal, "%s", err)
	}
	res = &response{status: refusal.Status, header: refusal.Header}
	if r.cloudAPI() {
		res.json = wire.RefusalJSON(refusal, r.id)
	} else {
		res.xml = wire.RefusalXML(refusal, r.id)
		res.contentType = "application/vnd.vmware.vcloud.error+xml"
	}
	return res
}

// unversioned are the paths where requests need no version.
var unversioned = []string{"/api/versions", "/oauth/", "/network/", "/transfer/"}

func (fe *frontend) dispatch(r *request, e endpoint, found route.Result) (*response, error) {
	if !e.open || found != route.Found {
		if err := authenticate(r); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(unversioned, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
		version, err := r.cell.negotiate(r.Header)
		if err != nil {
			return nil, err
		}
		r.version = version
	}
	switch found {
	case route.Found:
		for _, check := range []func(*request) error{
			(*request).whole, (*request).served, (*request).permitted,
			(*request).withinLimits,
		} {
			if err := check(r); err != nil {
				return nil, err
			}
		}
		return e.handle(r)
	case route.WrongMethod:
		fe.sim.journal.unknown(r.op)
		return nil, store.Refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "The method %s is not allowed here.",
			r.Method)
	default:
		fe.sim.journal.unknown(r.op)
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
}

// write sends the response with the headers VCD adds to each.
func (fe *frontend) write(w http.ResponseWriter, r *request, res *response, fault *Fault) {
	var buf bytes.Buffer
	h := w.Header()
	switch {
	case res.xml != nil:
		_ = res.xml.Write(&buf) // a bytes.Buffer does not fail
		h.Set("Content-Type", r.xmlType(res))
	case res.raw != nil:
		buf.Write(res.raw)
		h.Set("Content-Type", res.contentType)
	case res.json != nil:
		if err := json.NewEncoder(&buf).Encode(res.json); err != nil {
			fe.sim.cloud.log.Error("Encoding a response", "error", err)
		}
		h.Set("Content-Type", "application/json;version="+r.version)
	}
	for k, v := range res.header {
		h.Set(k, v)
	}
	h.Set("X-VMWARE-VCLOUD-REQUEST-ID", r.id)
	h.Set("X-VMWARE-VCLOUD-REQUEST-EXECUTION-TIME", executionTime(r.started))
	h.Set("X-VMWARE-VCLOUD-CEIP-ID", fe.sim.cloud.ids.Named("site", "ceip"))
	h.Set("Cache-Control", "no-store, must-revalidate")
	h.Set("Vary", "Accept-Encoding, User-Agent")
	fe.observe(r, res, h, buf.Bytes())
	fe.sim.injector.send(w, r, fault, res.status, buf.Bytes())
}

func (r *request) xmlType(res *response) string {
	t := res.contentType
	if t == "" {
		t = res.xml.Attr("type")
	}
	if t == "" {
		t = "application/xml"
	}
	if r.version != "" {
		t += ";version=" + r.version
	}
	return t
}

// pick is the cell that answers the next request at the site's address, nil if there is none.
func (fe *frontend) pick() *Cell {
	if len(fe.sim.cells) == 1 {
		return fe.sim.cells[0]
	}
	fe.balancerMu.Lock()
	defer fe.balancerMu.Unlock()
	for range fe.sim.cells {
		fe.lastPicked++
		c := fe.sim.cells[fe.lastPicked%len(fe.sim.cells)]
		if c.Status().InRotation {
			return c
		}
	}
	return nil
}

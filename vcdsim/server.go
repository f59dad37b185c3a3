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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
)

// An endpoint is what a route leads to.
type endpoint struct {
	handle  api.Handler
	latency time.Duration
	open    bool // needs no session
	control bool // the simulator's own API
}

// frontend takes requests in, at the site's address or a cell's, and answers them.
type frontend struct {
	cloud    *cloud.Cloud
	journal  *journal
	injector *injector
	control  controller
	public   string        // base of hrefs; "" is the address of the request
	cells    []*cells.Cell // that the balancer chooses from
	routes   route.Table[endpoint]
	gate     atomic.Pointer[Gate]
	observer func(Exchange)

	balancerMu sync.Mutex // guards lastPicked
	lastPicked int        // counts the balancer's choices of a cell
}

// A controller serves the simulator's own API, which is no part of VCD.
type controller interface {
	// owns reports whether a path belongs to the API.
	owns(path string) bool
	// serve answers without the lock; handle is nil if there is no such route.
	serve(w http.ResponseWriter, r *api.Request, handle api.Handler)
}

// add adds a route that needs a session.
func (fe *frontend) add(method, pattern string, h api.Handler, latency time.Duration) {
	fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency})
}

// addOpen adds a route that needs no session.
func (fe *frontend) addOpen(method, pattern string, h api.Handler, latency time.Duration) {
	fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency, open: true})
}

// addControl adds a route of the simulator's own API.
func (fe *frontend) addControl(method, pattern string, h api.Handler) {
	fe.routes.Add(method, pattern, endpoint{handle: h, open: true, control: true})
}

// serve answers a request at the address of the site or of a cell.
func (fe *frontend) serve(w http.ResponseWriter, hr *http.Request, cell *cells.Cell, atSite bool) {
	defer fe.logPanic(hr)
	match, found := fe.routes.Find(hr.Method, hr.URL.EscapedPath())
	r := &api.Request{
		Request:   hr,
		Cloud:     fe.cloud,
		Site:      fe.siteOf(hr),
		Cell:      cell,
		Vars:      match.Vars,
		Operation: match.Operation,
		Query:     api.ParseQuery(hr.URL.RawQuery),
		Started:   time.Now(),
	}
	if strings.HasSuffix(r.Operation, " /api/query") {
		r.Operation += " type=" + r.Query.Get("type")
	}
	if match.Value.control || found != route.Found && fe.control.owns(hr.URL.Path) {
		fe.control.serve(w, r, match.Value.handle)
		return
	}
	if atSite {
		r.Cell = fe.pick()
	}
	if status, ok := r.Cell.Admit(w, atSite && len(fe.cells) > 1); !ok {
		fe.journal.add(fe.entry(r, status))
		dropIf(status == 0)
		return
	}
	fe.serveVCD(w, r, match, found)
}

// siteOf is the site part of hrefs: VCD's public address, or where the request came in.
func (fe *frontend) siteOf(hr *http.Request) wire.Site {
	if fe.public != "" {
		return wire.Site(fe.public)
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
		fe.cloud.Log.Error("A bug of the simulator: a request could not be answered", "method", hr.Method, "path",
			hr.URL.Path, "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// serveVCD answers a request to VCD: fault, session, version, handler under the lock, fault again, answer.
func (fe *frontend) serveVCD(w http.ResponseWriter, r *api.Request, match route.Match[endpoint], found route.Result) {
	if err := r.Read(); err != nil {
		return
	}
	fault := fe.injector.faultFor(r)
	if fault != nil && !fe.injector.pause(r, fault.Delay) {
		panic(http.ErrAbortHandler)
	}
	if replaces(fault) {
		fe.journal.add(fe.entry(r, status(fault)))
		fe.injector.apply(w, r, fault)
		return
	}
	fe.injector.revoke(r, fault)
	fe.enter(Arrived, r, 0)
	if !fe.delay(r.Request, match.Value.latency) {
		return
	}
	res := fe.answer(r, match, found)
	fe.journal.add(fe.entry(r, res.Status))
	fe.cloud.Log.Debug("Request", "method", r.Method, "path", r.URL.Path, "status", res.Status, "took",
		time.Since(r.Started))
	fe.enter(Worked, r, res.Status)
	dropIf(dropsAfter(fault))
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
	if hr.Method != http.MethodGet && d < cloud.LatencyWrite {
		d = cloud.LatencyWrite
	}
	d = fe.cloud.Profile.Scaled(d)
	if c, ok := fe.cloud.Clock.(*clock.SimClock); d <= 0 || ok && !c.Ticks() {
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
func (fe *frontend) answer(r *api.Request, match route.Match[endpoint], found route.Result) *api.Response {
	fe.cloud.Mu.Lock()
	defer fe.cloud.Mu.Unlock()
	r.ID = fe.cloud.IDs.Next("request")
	res, err := fe.dispatch(r, match.Value, found)
	fe.cloud.Settle()
	if err == nil {
		return res
	}
	var refusal *store.Refusal
	if !errors.As(err, &refusal) {
		refusal = store.Refuse(http.StatusInternalServerError, store.CodeInternal, "%s", err)
	}
	res = &api.Response{Status: refusal.Status, Header: refusal.Header}
	if r.CloudAPI() {
		res.JSON = wire.RefusalJSON(refusal, r.ID)
	} else {
		res.XML = wire.RefusalXML(refusal, r.ID)
		res.ContentType = "application/vnd.vmware.vcloud.error+xml"
	}
	return res
}

// unversioned are the paths where requests need no version.
var unversioned = []string{"/api/versions", "/oauth/", "/network/", "/transfer/"}

func (fe *frontend) dispatch(r *api.Request, e endpoint, found route.Result) (*api.Response, error) {
	if !e.open || found != route.Found {
		if err := access.Authenticate(r); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(unversioned, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
		version, err := r.Cell.Negotiate(r.Header)
		if err != nil {
			return nil, err
		}
		r.Version = version
	}
	switch found {
	case route.Found:
		for _, check := range []func(*api.Request) error{
			(*api.Request).Whole, (*api.Request).Served, access.Permitted,
			(*api.Request).WithinLimits,
		} {
			if err := check(r); err != nil {
				return nil, err
			}
		}
		return e.handle(r)
	case route.WrongMethod:
		fe.journal.unknown(r.Operation)
		return nil, store.Refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "The method %s is not allowed here.",
			r.Method)
	default:
		fe.journal.unknown(r.Operation)
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
}

// write sends the response with the headers VCD adds to each.
func (fe *frontend) write(w http.ResponseWriter, r *api.Request, res *api.Response, fault *faults.Fault) {
	var buf bytes.Buffer
	h := w.Header()
	switch {
	case res.XML != nil:
		_ = res.XML.Write(&buf) // a bytes.Buffer does not fail
		h.Set("Content-Type", xmlType(r, res))
	case res.Raw != nil:
		buf.Write(res.Raw)
		h.Set("Content-Type", res.ContentType)
	case res.JSON != nil:
		if err := json.NewEncoder(&buf).Encode(res.JSON); err != nil {
			fe.cloud.Log.Error("Encoding a response", "error", err)
		}
		h.Set("Content-Type", "application/json;version="+r.Version)
	}
	for k, v := range res.Header {
		h.Set(k, v)
	}
	h.Set("X-VMWARE-VCLOUD-REQUEST-ID", r.ID)
	h.Set("X-VMWARE-VCLOUD-REQUEST-EXECUTION-TIME", api.ExecutionTime(r.Started))
	h.Set("X-VMWARE-VCLOUD-CEIP-ID", fe.cloud.IDs.Named("site", "ceip"))
	h.Set("Cache-Control", "no-store, must-revalidate")
	h.Set("Vary", "Accept-Encoding, User-Agent")
	fe.observe(r, res, h, buf.Bytes())
	fe.injector.send(w, r, fault, res.Status, buf.Bytes())
}

func xmlType(r *api.Request, res *api.Response) string {
	t := res.ContentType
	if t == "" {
		t = res.XML.Attr("type")
	}
	if t == "" {
		t = "application/xml"
	}
	if r.Version != "" {
		t += ";version=" + r.Version
	}
	return t
}

// pick is the cell that answers the next request at the site's address, nil if there is none.
func (fe *frontend) pick() *cells.Cell {
	if len(fe.cells) == 1 {
		return fe.cells[0]
	}
	fe.balancerMu.Lock()
	defer fe.balancerMu.Unlock()
	for range fe.cells {
		fe.lastPicked++
		c := fe.cells[fe.lastPicked%len(fe.cells)]
		if c.Status().InRotation {
			return c
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package frontend

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
)

// An endpoint is the target of a route.
type endpoint struct {
	handle  api.Handler
	latency time.Duration
	open    bool // requires no session
	control bool // part of the simulator's own API
}

// Frontend receives requests at the address of the site or of a cell, and serves them.
type Frontend struct {
	Cloud    *cloud.Cloud
	Journal  *journal.Journal
	Injector *Injector
	Control  Controller
	Public   string        // base of hrefs; "" means the address of the request
	Cells    []*cells.Cell // cells that the load balancer selects from
	routes   route.Table[endpoint]
	gate     atomic.Pointer[Gate]
	Observer func(Exchange)

	balancerMu sync.Mutex // guards lastPicked
	lastPicked int        // counts the load balancer's selections
}

// A Controller serves the simulator's own API, which is not part of VCD.
type Controller interface {
	// Owns reports whether a path belongs to the API.
	Owns(path string) bool
	// Serve serves a request without the lock. handle is nil if the route does not exist.
	Serve(w http.ResponseWriter, r *api.Request, handle api.Handler)
}

// Add adds a route that requires a session.
func (fe *Frontend) Add(method, pattern string, h api.Handler, latency time.Duration) {
	fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency})
}

// AddOpen adds a route that requires no session.
func (fe *Frontend) AddOpen(method, pattern string, h api.Handler, latency time.Duration) {
	fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency, open: true})
}

// AddControl adds a route of the simulator's own API.
func (fe *Frontend) AddControl(method, pattern string, h api.Handler) {
	fe.routes.Add(method, pattern, endpoint{handle: h, open: true, control: true})
}

// Serve serves a request at the address of the site or of a cell.
func (fe *Frontend) Serve(w http.ResponseWriter, hr *http.Request, cell *cells.Cell, atSite bool) {
	defer fe.logPanic(hr)
	match, found := fe.routes.Find(hr.Method, hr.URL.EscapedPath())
	r := &api.Request{
		Request:   hr,
		Cloud:     fe.Cloud,
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
	if match.Value.control || found != route.Found && fe.Control.Owns(hr.URL.Path) {
		fe.Control.Serve(w, r, match.Value.handle)
		return
	}
	if atSite {
		r.Cell = fe.pick()
	}
	if status, ok := r.Cell.Admit(w, atSite && len(fe.Cells) > 1); !ok {
		fe.Journal.Add(fe.entry(r, status))
		dropIf(status == 0)
		return
	}
	fe.serveVCD(w, r, match, found)
}

// siteOf returns the base of hrefs: VCD's public address, or the address of the request.
func (fe *Frontend) siteOf(hr *http.Request) wire.Site {
	if fe.Public != "" {
		return wire.Site(fe.Public)
	}
	return wire.Site("https://" + hr.Host)
}

// logPanic logs a panic, which is a bug in the simulator, and closes the connection.
func (fe *Frontend) logPanic(hr *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { //nolint:errorlint // compared as in net/http
		fe.Cloud.Log.Error("Bug in the simulator: cannot respond to a request", "method", hr.Method, "path",
			hr.URL.Path, "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// serveVCD serves a request to VCD: faults, session, version, handler under the lock, faults after the handler,
// response.
func (fe *Frontend) serveVCD(w http.ResponseWriter, r *api.Request, match route.Match[endpoint], found route.Result) {
	if err := r.Read(); err != nil {
		return
	}
	fault := fe.Injector.faultFor(r)
	if fault != nil && !fe.Injector.pause(r, fault.Delay) {
		panic(http.ErrAbortHandler)
	}
	if replaces(fault) {
		fe.Journal.Add(fe.entry(r, status(fault)))
		fe.Injector.apply(w, r, fault)
		return
	}
	fe.Injector.revoke(r, fault)
	fe.enter(Arrived, r, 0)
	if !fe.delay(r.Request, match.Value.latency) {
		return
	}
	res := fe.answer(r, match, found)
	fe.Journal.Add(fe.entry(r, res.Status))
	fe.Cloud.Log.Debug("Request", "method", r.Method, "path", r.URL.Path, "status", res.Status, "took",
		time.Since(r.Started))
	fe.enter(Worked, r, res.Status)
	dropIf(dropsAfter(fault))
	fe.write(w, r, res, fault)
}

// dropIf closes the connection without a response if drop is true.
func dropIf(drop bool) {
	if drop {
		panic(http.ErrAbortHandler)
	}
}

// delay waits for the latency of the profile, if the clock ticks. It returns false if the client disconnected.
func (fe *Frontend) delay(hr *http.Request, d time.Duration) bool {
	if hr.Method != http.MethodGet && d < cloud.LatencyWrite {
		d = cloud.LatencyWrite
	}
	d = fe.Cloud.Profile.Scaled(d)
	if c, ok := fe.Cloud.Clock.(*clock.SimClock); d <= 0 || ok && !c.Ticks() {
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

// answer runs the handler under the lock and converts its errors to responses.
func (fe *Frontend) answer(r *api.Request, match route.Match[endpoint], found route.Result) *api.Response {
	fe.Cloud.Mu.Lock()
	defer fe.Cloud.Mu.Unlock()
	r.ID = fe.Cloud.IDs.Next("request")
	res, err := fe.dispatch(r, match.Value, found)
	fe.Cloud.Settle()
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

// unversioned are the path prefixes of requests that require no version.
var unversioned = []string{"/api/versions", "/oauth/", "/network/", "/transfer/"}

func (fe *Frontend) dispatch(r *api.Request, e endpoint, found route.Result) (*api.Response, error) {
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
		fe.Journal.Unknown(r.Operation)
		return nil, store.Refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "The method %s is not allowed here.",
			r.Method)
	default:
		fe.Journal.Unknown(r.Operation)
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
}

// write sends the response with the headers that VCD adds to every response.
func (fe *Frontend) write(w http.ResponseWriter, r *api.Request, res *api.Response, fault *faults.Fault) {
	var buf bytes.Buffer
	h := w.Header()
	switch {
	case res.XML != nil:
		_ = res.XML.Write(&buf) // never fails
		h.Set("Content-Type", xmlType(r, res))
	case res.Raw != nil:
		buf.Write(res.Raw)
		h.Set("Content-Type", res.ContentType)
	case res.JSON != nil:
		if err := json.NewEncoder(&buf).Encode(res.JSON); err != nil {
			fe.Cloud.Log.Error("Encoding a response", "error", err)
		}
		h.Set("Content-Type", "application/json;version="+r.Version)
	}
	for k, v := range res.Header {
		h.Set(k, v)
	}
	h.Set("X-VMWARE-VCLOUD-REQUEST-ID", r.ID)
	h.Set("X-VMWARE-VCLOUD-REQUEST-EXECUTION-TIME", api.ExecutionTime(r.Started))
	h.Set("X-VMWARE-VCLOUD-CEIP-ID", fe.Cloud.IDs.Named("site", "ceip"))
	h.Set("Cache-Control", "no-store, must-revalidate")
	h.Set("Vary", "Accept-Encoding, User-Agent")
	fe.observe(r, res, h, buf.Bytes())
	fe.Injector.send(w, r, fault, res.Status, buf.Bytes())
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

// pick returns the cell that serves the next request at the site's address, or nil if none is available.
func (fe *Frontend) pick() *cells.Cell {
	if len(fe.Cells) == 1 {
		return fe.Cells[0]
	}
	fe.balancerMu.Lock()
	defer fe.balancerMu.Unlock()
	for range fe.Cells {
		fe.lastPicked++
		c := fe.Cells[fe.lastPicked%len(fe.Cells)]
		if c.Status().InRotation {
			return c
		}
	}
	return nil
}

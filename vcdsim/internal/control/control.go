// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/guests"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
)

// Path is the root of the simulator's control API. The API is not part of VCD, requires no session, and also serves
// requests for cells that are down.
const Path = "/_sim"

// A Route is an operation of the control API. The reference page is generated from the routes.
type Route struct {
	Method, Path string
	Does         string
	Body         string // an example, if there is one
	Handle       api.Handler
}

// Control serves the control API.
type Control struct {
	Cloud       *cloud.Cloud
	Guests      *guests.Guests
	Faults      *faults.Faults
	Journal     *journal.Journal
	Cells       []*cells.Cell
	Site        *tlsserver.Server
	CA          func() []byte           // PEM certificates of the authorities that signed the servers'
	Collections []*documents.Collection // all collections
	Token       string                  // "" allows only callers on the same machine
}

// Routes returns all routes of the control API.
func (ctl *Control) Routes() []Route { //nolint:funlen // a table with one field per line
	return []Route{
		{"GET", "", "The web page: inventory, running tasks and the last requests, live.", "", ctl.getPage},
		{"GET", "/page/{file}", "The files of the page.", "", ctl.getPageFile},
		{
			"GET",
			"/overview",
			"Content of the page. `?since=N` returns only requests after number N, `?filter=TEXT` only vApps and VMs with TEXT in their name.",
			"",
			ctl.getOverview,
		},
		{"GET", "/state", "Dump of the simulated state, without passwords, tokens and private keys.", "", ctl.getState},
		{"GET", "/dump", "Dump of the simulated state with all secrets, for `/_sim/restore`.", "", ctl.getDump},
		{
			"POST",
			"/restore",
			"Replaces the simulated state with a dump, like the restore of a database.",
			`{"format": "vcdsim", …}`,
			ctl.restoreDump,
		},
		{"GET", "/faults", "The fault rules.", "", ctl.listFaults},
		{
			"POST",
			"/faults",
			"Adds a fault rule, and returns it with its ID. See [fault rules](#fault-rules).",
			`{"operation": "GET /api/query type=vm", "count": 3, "status": 503, "header": {"Retry-After": "5"}}`,
			ctl.addFault,
		},
		{"DELETE", "/faults", "Removes all fault rules.", "", ctl.clearFaults},
		{"DELETE", "/faults/{id}", "Removes a fault rule.", "", ctl.removeFault},
		{"GET", "/cells", "The cells of the site and their state.", "", ctl.listCells},
		{
			"POST",
			"/cells/{number}",
			"Changes a cell: `stop`, `crash`, `start`, `restart` (with `down`, a duration), `upgrade` (with `version`), `maintain`, `serve` (ends maintenance), `renewCertificate` (with `newAuthority`).",
			`{"do": "restart", "down": "30s"}`,
			ctl.commandCell,
		},
		{"GET", "/clock", "The simulated time and its rate.", "", ctl.getClock},
		{
			"POST",
			"/clock",
			"Advances the clock, changes its rate, or stops it (`rate` 0).",
			`{"advance": "1h", "rate": 60}`,
			ctl.setClock,
		},
		{
			"GET",
			"/counters",
			"Number of requests of each operation.",
			"",
			func(*api.Request) (*api.Response, error) { return api.JSON(ctl.Journal.Counters()), nil },
		},
		{"DELETE", "/counters", "Resets the counters.", "", ctl.resetCounters},
		{
			"GET",
			"/requests",
			"The last requests, oldest first.",
			"",
			func(*api.Request) (*api.Response, error) { return api.JSON(ctl.Journal.List()), nil },
		},
		{
			"GET",
			"/unhandled",
			"Requested routes that are not simulated.",
			"",
			func(*api.Request) (*api.Response, error) { return api.JSON(ctl.Journal.UnknownRoutes()), nil },
		},
		{
			"GET",
			"/ca",
			"Certificate of the authority that signed the certificate of the simulator, as PEM in a JSON string.",
			"",
			func(*api.Request) (*api.Response, error) { return api.JSON(string(ctl.CA())), nil },
		},
		{"GET", "/metrics", "Metrics for Prometheus.", "", ctl.getMetrics},
	}
}

// maxControlBody is the maximum size of a body of the control API, in bytes: dumps of large sites.
const maxControlBody = 1 << 30

// Owns reports whether a path belongs to the control API.
func (ctl *Control) Owns(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return path == Path || strings.HasPrefix(path, Path+"/")
}

// Serve serves a request without the lock. The methods that it calls acquire it themselves.
func (ctl *Control) Serve(w http.ResponseWriter, r *api.Request, handle api.Handler) {
	if ctl.signIn(w, r) {
		return
	}
	if status, message := ctl.check(r); status != 0 {
		writeJSON(w, status, map[string]string{"error": message})
		return
	}
	if handle == nil {
		writeJSON(w, http.StatusNotFound,
			map[string]string{"error": "the control API has no " + r.Method + " " + r.URL.Path})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err == nil {
		r.Content = body
		var res *api.Response
		if res, err = handle(r); err == nil {
			writeControl(w, res)
			return
		}
	}
	status := http.StatusBadRequest
	if refusal, ok := err.(*store.Refusal); ok { //nolint:errorlint // handlers return it unwrapped
		status = refusal.Status
		err = plainError(refusal.Message)
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

type plainError string

// Error implements error.
func (e plainError) Error() string { return string(e) }

func writeControl(w http.ResponseWriter, res *api.Response) {
	for k, v := range res.Header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if res.Raw == nil {
		if res.JSON == nil {
			w.WriteHeader(res.Status)
			return
		}
		writeJSON(w, res.Status, res.JSON)
		return
	}
	w.Header().Set("Content-Type", res.ContentType)
	w.WriteHeader(res.Status)
	_, _ = w.Write(res.Raw) // the client may have disconnected
}

const tokenCookie = "vcdsim-control"

// check decides whether a request may use the control API. A status of 0 permits it; any other status comes with the
// reason. Without a configured token only callers on this machine may use the API, and with a token only callers that
// send it. Pages of other origins may not change anything.
func (ctl *Control) check(r *api.Request) (status int, message string) {
	if err := http.NewCrossOriginProtection().Check(r.Request); err != nil {
		return http.StatusForbidden, "requests from other origins are not allowed"
	}
	if ctl.Token != "" {
		given := ""
		if c, err := r.Cookie(tokenCookie); err == nil {
			given = c.Value
		}
		if token := r.Token(); token != "" {
			given = token
		}
		if !ctl.isToken(given) {
			return http.StatusUnauthorized,
				"the control API requires its token: Authorization: Bearer TOKEN, or open /_sim/?token=TOKEN"
		}
		return 0, ""
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err == nil && ip != nil && !ip.IsLoopback() {
		return http.StatusForbidden, "without a token, the control API accepts only requests from the same machine"
	}
	return 0, ""
}

func (ctl *Control) isToken(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(ctl.Token)) == 1
}

// signIn moves the token from the URL of the page into a cookie, so that URLs no longer contain it.
func (ctl *Control) signIn(w http.ResponseWriter, r *api.Request) bool {
	given := r.Query.Get("token")
	if ctl.Token == "" || given == "" || strings.Trim(r.URL.Path, "/") != strings.Trim(Path, "/") ||
		!ctl.isToken(given) {
		return false
	}
	http.SetCookie(w, &http.Cookie{
		Name:     tokenCookie,
		Value:    given,
		Path:     Path,
		Secure:   true,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Location", Path+"/")
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// decode parses the body of a control request. Unknown fields are errors.
func decode(r *api.Request, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(r.Content)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return store.BadRequest("reading the request: %s", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

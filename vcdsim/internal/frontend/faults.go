// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
)

// replaces reports whether the rule replaces the handler.
func replaces(f *faults.Fault) bool {
	return f != nil && (f.Hang || f.DropBefore || f.Status != 0 || f.Busy != "")
}

// status returns the status of a replaced request for the request log. It is 0 if there is no response.
func status(f *faults.Fault) int {
	switch {
	case f.Hang || f.DropBefore:
		return 0
	case f.Busy != "":
		return http.StatusBadRequest
	default:
		return f.Status
	}
}

// dropsAfter reports whether the connection is closed after the handler ran.
func dropsAfter(f *faults.Fault) bool { return f != nil && f.DropAfter }

// apply applies a rule that replaces the handler.
func (in *Injector) apply(w http.ResponseWriter, r *api.Request, f *faults.Fault) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-r.Cell.Stopped():
		}
		panic(http.ErrAbortHandler)
	case f.DropBefore:
		panic(http.ErrAbortHandler)
	}
	refusal := refusal(f, r)
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	body, contentType := body(f, r, refusal)
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	in.send(w, r, f, refusal.Status, body)
}

// faultTexts are the default codes and messages of statuses.
var faultTexts = map[int][2]string{
	http.StatusBadRequest:   {store.CodeBadRequest, "Bad request."},
	http.StatusUnauthorized: {store.CodeUnauthorized, "This operation is denied. You need to be authenticated."},
	http.StatusForbidden: {
		store.CodeForbidden,
		"Either you need some or all of the following rights [Base] to perform operations [ENTITY_VIEW] or the target entity is invalid.",
	},
	http.StatusNotFound:            {store.CodeNotFound, "There is no such resource."},
	http.StatusPreconditionFailed:  {"PRECONDITION_FAILED", "The entity was changed by another request."},
	http.StatusTooManyRequests:     {"TOO_MANY_REQUESTS", "Too many requests."},
	http.StatusInternalServerError: {store.CodeInternal, "Internal Server Error"},
	http.StatusBadGateway:          {"BAD_GATEWAY", "Bad Gateway"},
	http.StatusServiceUnavailable:  {"SERVICE_UNAVAILABLE", "The service is temporarily unavailable."},
}

func refusal(f *faults.Fault, r *api.Request) *store.Refusal {
	out := &store.Refusal{Status: f.Status, Code: f.Code, Message: f.Message}
	if f.Busy != "" {
		out.Status = http.StatusBadRequest
		out.Code = store.CodeBusy
		out.Message = text(f.Busy, r)
		return out
	}
	if text, ok := faultTexts[f.Status]; ok {
		if out.Code == "" {
			out.Code = text[0]
		}
		if out.Message == "" {
			out.Message = text[1]
		}
	}
	return out
}

// noID replaces IDs in made-up errors.
const noID = "00000000-0000-0000-0000-000000000000"

// text returns the BUSY_ENTITY message of a running recompose or VM change.
func text(t faults.BusyText, r *api.Request) string {
	owner := store.Entity{Kind: "vapp", ID: noID}
	op := cloud.OpRecompose
	for _, kind := range []string{"vm", "disk", "id", "vapp"} {
		if v, ok := r.Vars[kind]; ok {
			owner.ID = store.Bare(v)
		}
	}
	if r.Vars["vm"] != "" {
		owner.Kind = "vm"
		op = cloud.OpUpdateVM
	}
	return cloud.BusyText(t == faults.BusyTenant, owner, r.Cloud.Tasks.Operations[op].Busy, noID)
}

// body returns an error in the format that the rule requests.
func body(f *faults.Fault, r *api.Request, refusal *store.Refusal) (body []byte, contentType string) {
	kind := f.Body
	if kind == "" {
		kind = faults.BodyXML
		if r.CloudAPI() {
			kind = faults.BodyJSON
		}
	}
	switch kind {
	case faults.BodyEmpty:
		return nil, ""
	case faults.BodyNothing:
		return emptyList(r.CloudAPI())
	case faults.BodyHTML:
		return wire.HTMLPage(refusal.Status, refusal.Message), "text/html; charset=utf-8"
	case faults.BodyJSON:
		out, _ := json.Marshal(wire.RefusalJSON(refusal, noID))
		return append(out, '\n'), "application/json"
	default:
		var buf bytes.Buffer
		_ = wire.RefusalXML(refusal, noID).Write(&buf) // never fails
		return buf.Bytes(), "application/vnd.vmware.vcloud.error+xml"
	}
}

// emptyList returns the response to a query without results.
func emptyList(cloudAPI bool) (body []byte, contentType string) {
	if cloudAPI {
		return []byte(`{"resultTotal":0,"pageCount":0,"page":1,"pageSize":25,"associations":null,"values":[]}` + "\n"),
			"application/json"
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
			`<QueryResultRecords xmlns="http://www.vmware.com/vcloud/v1.5" total="0" pageSize="25" page="1"/>` + "\n"),
		"application/vnd.vmware.vcloud.query.records+xml"
}

// revoke ends the session of the caller, or all sessions and API tokens of the user.
func (in *Injector) revoke(r *api.Request, f *faults.Fault) {
	if f == nil || !f.EndSession && !f.RevokeToken {
		return
	}
	in.Cloud.Mu.Lock()
	defer in.Cloud.Mu.Unlock()
	x := in.Cloud.Store.Sessions[r.Token()]
	if x == nil {
		return
	}
	delete(in.Cloud.Store.Sessions, x.Token)
	if !f.RevokeToken {
		return
	}
	if org := in.Cloud.Store.OrgByName(x.Org); org != nil {
		for i := range org.Users {
			if org.Users[i].Name == x.User {
				org.Users[i].APITokens = nil
			}
		}
	}
	for _, c := range in.Cloud.Store.Clients {
		if c.UserID == x.UserID {
			c.Token = ""
		}
	}
	for token, other := range in.Cloud.Store.Sessions {
		if other.UserID == x.UserID {
			delete(in.Cloud.Store.Sessions, token)
		}
	}
}

// pieces is the number of pieces of a slow body.
const pieces = 10

// send writes a response: at once, slowly, or the first half of it.
func (in *Injector) send(w http.ResponseWriter, r *api.Request, f *faults.Fault, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if f != nil && f.Truncate {
		body = body[:len(body)/2]
	}
	if f == nil || f.SlowBody <= 0 {
		_, _ = w.Write(body) // the client may have disconnected
	} else {
		in.trickle(w, r, f.SlowBody, body)
	}
	if f != nil && f.Truncate {
		_ = http.NewResponseController(w).Flush() // the client may have disconnected
		panic(http.ErrAbortHandler)
	}
}

func (in *Injector) trickle(w http.ResponseWriter, r *api.Request, over time.Duration, body []byte) {
	size := max(1, (len(body)+pieces-1)/pieces)
	for from := 0; from < len(body); from += size {
		if !in.pause(r, over/pieces) {
			return
		}
		_, _ = w.Write(body[from:min(from+size, len(body))])
		_ = http.NewResponseController(w).Flush() // the client may have disconnected
	}
}

// pause waits on the simulator's clock. It returns false if the client disconnected or the cell was stopped.
func (in *Injector) pause(r *api.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	due := make(chan struct{})
	cancel := in.Cloud.Clock.AfterFunc(d, func() { close(due) })
	select {
	case <-due:
		return true
	case <-r.Context().Done():
	case <-r.Cell.Stopped():
	case <-in.Cloud.Ctx.Done():
	}
	cancel()
	return false
}

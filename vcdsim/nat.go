// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const natPath = "1.0.0/edgeGateways/{gateway}/nat/rules"

// natTypes are the kinds of NAT rules; the older field knows no REFLEXIVE.
var natTypes = []string{"DNAT", "SNAT", "NO_DNAT", "NO_SNAT", "REFLEXIVE"}

func natCollection() *collection {
	return &collection{
		path:       natPath,
		kind:       "natRule",
		right:      "GATEWAY_NAT",
		title:      "NAT Rule",
		within:     "gateway",
		bare:       true,
		cursor:     true,
		anonymous:  true,
		unfiltered: true,
		required:   []string{"name"},
		since:      map[string]string{"firewallMatch": "35.2", "priority": "35.2", "type": "36.0", "appliedTo": "36.2"},
		defaults: map[string]any{
			"enabled":                  true,
			"firewallMatch":            "MATCH_INTERNAL_ADDRESS",
			"priority":                 0,
			"description":              "",
			"logging":                  false,
			"internalPort":             nil,
			"applicationPortProfile":   nil,
			"dnatExternalPort":         nil,
			"snatDestinationAddresses": nil,
			"appliedTo":                nil,
			"internalAddresses":        "",
			"externalAddresses":        "",
		},
		scope: func(r *request, _ map[string]any) (scope, error) {
			return gatewayScope(r.session, r.cloud.store, r.vars["gateway"])
		},
		prepare: prepareNAT,
		show: func(_ *request, d *store.Object, out map[string]any) {
			out["version"] = map[string]any{"version": d.Version - 1}
			out["systemRule"] = false
		},
	}
}

// prepareNAT settles the type, which has an old and a new name, and checks addresses, profile and version.
func prepareNAT(r *request, body map[string]any, old *store.Object) error {
	kind, err := settleNATType(body, old)
	if err != nil {
		return err
	}
	if err := withinBounds(body, bound{"priority", 0, 2147481599}); err != nil {
		return err
	}
	if err := natAddresses(body, kind); err != nil {
		return err
	}
	if err := natProfile(r.session, r.cloud.store, body); err != nil {
		return err
	}
	if err := sameVersion(body, old); err != nil {
		return err
	}
	return ownAddress(r, r.vars["gateway"], store.Text(body, "externalAddresses"))
}

func settleNATType(body map[string]any, old *store.Object) (string, error) {
	kind := store.Text(body, "type")
	if t := store.Text(body, "ruleType"); t != "" && (old == nil || kind == "" || t != store.Text(old.Body, "ruleType")) {
		kind = t
	}
	if !slices.Contains(natTypes, kind) {
		return "", store.BadRequest("The NAT rule type %q is invalid.", kind)
	}
	body["type"] = kind
	body["ruleType"] = kind
	if kind == "REFLEXIVE" {
		body["ruleType"] = nil
	}
	return kind, nil
}

// natNeeds are the fields that rules of each type must have.
var natNeeds = map[string][]string{
	"DNAT":      {"externalAddresses", "internalAddresses"},
	"SNAT":      {"externalAddresses"},
	"NO_DNAT":   {"externalAddresses"},
	"NO_SNAT":   {"internalAddresses"},
	"REFLEXIVE": {"externalAddresses", "internalAddresses"},
}

func natAddresses(body map[string]any, kind string) error {
	for _, field := range natNeeds[kind] {
		if store.Text(body, field) == "" {
			return store.BadRequest("The field %s must not be empty for a NAT rule of type %s.", field, kind)
		}
	}
	for _, field := range []string{"externalAddresses", "internalAddresses", "snatDestinationAddresses"} {
		if a := store.Text(body, field); a != "" && len(parseAddresses(a)) == 0 {
			return store.BadRequest("The IP address %q is invalid.", a)
		}
	}
	return natPort(body)
}

// natProfile completes the reference to the application port profile.
func natProfile(session *store.Session, st *store.Store, body map[string]any) error {
	id := store.RefID(body, "applicationPortProfile")
	if id == "" {
		body["applicationPortProfile"] = nil
		return nil
	}
	ref, err := documentReference(session, st, profilePath, "APPLICATION_PORT_PROFILE_VIEW", id)
	if err == nil {
		body["applicationPortProfile"] = ref
	}
	return err
}

func natPort(body map[string]any) error {
	port := store.Text(body, "dnatExternalPort")
	if port == "" {
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return store.BadRequest("The port %q is invalid.", port)
	}
	return nil
}

// sameVersion refuses a change of an object that changed since it was read. Requests without a version are not checked.
func sameVersion(body map[string]any, old *store.Object) error {
	v, ok := body["version"].(map[string]any)
	delete(body, "version")
	if old == nil || !ok {
		return nil
	}
	if n, ok := v["version"].(float64); ok && int(n) != old.Version-1 {
		return store.Refuse(http.StatusBadRequest, "OBJECT_VERSION_MISMATCH",
			"The version %d of the object is not the current version %d.", int(n), old.Version-1)
	}
	return nil
}

// documentReference finds a document the caller sees and returns the reference to it.
func documentReference(session *store.Session, st *store.Store, path, operation, id string) (map[string]any, error) {
	d := st.Documents.Find(path, id)
	if d == nil || d.OrgID != "" && !session.Sees(d.OrgID) {
		return nil, store.Forbidden(operation, id)
	}
	return map[string]any{"id": d.ID(), "name": store.Text(d.Body, "name")}, nil
}

// listByCursor answers a list of what a gateway or network has, the next page behind a cursor.
func listByCursor(c *collection) handler {
	return func(r *request) (*response, error) {
		if _, err := c.scope(r, nil); err != nil {
			return nil, err
		}
		if c.unfiltered && r.query.get("filter") != "" {
			return nil, store.BadRequest("Filtering is not supported here.")
		}
		var out []any
		for _, d := range c.scoped(r) {
			out = append(out, c.shown(r, d))
		}
		return r.cursorPage(out)
	}
}

// cursorPage answers a list that does not say how long it is; terms of the filter on some attributes are decided
// already.
func (r *request) cursorPage(items []any, decided ...string) (*response, error) {
	items, err := r.filtered(items, decided)
	if err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(r.query.get("cursor"))
	size, err := r.pageSize()
	if err != nil {
		return nil, err
	}
	from = min(max(from, 0), len(items))
	res := jsonOK(map[string]any{"values": append([]any{}, items[from:min(from+size, len(items))]...)})
	if from+size < len(items) {
		next := fmt.Sprintf("%s%s?cursor=%d&pageSize=%d", r.site.Base(), r.URL.EscapedPath(), from+size, size)
		for _, k := range []string{"filter", "sortAsc", "sortDesc"} {
			if v := r.query.get(k); v != "" {
				next += "&" + k + "=" + url.QueryEscape(v)
			}
		}
		res.header = map[string]string{"Link": `<` + next + `>;rel="nextPage";type="application/json";model="Page"`}
	}
	return res, nil
}

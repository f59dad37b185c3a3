package vcdsim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

const natPath = "1.0.0/edgeGateways/{gateway}/nat/rules"

// natTypes are the kinds of NAT rules; the older field knows no REFLEXIVE.
var natTypes = []string{"DNAT", "SNAT", "NO_DNAT", "NO_SNAT", "REFLEXIVE"}

func natCollection() *collection {
	return &collection{
		path: natPath, kind: "natRule", right: "GATEWAY_NAT", title: "NAT Rule", within: "gateway", bare: true, cursor: true, required: []string{"name"},
		defaults: map[string]any{
			"enabled": true, "firewallMatch": "MATCH_INTERNAL_ADDRESS", "priority": 0, "description": "", "logging": false, "internalPort": nil,
			"applicationPortProfile": nil, "dnatExternalPort": nil, "snatDestinationAddresses": nil, "appliedTo": nil, "internalAddresses": "", "externalAddresses": "",
		},
		place:   func(r *request, _ map[string]any) (place, error) { return r.gatewayPlace(r.vars["gateway"]) },
		prepare: prepareNAT,
		show: func(_ *request, d *document, out map[string]any) {
			out["version"], out["systemRule"] = map[string]any{"version": d.version - 1}, false
		},
	}
}

// prepareNAT settles the type, which has an old and a new name, and checks addresses, profile and version.
func prepareNAT(r *request, body map[string]any, old *document) error {
	kind := text(body, "type")
	if old == nil || kind == "" || text(body, "ruleType") != "" && text(body, "ruleType") != text(old.body, "ruleType") {
		if t := text(body, "ruleType"); t != "" {
			kind = t
		}
	}
	if !slices.Contains(natTypes, kind) {
		return badRequest("The NAT rule type %q is invalid.", kind)
	}
	body["type"], body["ruleType"] = kind, kind
	if kind == "REFLEXIVE" {
		body["ruleType"] = nil
	}
	needs := map[string][]string{
		"DNAT": {"externalAddresses", "internalAddresses"}, "SNAT": {"externalAddresses"},
		"NO_DNAT": {"externalAddresses"}, "NO_SNAT": {"internalAddresses"}, "REFLEXIVE": {"externalAddresses", "internalAddresses"},
	}[kind]
	for _, field := range needs {
		if text(body, field) == "" {
			return badRequest("The field %s must not be empty for a NAT rule of type %s.", field, kind)
		}
	}
	for _, field := range []string{"externalAddresses", "internalAddresses", "snatDestinationAddresses"} {
		if a := text(body, field); a != "" && len(parseAddresses(a)) == 0 {
			return badRequest("The IP address %q is invalid.", a)
		}
	}
	if err := natPort(body); err != nil {
		return err
	}
	if id := refID(body, "applicationPortProfile"); id != "" {
		ref, err := r.reference(profilePath, "APPLICATION_PORT_PROFILE_VIEW", id)
		if err != nil {
			return err
		}
		body["applicationPortProfile"] = ref
	} else {
		body["applicationPortProfile"] = nil
	}
	if err := sameVersion(body, old); err != nil {
		return err
	}
	return r.ownedFloating(r.vars["gateway"], text(body, "externalAddresses"))
}

func natPort(body map[string]any) error {
	port := text(body, "dnatExternalPort")
	if port == "" {
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return badRequest("The port %q is invalid.", port)
	}
	return nil
}

// sameVersion refuses a change of what has changed since it was read. Who sends no version is not asked.
func sameVersion(body map[string]any, old *document) error {
	v, ok := body["version"].(map[string]any)
	delete(body, "version")
	if old == nil || !ok {
		return nil
	}
	if n, ok := v["version"].(float64); ok && int(n) != old.version-1 {
		return refuse(http.StatusBadRequest, "OBJECT_VERSION_MISMATCH", "The version %d of the object is not the current version %d.", int(n), old.version-1)
	}
	return nil
}

// reference finds a document the caller sees and returns the reference to it.
func (r *request) reference(path, operation, id string) (map[string]any, error) {
	d := r.sim.store.document(path, id)
	if d == nil || d.orgID != "" && !r.sees(d.orgID) {
		return nil, forbidden(operation, id)
	}
	return map[string]any{"id": d.id(), "name": text(d.body, "name")}, nil
}

// listByCursor answers a list as the NAT API does: no filter, no page numbers, and the next page behind a cursor.
func listByCursor(c *collection) handler {
	return func(r *request) (*response, error) {
		if _, _, _, err := r.edge(r.vars["gateway"]); err != nil {
			return nil, err
		}
		if r.query.get("filter") != "" {
			return nil, badRequest("Filtering is not supported here.")
		}
		from, _ := strconv.Atoi(r.query.get("cursor"))
		all := c.placed(r)
		size := min(r.query.number("pageSize", defaultPage), maxPage)
		from = min(max(from, 0), len(all))
		values := []any{}
		for _, d := range all[from:min(from+size, len(all))] {
			values = append(values, c.shown(r, d))
		}
		res := jsonOK(map[string]any{"values": values})
		if from+size < len(all) {
			next := fmt.Sprintf("%s%s?cursor=%d&pageSize=%d", r.base(), r.URL.EscapedPath(), from+size, size)
			res.header = map[string]string{"Link": `<` + next + `>;rel="nextPage";type="application/json";model="NatRules"`}
		}
		return res, nil
	}
}

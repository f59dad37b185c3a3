// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// NATPath is the path of the NAT rules of a gateway.
const NATPath = "1.0.0/edgeGateways/{gateway}/nat/rules"

// natTypes lists the types of NAT rules. The older field ruleType does not have REFLEXIVE.
var natTypes = []string{"DNAT", "SNAT", "NO_DNAT", "NO_SNAT", "REFLEXIVE"}

func natCollection() *documents.Collection {
	return &documents.Collection{
		Path:       NATPath,
		Kind:       "natRule",
		Right:      "GATEWAY_NAT",
		Title:      "NAT Rule",
		Within:     "gateway",
		Bare:       true,
		Cursor:     true,
		Anonymous:  true,
		Unfiltered: true,
		Required:   []string{"name"},
		Since:      map[string]string{"firewallMatch": "35.2", "priority": "35.2", "type": "36.0", "appliedTo": "36.2"},
		Defaults: map[string]any{
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
		Scope: func(r *api.Request, _ map[string]any) (documents.Scope, error) {
			return GatewayScope(r.Session, r.Cloud.Store, r.Vars["gateway"])
		},
		Prepare: prepareNAT,
		Show: func(_ *api.Request, d *store.Object, out map[string]any) {
			out["version"] = map[string]any{"version": d.Version - 1}
			out["systemRule"] = false
		},
	}
}

// prepareNAT sets the type, which has an old and a new field, and checks addresses, port profile and version.
func prepareNAT(r *api.Request, body map[string]any, old *store.Object) error {
	kind, err := setNATType(body, old)
	if err != nil {
		return err
	}
	if err := documents.WithinBounds(body, documents.Bound{Field: "priority", From: 0, To: 2147481599}); err != nil {
		return err
	}
	if err := checkNATAddresses(body, kind); err != nil {
		return err
	}
	if err := completeNATProfile(r.Session, r.Cloud.Store, body); err != nil {
		return err
	}
	if err := SameVersion(body, old); err != nil {
		return err
	}
	return OwnAddress(r, r.Vars["gateway"], store.Text(body, "externalAddresses"))
}

func setNATType(body map[string]any, old *store.Object) (string, error) {
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

// natRequiredFields lists the required fields of each type of NAT rule.
var natRequiredFields = map[string][]string{
	"DNAT":      {"externalAddresses", "internalAddresses"},
	"SNAT":      {"externalAddresses"},
	"NO_DNAT":   {"externalAddresses"},
	"NO_SNAT":   {"internalAddresses"},
	"REFLEXIVE": {"externalAddresses", "internalAddresses"},
}

func checkNATAddresses(body map[string]any, kind string) error {
	for _, field := range natRequiredFields[kind] {
		if store.Text(body, field) == "" {
			return store.BadRequest("The field %s must not be empty for a NAT rule of type %s.", field, kind)
		}
	}
	for _, field := range []string{"externalAddresses", "internalAddresses", "snatDestinationAddresses"} {
		if a := store.Text(body, field); a != "" && len(ParseAddresses(a)) == 0 {
			return store.BadRequest("The IP address %q is invalid.", a)
		}
	}
	return checkNATPort(body)
}

// completeNATProfile completes the reference to the application port profile.
func completeNATProfile(session *store.Session, st *store.Store, body map[string]any) error {
	id := store.RefID(body, "applicationPortProfile")
	if id == "" {
		body["applicationPortProfile"] = nil
		return nil
	}
	ref, err := DocumentReference(session, st, ProfilePath, "APPLICATION_PORT_PROFILE_VIEW", id)
	if err == nil {
		body["applicationPortProfile"] = ref
	}
	return err
}

func checkNATPort(body map[string]any) error {
	port := store.Text(body, "dnatExternalPort")
	if port == "" {
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return store.BadRequest("The port %q is invalid.", port)
	}
	return nil
}

// DocumentReference returns a reference to a document, or an error if the caller cannot see it.
func DocumentReference(session *store.Session, st *store.Store, path, operation, id string) (map[string]any, error) {
	d := st.Documents.Find(path, id)
	if d == nil || d.OrgID != "" && !session.Sees(d.OrgID) {
		return nil, store.Forbidden(operation, id)
	}
	return map[string]any{"id": d.ID(), "name": store.Text(d.Body, "name")}, nil
}

// ProfilePath is the path of application port profiles.
const ProfilePath = "1.0.0/applicationPortProfiles"

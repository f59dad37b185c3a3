// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// An apiClient is what registered for tokens: a user's API token, or a service account.
type apiClient struct {
	id, name       string // bare id
	orgID          string
	userID, user   string
	role           string
	service        bool
	softwareID     string
	version, uri   string // of the software
	status         string // of service accounts: CREATED, REQUESTED, GRANTED, ACTIVE
	token          string // the API token, empty until it is fetched
	userCode, code string // of the device authorization
}

const (
	jwtGrant    = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
)

func tokenRoutes(add addRoute) {
	for _, base := range []string{"/oauth/tenant/{org}", "/oauth/provider"} {
		add("POST", base+"/register", with(oauthOrg, registerClient), latencyLogin)
	}
	for _, k := range []struct {
		path    string
		service bool
	}{{"tokens", false}, {"serviceAccounts", true}} {
		base := "/cloudapi/1.0.0/" + k.path
		add("GET", base, func(r *request) (*response, error) { return listClients(r, k.service) }, latencyCloudAPI)
		add("GET", base+"/{id}", func(r *request) (*response, error) { return getClient(r, k.service) },
			latencyCloudAPI)
		add("DELETE", base+"/{id}", func(r *request) (*response, error) { return deleteClient(r, k.service) },
			latencyWrite)
	}
	add("PUT", "/cloudapi/1.0.0/serviceAccounts/{id}", putServiceAccount, latencyWrite)
	add("POST", "/cloudapi/1.0.0/serviceAccounts/{id}/revoke", revokeClient, latencyWrite)
	add("POST", "/cloudapi/1.0.0/deviceLookup/grant", grantDevice, latencyWrite)
}

// oauthOrg is the organization in an oauth path.
func oauthOrg(r *request) (*Org, error) {
	name := r.vars["org"]
	if name == "" {
		name = systemOrg
	}
	org := r.sim.store.orgByName(name)
	if org == nil || !r.sees(org.ID) {
		return nil, forbidden("TOKEN_MANAGE", name)
	}
	return org, nil
}

func registerClient(r *request, org *Org) (*response, error) {
	var in struct {
		Name       string `json:"client_name"`
		SoftwareID string `json:"software_id"`
		Version    string `json:"software_version"`
		URI        string `json:"client_uri"`
		Scope      string `json:"scope"`
	}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	c := &apiClient{
		id:         r.sim.ids.next("token"),
		name:       in.Name,
		orgID:      org.ID,
		userID:     r.session.UserID,
		user:       r.session.User,
		role:       r.session.Role,
		softwareID: in.SoftwareID,
		version:    in.Version,
		uri:        in.URI,
		service:    in.SoftwareID != "",
		status:     "CREATED",
	}
	if right := c.takes(); !r.session.provider() && !r.hasRight(right) {
		return nil, r.permittedBy(&need{rights: []string{right}, operation: "TOKEN_MANAGE"})
	}
	if c.service {
		role, err := url.PathUnescape(in.Scope[strings.LastIndex(in.Scope, ":")+1:])
		if err != nil {
			return nil, badRequest("The scope %q is invalid.", in.Scope)
		}
		if c.role = role; !hasRole(r.sim, org, role) {
			return nil, forbidden("ROLE_VIEW", role)
		}
	}
	if slices.ContainsFunc(r.sim.store.clients, c.clashes) {
		return nil, duplicateName(c.name)
	}
	r.sim.store.clients = append(r.sim.store.clients, c)
	return jsonOK(map[string]any{
		"client_name":                c.name,
		"client_id":                  c.id,
		"grant_types":                []string{"refresh_token", deviceGrant},
		"token_endpoint_auth_method": "none",
		"software_id":                c.softwareID,
		"software_version":           c.version,
		"client_uri":                 c.uri,
		"scope":                      in.Scope,
	}), nil
}

// clashes reports whether another client has the name: service accounts of an organization, or API tokens of a user.
func (c *apiClient) clashes(x *apiClient) bool {
	return x.name == c.name && x.orgID == c.orgID && x.service == c.service && (c.service || x.userID == c.userID)
}

func clientJSON(r *request, c *apiClient) map[string]any {
	org := r.sim.store.org(c.orgID)
	if c.service {
		return map[string]any{
			"id":              URN("serviceAccount", c.id),
			"name":            c.name,
			"softwareId":      c.softwareID,
			"softwareVersion": c.version,
			"uri":             c.uri,
			"status":          c.status,
			"role":            jsonRef("role", r.sim.ids.named("role", c.role), c.role),
			"org":             jsonRef("org", org.ID, org.Name),
		}
	}
	return map[string]any{
		"id":                   URN("token", c.id),
		"name":                 c.name,
		"type":                 "REFRESH",
		"owner":                jsonRef("user", c.userID, c.user),
		"org":                  jsonRef("org", org.ID, org.Name),
		"token":                nil,
		"expirationTimeMillis": nil,
	}
}

func apiClientsOf(r *request, service bool) []*apiClient {
	var out []*apiClient
	for _, c := range r.sim.store.clients {
		if c.service == service && r.sim.store.org(c.orgID) != nil && r.sees(c.orgID) && reachesClient(r, c) {
			out = append(out, c)
		}
	}
	return out
}

// takes is the right to register such a client.
func (c *apiClient) takes() string {
	if c.service {
		return rightAccountManage
	}
	return rightOwnClients
}

// reachesClient reports whether the caller may see and remove a client: another user's API token requires a right of
// its own.
func reachesClient(r *request, c *apiClient) bool {
	return c.service || c.userID == r.session.UserID || r.session.provider() || r.hasRight(rightAllClients)
}

func listClients(r *request, service bool) (*response, error) {
	var out []any
	for _, c := range apiClientsOf(r, service) {
		out = append(out, clientJSON(r, c))
	}
	return r.page(out)
}

func apiClientByID(r *request, service bool) (*apiClient, error) {
	for _, c := range apiClientsOf(r, service) {
		if c.id == bare(r.vars["id"]) {
			return c, nil
		}
	}
	return nil, forbidden("TOKEN_VIEW", r.vars["id"])
}

func getClient(r *request, service bool) (*response, error) {
	c, err := apiClientByID(r, service)
	if err != nil {
		return nil, err
	}
	return jsonOK(clientJSON(r, c)), nil
}

func deleteClient(r *request, service bool) (*response, error) {
	c, err := apiClientByID(r, service)
	if err != nil {
		return nil, err
	}
	r.sim.store.clients = slices.DeleteFunc(slices.Clone(r.sim.store.clients),
		func(x *apiClient) bool { return x == c })
	if service {
		return r.acceptedJSON(Entity{Kind: "serviceAccount", ID: c.id, Name: c.name}), nil
	}
	return noContent(), nil
}

// putServiceAccount changes a service account's name, role and description of its software.
func putServiceAccount(r *request) (*response, error) {
	c, err := apiClientByID(r, true)
	if err != nil {
		return nil, err
	}
	in := struct {
		Name       string                    `json:"name"`
		Role       struct{ Name, ID string } `json:"role"`
		SoftwareID string                    `json:"softwareId"`
		Version    string                    `json:"softwareVersion"`
		URI        string                    `json:"uri"`
	}{Name: c.name, SoftwareID: c.softwareID}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	changed := *c
	changed.name = in.Name
	changed.softwareID = in.SoftwareID
	changed.version = in.Version
	changed.uri = in.URI
	if id := bare(in.Role.ID); id != "" && id != r.sim.ids.named("role", c.role) {
		if changed.role, err = roleName(r, r.sim.store.org(c.orgID), id); err != nil {
			return nil, err
		}
	}
	switch {
	case changed.name == "" || changed.softwareID == "":
		return nil, badRequest("A service account has a name and a softwareId.")
	case slices.ContainsFunc(r.sim.store.clients, func(x *apiClient) bool { return x != c && changed.clashes(x) }):
		return nil, duplicateName(changed.name)
	}
	*c = changed
	return jsonOK(clientJSON(r, c)), nil
}

// revokeClient revokes the token of a service account and ends its sessions.
func revokeClient(r *request) (*response, error) {
	c, err := apiClientByID(r, true)
	if err != nil {
		return nil, err
	}
	c.status = "CREATED"
	c.token = ""
	c.code = ""
	c.userCode = ""
	maps.DeleteFunc(r.sim.store.sessions, func(_ string, x *Session) bool { return x.Client == c.id })
	return noContent(), nil
}

// authorizeDevice starts the device authorization of a service account.
func authorizeDevice(r *request) (*response, error) {
	form, err := url.ParseQuery(string(r.body))
	if err != nil {
		return nil, badRequest("The form is invalid: %s", err)
	}
	org := r.sim.store.orgByName(cmp.Or(r.vars["org"], systemOrg))
	i := slices.IndexFunc(r.sim.store.clients, func(c *apiClient) bool {
		return c.service && org != nil && c.orgID == org.ID && c.id == bare(form.Get("client_id"))
	})
	if i < 0 {
		return oauthError("invalid_client"), nil
	}
	c := r.sim.store.clients[i]
	c.status = "REQUESTED"
	c.code = r.sim.ids.next("deviceCode")
	c.userCode = strings.ToUpper(r.sim.ids.next("userCode")[:8])
	return jsonOK(map[string]any{
		"device_code":      c.code,
		"user_code":        c.userCode,
		"verification_uri": r.base() + "/tenant",
		"expires_in":       3600,
		"interval":         60,
	}), nil
}

func grantDevice(r *request) (*response, error) {
	var in struct {
		UserCode string `json:"userCode"`
	}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	for _, c := range apiClientsOf(r, true) {
		if c.userCode == in.UserCode && c.status == "REQUESTED" {
			c.status = "GRANTED"
			return noContent(), nil
		}
	}
	return nil, badRequest("The user code %q is invalid.", in.UserCode)
}

// awaitsGrant reports whether a form asks for the first token of a service account that is not granted yet.
func awaitsGrant(s *store, org *Org, form url.Values) bool {
	return form.Get("grant_type") == deviceGrant && slices.ContainsFunc(s.clients, func(c *apiClient) bool {
		return c.orgID == org.ID && c.id == form.Get("client_id") && c.status == "REQUESTED" &&
			c.code == form.Get("device_code")
	})
}

// mayLogIn reports whether the client may still log in: an API token ends with its user.
func (c *apiClient) mayLogIn(org *Org) bool {
	return c.service || slices.ContainsFunc(org.Users, func(u User) bool { return u.ID == c.userID && !u.Disabled })
}

// clientLogin opens a session for a registered client, nil if the form is none of it.
func clientLogin(r *request, org *Org, form url.Values) *apiClient {
	for _, c := range r.sim.store.clients {
		if c.orgID == org.ID && c.mayLogIn(org) && c.answers(form, r.sim) {
			return c
		}
	}
	return nil
}

// answers reports whether a form is a login of the client.
func (c *apiClient) answers(form url.Values, s *Simulator) bool {
	switch form.Get("grant_type") {
	case "refresh_token":
		return c.refreshes(form.Get("refresh_token"), s)
	case jwtGrant:
		return form.Get("client_id") == c.id && c.trades(form.Get("assertion"), s)
	case deviceGrant:
		return form.Get("client_id") == c.id && c.activates(form.Get("device_code"), s)
	default:
		return false
	}
}

// refreshes is a login with the API token; a service account gets a new one after each use.
func (c *apiClient) refreshes(token string, s *Simulator) bool {
	if c.token == "" || token != c.token {
		return false
	}
	if c.service {
		c.token = s.ids.next("apiToken")
	}
	return true
}

// trades exchanges an access token for the API token of a user, once.
func (c *apiClient) trades(assertion string, s *Simulator) bool {
	if c.service || c.token != "" || s.store.sessions[assertion] == nil {
		return false
	}
	c.token = s.ids.next("apiToken")
	return true
}

// activates gives the first API token of a service account.
func (c *apiClient) activates(code string, s *Simulator) bool {
	if c.status != "GRANTED" || code != c.code {
		return false
	}
	c.token = s.ids.next("apiToken")
	c.status = "ACTIVE"
	return true
}

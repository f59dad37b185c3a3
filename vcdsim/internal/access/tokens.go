// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	jwtGrant    = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
)

func tokenRoutes(add api.AddRoute) {
	for _, base := range []string{"/oauth/tenant/{org}", "/oauth/provider"} {
		add("POST", base+"/register", api.With(oauthOrg, registerClient), cloud.LatencyLogin)
	}
	for _, k := range []struct {
		path    string
		service bool
	}{{"tokens", false}, {"serviceAccounts", true}} {
		base := "/cloudapi/1.0.0/" + k.path
		add("GET", base, func(r *api.Request) (*api.Response, error) { return listClients(r, k.service) }, cloud.LatencyCloudAPI)
		add("GET", base+"/{id}", func(r *api.Request) (*api.Response, error) { return getClient(r, k.service) },
			cloud.LatencyCloudAPI)
		add("DELETE", base+"/{id}", func(r *api.Request) (*api.Response, error) { return deleteClient(r, k.service) },
			cloud.LatencyWrite)
	}
	add("PUT", "/cloudapi/1.0.0/serviceAccounts/{id}", putServiceAccount, cloud.LatencyWrite)
	add("POST", "/cloudapi/1.0.0/serviceAccounts/{id}/revoke", revokeClient, cloud.LatencyWrite)
	add("POST", "/cloudapi/1.0.0/deviceLookup/grant", grantDevice, cloud.LatencyWrite)
}

// oauthOrg returns the organization in an OAuth path.
func oauthOrg(r *api.Request) (*store.Org, error) {
	name := r.Vars["org"]
	if name == "" {
		name = store.SystemOrg
	}
	org := r.Cloud.Store.OrgByName(name)
	if org == nil || !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("TOKEN_MANAGE", name)
	}
	return org, nil
}

func registerClient(r *api.Request, org *store.Org) (*api.Response, error) {
	var in struct {
		Name       string `json:"client_name"`
		SoftwareID string `json:"software_id"`
		Version    string `json:"software_version"`
		URI        string `json:"client_uri"`
		Scope      string `json:"scope"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	c := &store.APIClient{
		ID:              r.Cloud.IDs.Next("token"),
		Name:            in.Name,
		OrgID:           org.ID,
		UserID:          r.Session.UserID,
		User:            r.Session.User,
		Role:            r.Session.Role,
		SoftwareID:      in.SoftwareID,
		SoftwareVersion: in.Version,
		SoftwareURI:     in.URI,
		ServiceAccount:  in.SoftwareID != "",
		Status:          "CREATED",
	}
	if right := rightOfClient(c); !r.Session.Provider() && !HasRight(r, right) {
		return nil, PermittedBy(r, &Need{Rights: []string{right}, Operation: "TOKEN_MANAGE"})
	}
	if c.ServiceAccount {
		role, err := url.PathUnescape(in.Scope[strings.LastIndex(in.Scope, ":")+1:])
		if err != nil {
			return nil, store.BadRequest("The scope %q is invalid.", in.Scope)
		}
		if c.Role = role; !hasRole(r.Cloud, org, role) {
			return nil, store.Forbidden("ROLE_VIEW", role)
		}
	}
	if slices.ContainsFunc(r.Cloud.Store.Clients, c.Clashes) {
		return nil, store.DuplicateName(c.Name)
	}
	r.Cloud.Store.Clients = append(r.Cloud.Store.Clients, c)
	return api.JSON(map[string]any{
		"client_name":                c.Name,
		"client_id":                  c.ID,
		"grant_types":                []string{"refresh_token", deviceGrant},
		"token_endpoint_auth_method": "none",
		"software_id":                c.SoftwareID,
		"software_version":           c.SoftwareVersion,
		"client_uri":                 c.SoftwareURI,
		"scope":                      in.Scope,
	}), nil
}

func clientJSON(s *cloud.Cloud, c *store.APIClient) map[string]any {
	org := s.Store.Org(c.OrgID)
	if c.ServiceAccount {
		return map[string]any{
			"id":              store.URN("serviceAccount", c.ID),
			"name":            c.Name,
			"softwareId":      c.SoftwareID,
			"softwareVersion": c.SoftwareVersion,
			"uri":             c.SoftwareURI,
			"status":          c.Status,
			"role":            api.Ref("role", RoleID(s, org.ID, c.Role), c.Role),
			"org":             api.Ref("org", org.ID, org.Name),
		}
	}
	return map[string]any{
		"id":                   store.URN("token", c.ID),
		"name":                 c.Name,
		"type":                 "REFRESH",
		"owner":                api.Ref("user", c.UserID, c.User),
		"org":                  api.Ref("org", org.ID, org.Name),
		"token":                nil,
		"expirationTimeMillis": nil,
	}
}

func apiClientsOf(r *api.Request, service bool) []*store.APIClient {
	var out []*store.APIClient
	for _, c := range r.Cloud.Store.Clients {
		if c.ServiceAccount == service && r.Cloud.Store.Org(c.OrgID) != nil && r.Session.Sees(c.OrgID) && mayAccessClient(r, c) {
			out = append(out, c)
		}
	}
	return out
}

// rightOfClient returns the right that registering such a client requires.
func rightOfClient(c *store.APIClient) string {
	if c.ServiceAccount {
		return rightAccountManage
	}
	return rightOwnClients
}

// mayAccessClient reports whether the caller may see and remove a client. Access to another user's API token requires a
// separate right.
func mayAccessClient(r *api.Request, c *store.APIClient) bool {
	return c.ServiceAccount || c.UserID == r.Session.UserID || r.Session.Provider() || HasRight(r, rightAllClients)
}

func listClients(r *api.Request, service bool) (*api.Response, error) {
	var out []any
	for _, c := range apiClientsOf(r, service) {
		out = append(out, clientJSON(r.Cloud, c))
	}
	return r.Page(out)
}

func apiClientByID(r *api.Request, service bool) (*store.APIClient, error) {
	for _, c := range apiClientsOf(r, service) {
		if c.ID == store.Bare(r.Vars["id"]) {
			return c, nil
		}
	}
	return nil, store.Forbidden("TOKEN_VIEW", r.Vars["id"])
}

func getClient(r *api.Request, service bool) (*api.Response, error) {
	c, err := apiClientByID(r, service)
	if err != nil {
		return nil, err
	}
	return api.JSON(clientJSON(r.Cloud, c)), nil
}

func deleteClient(r *api.Request, service bool) (*api.Response, error) {
	c, err := apiClientByID(r, service)
	if err != nil {
		return nil, err
	}
	r.Cloud.Store.Clients = slices.DeleteFunc(slices.Clone(r.Cloud.Store.Clients),
		func(x *store.APIClient) bool { return x == c })
	if service {
		return r.AcceptedJSON(store.Entity{Kind: "serviceAccount", ID: c.ID, Name: c.Name}), nil
	}
	return api.NoContent(), nil
}

// putServiceAccount changes the name, the role and the software description of a service account.
func putServiceAccount(r *api.Request) (*api.Response, error) {
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
	}{Name: c.Name, SoftwareID: c.SoftwareID}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	changed := *c
	changed.Name = in.Name
	changed.SoftwareID = in.SoftwareID
	changed.SoftwareVersion = in.Version
	changed.SoftwareURI = in.URI
	if id := store.Bare(in.Role.ID); id != "" && id != RoleID(r.Cloud, c.OrgID, c.Role) {
		if changed.Role, err = RoleName(r.Cloud.Store, r.Cloud.Store.Org(c.OrgID), id); err != nil {
			return nil, err
		}
	}
	switch {
	case changed.Name == "" || changed.SoftwareID == "":
		return nil, store.BadRequest("A service account has a name and a softwareId.")
	case slices.ContainsFunc(r.Cloud.Store.Clients, func(x *store.APIClient) bool { return x != c && changed.Clashes(x) }):
		return nil, store.DuplicateName(changed.Name)
	}
	*c = changed
	return api.JSON(clientJSON(r.Cloud, c)), nil
}

// revokeClient revokes the token of a service account and ends its sessions.
func revokeClient(r *api.Request) (*api.Response, error) {
	c, err := apiClientByID(r, true)
	if err != nil {
		return nil, err
	}
	c.Status = "CREATED"
	c.Token = ""
	c.DeviceCode = ""
	c.UserCode = ""
	maps.DeleteFunc(r.Cloud.Store.Sessions, func(_ string, x *store.Session) bool { return x.Client == c.ID })
	return api.NoContent(), nil
}

// authorizeDevice starts the device authorization of a service account.
func authorizeDevice(r *api.Request) (*api.Response, error) {
	form, err := url.ParseQuery(string(r.Content))
	if err != nil {
		return nil, store.BadRequest("The form is invalid: %s", err)
	}
	org := r.Cloud.Store.OrgByName(cmp.Or(r.Vars["org"], store.SystemOrg))
	i := slices.IndexFunc(r.Cloud.Store.Clients, func(c *store.APIClient) bool {
		return c.ServiceAccount && org != nil && c.OrgID == org.ID && c.ID == store.Bare(form.Get("client_id"))
	})
	if i < 0 {
		return oauthError("invalid_client"), nil
	}
	c := r.Cloud.Store.Clients[i]
	c.Status = "REQUESTED"
	c.DeviceCode = r.Cloud.IDs.Next("deviceCode")
	c.UserCode = strings.ToUpper(r.Cloud.IDs.Next("userCode")[:8])
	return api.JSON(map[string]any{
		"device_code":      c.DeviceCode,
		"user_code":        c.UserCode,
		"verification_uri": r.Site.Base() + "/tenant",
		"expires_in":       3600,
		"interval":         60,
	}), nil
}

func grantDevice(r *api.Request) (*api.Response, error) {
	var in struct {
		UserCode string `json:"userCode"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	for _, c := range apiClientsOf(r, true) {
		if c.UserCode == in.UserCode && c.Status == "REQUESTED" {
			c.Status = "GRANTED"
			return api.NoContent(), nil
		}
	}
	return nil, store.BadRequest("The user code %q is invalid.", in.UserCode)
}

// awaitsGrant reports whether a form requests the first token of a service account that is not granted yet.
func awaitsGrant(s *store.Store, org *store.Org, form url.Values) bool {
	return form.Get("grant_type") == deviceGrant && slices.ContainsFunc(s.Clients, func(c *store.APIClient) bool {
		return c.OrgID == org.ID && c.ID == form.Get("client_id") && c.Status == "REQUESTED" &&
			c.DeviceCode == form.Get("device_code")
	})
}

// mayClientLogIn reports whether the client may still log in. An API token is invalid after its user was disabled or
// deleted.
func mayClientLogIn(c *store.APIClient, org *store.Org) bool {
	return c.ServiceAccount || slices.ContainsFunc(org.Users, func(u store.User) bool { return u.ID == c.UserID && !u.Disabled })
}

// clientLogin returns the registered client that logs in with a form, or nil if there is none.
func clientLogin(s *cloud.Cloud, org *store.Org, form url.Values) *store.APIClient {
	for _, c := range s.Store.Clients {
		if c.OrgID == org.ID && mayClientLogIn(c, org) && authenticateClient(c, form, s) {
			return c
		}
	}
	return nil
}

// authenticateClient reports whether a form is a valid login of the client.
func authenticateClient(c *store.APIClient, form url.Values, s *cloud.Cloud) bool {
	switch form.Get("grant_type") {
	case "refresh_token":
		return refreshClient(c, form.Get("refresh_token"), s)
	case jwtGrant:
		return form.Get("client_id") == c.ID && exchangeToken(c, form.Get("assertion"), s)
	case deviceGrant:
		return form.Get("client_id") == c.ID && activateClient(c, form.Get("device_code"), s)
	default:
		return false
	}
}

// refreshClient logs in with an API token. A service account gets a new token after each use.
func refreshClient(c *store.APIClient, token string, s *cloud.Cloud) bool {
	if c.Token == "" || token != c.Token {
		return false
	}
	if c.ServiceAccount {
		c.Token = s.IDs.Next("apiToken")
	}
	return true
}

// exchangeToken exchanges an access token for the API token of a user. This works only once.
func exchangeToken(c *store.APIClient, assertion string, s *cloud.Cloud) bool {
	if c.ServiceAccount || c.Token != "" || s.Store.Sessions[assertion] == nil {
		return false
	}
	c.Token = s.IDs.Next("apiToken")
	return true
}

// activateClient creates the first API token of a service account.
func activateClient(c *store.APIClient, code string, s *cloud.Cloud) bool {
	if c.Status != "GRANTED" || code != c.DeviceCode {
		return false
	}
	c.Token = s.IDs.Next("apiToken")
	c.Status = "ACTIVE"
	return true
}

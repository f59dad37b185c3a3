// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// reads reports whether the caller may see what is in a catalog: that of the own organization, or one that is shared
// with it.
func (r *request) reads(sh store.OrgCatalog) bool {
	if r.session.Sees(sh.Org.ID) {
		return true
	}
	own := r.cloud.store.Org(r.session.OrgID)
	return own != nil && slices.Contains(sh.Catalog.SharedWith, own.Name)
}

func openRoutes(add addRoute) {
	add("GET", "/api/versions", getVersions, latencyOrgList)
	add("POST", "/cloudapi/1.0.0/sessions", login, latencyLogin)
	add("POST", "/cloudapi/1.0.0/sessions/provider", loginProvider, latencyLogin)
	add("POST", "/oauth/tenant/{org}/token", tokenTenant, latencyLogin)
	add("POST", "/oauth/provider/token", tokenProvider, latencyLogin)
	// A device is not logged in yet.
	add("POST", "/oauth/tenant/{org}/device_authorization", authorizeDevice, latencyLogin)
	add("POST", "/oauth/provider/device_authorization", authorizeDevice, latencyLogin)
}

func sessionRoutes(add addRoute) {
	add("GET", "/cloudapi/1.0.0/sessions/current", currentSession, latencyCloudAPI)
	add("DELETE", "/cloudapi/1.0.0/sessions/{id}", logout, latencyCloudAPI)
	// go-vcloud-director ends its session with a DELETE of the login URL.
	add("DELETE", "/cloudapi/1.0.0/sessions", logout, latencyCloudAPI)
	add("GET", "/api/session", legacySession, latencyLegacy)
	add("DELETE", "/api/session", logout, latencyLegacy)
}

// token is the access token of a request, in either header a client may send.
func (r *request) token() string {
	token := r.Header.Get("X-Vmware-Vcloud-Access-Token")
	if token == "" {
		token = r.Header.Get("X-Vcloud-Authorization")
	}
	for _, h := range r.Header.Values("Authorization") {
		if scheme, value, ok := strings.Cut(h, " "); ok && strings.EqualFold(scheme, "bearer") {
			token = value
		}
	}
	return token
}

// authenticate finds the session of a request.
func authenticate(r *request) error {
	token := r.token()
	session := r.cloud.store.Sessions[token]
	if session == nil {
		return store.Unauthorized()
	}
	if !r.cloud.clock.Now().Before(session.Expires) {
		delete(r.cloud.store.Sessions, token)
		return store.Unauthorized()
	}
	r.session = session
	return nil
}

func login(r *request) (*response, error) {
	name, password, _ := r.BasicAuth()
	user, org, ok := strings.Cut(name, "@")
	if !ok || strings.EqualFold(org, store.SystemOrg) {
		return nil, store.Unauthorized()
	}
	return passwordLogin(r, org, user, password)
}

func loginProvider(r *request) (*response, error) {
	name, password, _ := r.BasicAuth()
	user, org, ok := strings.Cut(name, "@")
	if ok && !strings.EqualFold(org, store.SystemOrg) {
		return nil, store.Unauthorized()
	}
	return passwordLogin(r, store.SystemOrg, user, password)
}

func passwordLogin(r *request, orgName, userName, password string) (*response, error) {
	org := r.cloud.store.OrgByName(orgName)
	if org == nil || org.Disabled {
		return nil, store.Unauthorized()
	}
	for i := range org.Users {
		if u := &org.Users[i]; u.Name == userName && u.Password == password && !u.Disabled {
			x := openSession(r, org, u)
			r.session = x
			res := jsonOK(sessionJSON(r.cloud.ids, x))
			res.header = map[string]string{
				"X-VMWARE-VCLOUD-ACCESS-TOKEN": x.Token,
				"X-VMWARE-VCLOUD-TOKEN-TYPE":   "Bearer",
			}
			return res, nil
		}
	}
	return nil, store.Unauthorized()
}

func openSession(r *request, org *store.Org, u *store.User) *store.Session {
	s := r.cloud
	x := &store.Session{
		ID:      s.ids.Next("session"),
		OrgID:   org.ID,
		Org:     org.Name,
		UserID:  u.ID,
		User:    u.Name,
		Role:    u.Role,
		Expires: s.clock.Now().Add(s.lifetime),
		Cell:    r.cell.number,
	}
	x.Token = jwt(x, s.ids.Named("signature", x.ID))
	dropExpiredSessions(s)
	s.store.Sessions[x.Token] = x
	return x
}

// sweepSessions is the number of logins between two removals of expired sessions.
const sweepSessions = 256

// dropExpiredSessions removes expired sessions every sweepSessions logins: most clients never log out.
func dropExpiredSessions(s *cloud) {
	if s.ids.Count["session"]%sweepSessions != 0 {
		return
	}
	now := s.clock.Now()
	maps.DeleteFunc(s.store.Sessions, func(_ string, x *store.Session) bool { return !now.Before(x.Expires) })
}

// jwt makes a token in the format of VCD's: clients treat short ones differently.
func jwt(x *store.Session, signature string) string {
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return strings.Join([]string{
		part(map[string]string{"alg": "RS256", "typ": "JWT"}),
		part(map[string]any{"sub": x.User, "org": x.Org, "jti": x.ID, "exp": x.Expires.Unix()}),
		base64.RawURLEncoding.EncodeToString([]byte(signature)),
	}, ".")
}

func tokenTenant(r *request) (*response, error) { return tokenLogin(r, r.vars["org"]) }

func tokenProvider(r *request) (*response, error) { return tokenLogin(r, store.SystemOrg) }

// tokenLogin exchanges an API token for an access token. A token of another organization is refused, so that clients
// that try the provider first fall back to the tenant.
func tokenLogin(r *request, orgName string) (*response, error) {
	form, err := url.ParseQuery(string(r.body))
	if err != nil {
		return nil, store.BadRequest("The form is invalid: %s", err)
	}
	if !slices.Contains([]string{"refresh_token", jwtGrant, deviceGrant}, form.Get("grant_type")) {
		return oauthError("unsupported_grant_type"), nil
	}
	org := r.cloud.store.OrgByName(orgName)
	if org == nil || org.Disabled {
		return oauthError("invalid_grant"), nil
	}
	if awaitsGrant(r.cloud.store, org, form) {
		return oauthError("authorization_pending"), nil
	}
	token := form.Get("refresh_token")
	if u := org.TokenOwner(token); u != nil {
		return tokenResponse(r, org, u, token), nil
	}
	if c := clientLogin(r, org, form); c != nil {
		res := tokenResponse(r, org, &store.User{ID: c.UserID, Name: c.User, Role: c.Role}, c.Token)
		r.session.Client = c.ID
		return res, nil
	}
	return oauthError("invalid_grant"), nil
}

// tokenResponse opens a session and answers with its token and the API token for the next login.
func tokenResponse(r *request, org *store.Org, u *store.User, apiToken string) *response {
	x := openSession(r, org, u)
	r.session = x
	return jsonOK(map[string]any{
		"access_token":  x.Token,
		"token_type":    "Bearer",
		"expires_in":    int(r.cloud.lifetime.Seconds()),
		"scope":         "openid",
		"refresh_token": apiToken,
	})
}

func oauthError(code string) *response {
	return &response{
		status: http.StatusBadRequest,
		json: map[string]any{
			"error":             code,
			"error_description": "Failed to create an access token from the refresh token.",
		},
	}
}

func sessionJSON(source *ids.Source, x *store.Session) map[string]any {
	org := jsonRef("org", x.OrgID, x.Org)
	return map[string]any{
		"id":                        store.URN("session", x.ID),
		"site":                      jsonRef("site", source.Named("site", "site"), "vcdsim"),
		"user":                      jsonRef("user", x.UserID, x.User),
		"org":                       org,
		"operatingOrg":              org,
		"location":                  "",
		"roles":                     []string{x.Role},
		"roleRefs":                  []any{jsonRef("role", source.Named("role", x.Role), x.Role)},
		"sessionIdleTimeoutMinutes": 30,
	}
}

// jsonRef is a reference of cloudapi.
func jsonRef(kind, id, name string) map[string]any {
	return map[string]any{"name": name, "id": store.URN(kind, id)}
}

func currentSession(r *request) (*response, error) {
	return jsonOK(sessionJSON(r.cloud.ids, r.session)), nil
}

func legacySession(r *request) (*response, error) {
	x := r.session
	n := xmltree.New("Session", wire.Namespaces(), xmltree.A("org", x.Org), xmltree.A("roles", x.Role),
		xmltree.A("user", x.User),
		xmltree.A("userId", store.URN("user", x.UserID)), xmltree.A("href", r.site.Base()+"/api/session"),
		xmltree.A("type", wire.Mime("session")))
	n.Add([]*xmltree.Node{
		r.site.Link("down", "/api/org/", wire.Mime("orgList")),
		r.site.Link("remove", "/api/session", ""),
		r.site.Link("down", "/api/admin/", "application/vnd.vmware.admin.vcloud+xml"),
		r.site.Link("down", "/api/org/"+x.OrgID, wire.Mime("org"), x.Org),
		r.site.Link("down", "/api/query", "application/vnd.vmware.vcloud.query.queryList+xml"),
		xmltree.New("AuthorizedLocations", xmltree.New("Location", xmltree.A("name", x.Org),
			xmltree.T("LocationId", r.cloud.ids.Named("site", "site")+"@"+r.cloud.ids.Named("site", "location")),
			xmltree.T("LocationName", r.Host), xmltree.T("OrgName", x.Org), xmltree.T("RestApiEndpoint", r.site.Base()),
			xmltree.T("UIEndpoint", r.site.Base()), xmltree.T("AuthContext", x.Org))),
	})
	return xmlOK(n), nil
}

func logout(r *request) (*response, error) {
	if id := r.vars["id"]; id != "" && id != "current" && store.Bare(id) != r.session.ID {
		return nil, store.Forbidden("SESSION_DELETE", id)
	}
	delete(r.cloud.store.Sessions, r.session.Token)
	return noContent(), nil
}

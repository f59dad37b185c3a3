// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Reads reports whether the caller may read a catalog. It must belong to the caller's organization, be shared with the
// organization or the caller, or be published to all organizations.
func Reads(r *api.Request, sh store.OrgCatalog) bool {
	if r.Session.Sees(sh.Org.ID) {
		return true
	}
	own := r.Cloud.Store.Org(r.Session.OrgID)
	if own != nil && slices.Contains(sh.Catalog.SharedWith, own.Name) {
		return true
	}
	// Everyone means the users of the catalog's organization.
	granted := store.Access{Grants: r.Cloud.Store.Access[sh.Catalog.ID].Grants}
	return accessLevel(granted, r.Session) >= LevelRead || sh.Catalog.Published && HasRight(r, rightPublishedView)
}

// OpenRoutes adds the routes that do not require a session: versions and logins.
func OpenRoutes(add api.AddRoute) {
	add("GET", "/api/versions", api.GetVersions, cloud.LatencyOrgList)
	add("POST", "/cloudapi/1.0.0/sessions", login, cloud.LatencyLogin)
	add("POST", "/cloudapi/1.0.0/sessions/provider", loginProvider, cloud.LatencyLogin)
	add("POST", "/oauth/tenant/{org}/token", tokenTenant, cloud.LatencyLogin)
	add("POST", "/oauth/provider/token", tokenProvider, cloud.LatencyLogin)
	// A device has no session yet.
	add("POST", "/oauth/tenant/{org}/device_authorization", authorizeDevice, cloud.LatencyLogin)
	add("POST", "/oauth/provider/device_authorization", authorizeDevice, cloud.LatencyLogin)
}

func sessionRoutes(add api.AddRoute) {
	add("GET", "/cloudapi/1.0.0/sessions/current", currentSession, cloud.LatencyCloudAPI)
	add("DELETE", "/cloudapi/1.0.0/sessions/{id}", logout, cloud.LatencyCloudAPI)
	// go-vcloud-director ends its session with a DELETE of the login URL.
	add("DELETE", "/cloudapi/1.0.0/sessions", logout, cloud.LatencyCloudAPI)
	add("GET", "/api/session", legacySession, cloud.LatencyLegacy)
	add("DELETE", "/api/session", logout, cloud.LatencyLegacy)
}

// Authenticate sets the session of a request.
func Authenticate(r *api.Request) error {
	token := r.Token()
	session := r.Cloud.Store.Sessions[token]
	if session == nil {
		return store.Unauthorized()
	}
	if !r.Cloud.Clock.Now().Before(session.Expires) {
		delete(r.Cloud.Store.Sessions, token)
		return store.Unauthorized()
	}
	r.Session = session
	return nil
}

func login(r *api.Request) (*api.Response, error) {
	name, password, _ := r.BasicAuth()
	user, org, ok := strings.Cut(name, "@")
	if !ok || strings.EqualFold(org, store.SystemOrg) {
		return nil, store.Unauthorized()
	}
	return passwordLogin(r, org, user, password)
}

func loginProvider(r *api.Request) (*api.Response, error) {
	name, password, _ := r.BasicAuth()
	user, org, ok := strings.Cut(name, "@")
	if ok && !strings.EqualFold(org, store.SystemOrg) {
		return nil, store.Unauthorized()
	}
	return passwordLogin(r, store.SystemOrg, user, password)
}

func passwordLogin(r *api.Request, orgName, userName, password string) (*api.Response, error) {
	org := r.Cloud.Store.OrgByName(orgName)
	if org == nil || org.Disabled {
		return nil, store.Unauthorized()
	}
	for i := range org.Users {
		if u := &org.Users[i]; u.Name == userName && u.Password == password && !u.Disabled {
			x := openSession(r, org, u)
			r.Session = x
			res := api.JSON(sessionJSON(r.Cloud, x))
			res.Header = map[string]string{
				"X-VMWARE-VCLOUD-ACCESS-TOKEN": x.Token,
				"X-VMWARE-VCLOUD-TOKEN-TYPE":   "Bearer",
			}
			return res, nil
		}
	}
	return nil, store.Unauthorized()
}

func openSession(r *api.Request, org *store.Org, u *store.User) *store.Session {
	s := r.Cloud
	x := &store.Session{
		ID:      s.IDs.Next("session"),
		OrgID:   org.ID,
		Org:     org.Name,
		UserID:  u.ID,
		User:    u.Name,
		Role:    u.Role,
		Expires: s.Clock.Now().Add(s.Lifetime),
		Cell:    r.Cell.Number,
	}
	x.Token = jwt(x, s.IDs.Named("signature", x.ID))
	dropExpiredSessions(s)
	s.Store.Sessions[x.Token] = x
	return x
}

// SweepSessions is the number of logins between two sweeps of expired sessions.
const SweepSessions = 256

// dropExpiredSessions removes expired sessions every SweepSessions logins, because most clients never log out.
func dropExpiredSessions(s *cloud.Cloud) {
	if s.IDs.Count["session"]%SweepSessions != 0 {
		return
	}
	now := s.Clock.Now()
	maps.DeleteFunc(s.Store.Sessions, func(_ string, x *store.Session) bool { return !now.Before(x.Expires) })
}

// jwt returns a token in the format of VCD, because clients handle short tokens differently.
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

func tokenTenant(r *api.Request) (*api.Response, error) { return tokenLogin(r, r.Vars["org"]) }

func tokenProvider(r *api.Request) (*api.Response, error) { return tokenLogin(r, store.SystemOrg) }

// tokenLogin exchanges an API token for an access token. It refuses tokens of another organization, so that clients
// that try the provider first fall back to the tenant.
func tokenLogin(r *api.Request, orgName string) (*api.Response, error) {
	form, err := url.ParseQuery(string(r.Content))
	if err != nil {
		return nil, store.BadRequest("The form is invalid: %s", err)
	}
	if !slices.Contains([]string{"refresh_token", jwtGrant, deviceGrant}, form.Get("grant_type")) {
		return oauthError("unsupported_grant_type"), nil
	}
	org := r.Cloud.Store.OrgByName(orgName)
	if org == nil || org.Disabled {
		return oauthError("invalid_grant"), nil
	}
	if awaitsGrant(r.Cloud.Store, org, form) {
		return oauthError("authorization_pending"), nil
	}
	token := form.Get("refresh_token")
	if u := org.TokenOwner(token); u != nil {
		return tokenResponse(r, org, u, token), nil
	}
	if c := clientLogin(r.Cloud, org, form); c != nil {
		res := tokenResponse(r, org, &store.User{ID: c.UserID, Name: c.User, Role: c.Role}, c.Token)
		r.Session.Client = c.ID
		return res, nil
	}
	return oauthError("invalid_grant"), nil
}

// tokenResponse creates a session and responds with its access token and the API token for the next login.
func tokenResponse(r *api.Request, org *store.Org, u *store.User, apiToken string) *api.Response {
	x := openSession(r, org, u)
	r.Session = x
	return api.JSON(map[string]any{
		"access_token":  x.Token,
		"token_type":    "Bearer",
		"expires_in":    int(r.Cloud.Lifetime.Seconds()),
		"scope":         "openid",
		"refresh_token": apiToken,
	})
}

func oauthError(code string) *api.Response {
	return &api.Response{
		Status: http.StatusBadRequest,
		JSON: map[string]any{
			"error":             code,
			"error_description": "Failed to create an access token from the refresh token.",
		},
	}
}

func sessionJSON(s *cloud.Cloud, x *store.Session) map[string]any {
	org := api.Ref("org", x.OrgID, x.Org)
	return map[string]any{
		"id":                        store.URN("session", x.ID),
		"site":                      api.Ref("site", s.IDs.Named("site", "site"), "vcdsim"),
		"user":                      api.Ref("user", x.UserID, x.User),
		"org":                       org,
		"operatingOrg":              org,
		"location":                  "",
		"roles":                     []string{x.Role},
		"roleRefs":                  []any{api.Ref("role", RoleID(s, x.OrgID, x.Role), x.Role)},
		"sessionIdleTimeoutMinutes": 30,
	}
}

func currentSession(r *api.Request) (*api.Response, error) {
	return api.JSON(sessionJSON(r.Cloud, r.Session)), nil
}

func legacySession(r *api.Request) (*api.Response, error) {
	x := r.Session
	n := xmltree.New("Session", wire.Namespaces(), xmltree.A("org", x.Org), xmltree.A("roles", x.Role),
		xmltree.A("user", x.User),
		xmltree.A("userId", store.URN("user", x.UserID)), xmltree.A("href", r.Site.Base()+"/api/session"),
		xmltree.A("type", wire.Mime("session")))
	n.Add([]*xmltree.Node{
		r.Site.Link("down", "/api/org/", wire.Mime("orgList")),
		r.Site.Link("remove", "/api/session", ""),
		r.Site.Link("down", "/api/admin/", "application/vnd.vmware.admin.vcloud+xml"),
		r.Site.Link("down", "/api/org/"+x.OrgID, wire.Mime("org"), x.Org),
		r.Site.Link("down", "/api/query", "application/vnd.vmware.vcloud.query.queryList+xml"),
		xmltree.New("AuthorizedLocations", xmltree.New("Location", xmltree.A("name", x.Org),
			xmltree.T("LocationId", r.Cloud.IDs.Named("site", "site")+"@"+r.Cloud.IDs.Named("site", "location")),
			xmltree.T("LocationName", r.Host), xmltree.T("OrgName", x.Org), xmltree.T("RestApiEndpoint", r.Site.Base()),
			xmltree.T("UIEndpoint", r.Site.Base()), xmltree.T("AuthContext", x.Org))),
	})
	return api.XML(n), nil
}

func logout(r *api.Request) (*api.Response, error) {
	if id := r.Vars["id"]; id != "" && id != "current" && store.Bare(id) != r.Session.ID {
		return nil, store.Forbidden("SESSION_DELETE", id)
	}
	delete(r.Cloud.Store.Sessions, r.Session.Token)
	return api.NoContent(), nil
}

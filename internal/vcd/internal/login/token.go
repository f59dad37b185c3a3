// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

const tokenHeader = "X-Vmware-Vcloud-Access-Token" //nolint:gosec // a header's name

// A token is an access token, the result of a login.
type token struct {
	value   string
	expires time.Time // zero if unknown
}

// stale reports whether the token should be replaced before it is used again.
func (t token) stale(now time.Time) bool {
	return t.value == "" || !t.expires.IsZero() && !now.Before(t.expires)
}

// exchangeToken exchanges a refresh token for an access token. It also returns the next refresh token, which is the same
// unless the token rotates.
func exchangeToken(ctx context.Context, via *transport.Transport, as Account, version string) (_ token, next string, _ error) {
	org, _ := as.identity()
	path := "/oauth/tenant/" + url.PathEscape(org) + "/token"
	if IsSystem(org) {
		path = "/oauth/provider/token"
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {as.Credentials.APIToken}}
	req, err := via.Site.NewRequest(ctx, http.MethodPost, path, transport.JSONType+";version="+version, []byte(form.Encode()))
	if err != nil {
		return token{}, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := via.Send(req)
	if err != nil {
		return token{}, "", err
	}
	var grant struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		ExpiresIn    int64  `json:"expires_in"`
	}
	if json.Unmarshal(got.Body, &grant) != nil || grant.AccessToken == "" {
		return token{}, "", failure.Unavailable("the login response has no token")
	}
	t := token{value: grant.AccessToken}
	if grant.ExpiresIn > 0 {
		t.expires = via.Site.Clock.Now().Add(time.Duration(grant.ExpiresIn) * time.Second)
	}
	return t, grant.RefreshToken, nil
}

// jwtExpiry returns the expiry of a token, or the zero time if the token is no JWT with an expiry.
func jwtExpiry(value string) time.Time {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// authorize sets the credentials of a request, replacing any others: some proxies reject duplicate Authorization
// headers.
func authorize(h http.Header, t token) {
	h.Set(tokenHeader, t.value)
	h.Set("X-Vmware-Vcloud-Token-Type", "Bearer")
	h.Set("Authorization", "Bearer "+t.value)
}

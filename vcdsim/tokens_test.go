// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// oauth posts a form to the organization's token endpoint.
func (c *client) oauth(form map[string]string) answer {
	values := url.Values{}
	for k, v := range form {
		values.Set(k, v)
	}
	req := c.request(http.MethodPost, "/oauth/tenant/acme/token", values.Encode())
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Del("Authorization")
	return c.do(req)
}

func (c *client) refresh(token string) answer {
	return c.oauth(map[string]string{"grant_type": "refresh_token", "refresh_token": token})
}

// serviceAccount creates a service account and returns its ID and first API token.
func (c *client) serviceAccount(name string) (id, token string) {
	registered := c.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"`+name+
			`","software_id":"11111111-2222-4333-8444-555555555555","scope":"urn:vcloud:role:Kubernetes%20Cloud%20Provider"}`)
	c.Expect(registered.status).To(Equal(http.StatusOK), string(registered.body))
	id = registered.json["client_id"].(string)
	device := c.call(http.MethodPost, "/oauth/tenant/acme/device_authorization", "client_id="+id)
	c.Expect(device.status).To(Equal(http.StatusOK), string(device.body))
	const grant = "urn:ietf:params:oauth:grant-type:device_code"
	form := map[string]string{"grant_type": grant, "client_id": id, "device_code": device.json["device_code"].(string)}
	c.Expect(c.oauth(form).status).To(Equal(http.StatusBadRequest), "it is not granted yet")
	granted := c.call(http.MethodPost, cloudAPI+"deviceLookup/grant",
		`{"userCode":"`+device.json["user_code"].(string)+`"}`)
	c.Expect(granted.status).To(Equal(http.StatusNoContent))
	first := c.oauth(form)
	c.Expect(first.status).To(Equal(http.StatusOK), string(first.body))
	return id, first.json["refresh_token"].(string)
}

func TestServiceAccountsGetANewTokenAtEachLogin(t *testing.T) {
	c := start(t, manual).user("admin")
	id, first := c.serviceAccount("ccm")
	second := c.refresh(first)
	c.Expect(second.status).To(Equal(http.StatusOK))
	next := second.json["refresh_token"].(string)
	c.Expect(next).NotTo(Equal(first))
	c.Expect(c.refresh(first).json).To(HaveKeyWithValue("error", "invalid_grant"), "a token can be used once")
	c.Expect(c.refresh(next).status).To(Equal(http.StatusOK), "a use of the old token had no effect")
	c.Expect(c.get(cloudAPI + "serviceAccounts/urn:vcloud:serviceAccount:" + id).json).To(And(HaveKeyWithValue("status",
		"ACTIVE"), HaveKeyWithValue("name", "ccm")))

	account := *c
	account.token = second.json["access_token"].(string)
	c.Expect(account.values("edgeGateways")).To(HaveLen(1))
	account.refused(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("x", ""), 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")

	c.Expect(c.refresh("capvcd-api-token").json).To(HaveKeyWithValue("refresh_token", "capvcd-api-token"),
		"API tokens of users are kept")
	c.Expect(c.refresh("capvcd-api-token").status).To(Equal(http.StatusOK))
}

func TestARotatedTokenIsLostWithTheResponse(t *testing.T) {
	c := start(t, manual).user("admin")
	id, token := c.serviceAccount("ccm")
	dump := c.dump()
	lost := c.refresh(token).json["refresh_token"].(string) // and pretend that the response was lost
	c.Expect(c.refresh(token).status).To(Equal(http.StatusBadRequest), "locked out")
	c.Expect(c.sim.Restore(dump)).To(Succeed())
	c.Expect(c.refresh(lost).status).To(Equal(http.StatusBadRequest), "it is unknown to a restored site")
	again := c.refresh(token)
	c.Expect(again.status).To(Equal(http.StatusOK), "but it knows the previous one")

	c.Expect(c.call(http.MethodPost, cloudAPI+"serviceAccounts/urn:vcloud:serviceAccount:"+id+"/revoke",
		"").status).To(Equal(http.StatusNoContent))
	c.Expect(c.refresh(again.json["refresh_token"].(string)).status).To(Equal(http.StatusBadRequest), "revoked")
	c.advance(time.Minute)
}

func TestAnUnauthenticatedDeviceRequestsAServiceAccountToken(t *testing.T) {
	c := start(t).user("admin")
	registered := c.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"ccm","software_id":"11111111-2222-4333-8444-555555555555","scope":"urn:vcloud:role:Kubernetes%20Cloud%20Provider"}`)
	id := registered.json["client_id"].(string)

	device := *c
	device.token = "" // it has no token yet
	authorization := device.call(http.MethodPost, "/oauth/tenant/acme/device_authorization", "client_id="+id)
	c.Expect(authorization.status).To(Equal(http.StatusOK), string(authorization.body))
	form := map[string]string{
		"grant_type":  "urn:ietf:params:oauth:grant-type:device_code",
		"client_id":   id,
		"device_code": authorization.json["device_code"].(string),
	}
	c.Expect(device.oauth(form).json).To(HaveKeyWithValue("error", "authorization_pending"), "the client has to poll again")
	form["device_code"] = "another"
	c.Expect(device.oauth(form).json).To(HaveKeyWithValue("error", "invalid_grant"))
	unknown := device.call(http.MethodPost, "/oauth/tenant/acme/device_authorization", "client_id=x")
	c.Expect(unknown.json).To(HaveKeyWithValue("error", "invalid_client"))
	granted := device.call(http.MethodPost, cloudAPI+"deviceLookup/grant",
		`{"userCode":"`+authorization.json["user_code"].(string)+`"}`)
	c.Expect(granted.status).To(Equal(http.StatusUnauthorized), "a user with the right must grant it")
}

func TestAnAPITokenIsDeletedWithItsUserAndOrganization(t *testing.T) {
	c := start(t)
	client := c.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"mine"}`).json["client_id"].(string)
	made := c.oauth(map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
		"client_id":  client,
		"assertion":  c.token,
	})
	token := made.json["refresh_token"].(string)
	c.Expect(c.refresh(token).status).To(Equal(http.StatusOK))

	p := c.provider()
	user := ""
	for _, u := range c.model().Users {
		if u.Name == "capvcd" {
			user = "/api/admin/user/" + u.ID
		}
	}
	body := string(p.get(user).body)
	p.Expect(body).To(ContainSubstring("<IsEnabled>true</IsEnabled>"))
	p.Expect(p.call(http.MethodPut, user,
		strings.Replace(body, "<IsEnabled>true<", "<IsEnabled>false<", 1)).status).To(Equal(http.StatusOK))
	c.Expect(c.refresh(token).json).To(HaveKeyWithValue("error", "invalid_grant"), "its user must not log in")
	c.Expect(c.refresh("ccm-api-token").status).To(Equal(http.StatusOK), "another user may")

	p.Expect(p.call(http.MethodPost, "/api/admin/org/"+c.model().ID+"/action/disable",
		"").status).To(Equal(http.StatusNoContent))
	c.Expect(c.refresh("ccm-api-token").json).To(HaveKeyWithValue("error", "invalid_grant"),
		"not a user of the organization")
}

func TestUsersSeeOnlyTheirOwnAPITokens(t *testing.T) {
	c := start(t)
	id := "urn:vcloud:token:" + c.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"mine"}`).json["client_id"].(string)
	c.Expect(c.values("tokens")).To(HaveLen(1))

	other := c.user("ccm")
	c.Expect(other.values("tokens")).To(BeEmpty())
	c.Expect(other.call(http.MethodDelete, cloudAPI+"tokens/"+id, "").status).To(Equal(http.StatusForbidden))
	c.Expect(c.get(cloudAPI + "tokens/" + id).status).To(Equal(http.StatusOK))

	c.Expect(c.user("admin").values("tokens")).To(HaveLen(1), "an administrator may manage all")
	c.Expect(c.user("admin").call(http.MethodDelete, cloudAPI+"tokens/"+id, "").status).To(Equal(http.StatusNoContent))
	c.Expect(c.values("tokens")).To(BeEmpty())
}

func TestServiceAccountsRequireManageRights(t *testing.T) {
	c := start(t)
	admin := c.user("admin")
	id, token := admin.serviceAccount("ccm")
	path := cloudAPI + "serviceAccounts/urn:vcloud:serviceAccount:" + id
	c.Expect(c.call(http.MethodGet, path, "").status).To(Equal(http.StatusForbidden))
	c.Expect(c.call(http.MethodDelete, path, "").status).To(Equal(http.StatusForbidden))
	c.Expect(c.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"x","software_id":"y","scope":"urn:vcloud:role:vApp%20User"}`).status).To(
		Equal(http.StatusForbidden))
	c.Expect(admin.call(http.MethodPost, "/oauth/tenant/acme/register",
		`{"client_name":"x","software_id":"y","scope":"urn:vcloud:role:none"}`).status).
		To(Equal(http.StatusForbidden), "no such role")

	other := *c
	other.token = c.refresh(token).json["access_token"].(string)
	c.Expect(other.get("/api/org").status).To(Equal(http.StatusOK))
	c.Expect(admin.call(http.MethodPost, path+"/revoke", "").status).To(Equal(http.StatusNoContent))
	c.Expect(other.call(http.MethodGet, "/api/org", "").status).To(Equal(http.StatusUnauthorized),
		"its sessions end with the token")
}

func TestAServiceAccountIsUpdated(t *testing.T) {
	c := start(t).user("admin")
	id, _ := c.serviceAccount("ccm")
	c.serviceAccount("other")
	path := cloudAPI + "serviceAccounts/urn:vcloud:serviceAccount:" + id
	role := c.values("roles?filter=name==vApp%20User")[0]["id"].(string)
	body := func(name string) string {
		return `{"name":"` + name +
			`","softwareId":"11111111-2222-4333-8444-555555555555","softwareVersion":"2","uri":"https://ccm.example","status":"CREATED",` +
			`"role":{"id":"` + role + `","name":"vApp User"}}`
	}
	changed := c.call(http.MethodPut, path, body("renamed"))
	c.Expect(changed.status).To(Equal(http.StatusOK), string(changed.body))
	c.Expect(c.get(path).json).To(And(HaveKeyWithValue("name", "renamed"), HaveKeyWithValue("softwareVersion", "2"),
		HaveKeyWithValue("uri", "https://ccm.example"),
		HaveKeyWithValue("status", "ACTIVE"), HaveKeyWithValue("role", HaveKeyWithValue("name", "vApp User"))))
	c.Expect(c.call(http.MethodPut, path, body("other")).status).To(Equal(http.StatusBadRequest), "the name is in use")
	c.Expect(c.call(http.MethodPut, path, body("")).status).To(Equal(http.StatusBadRequest))
}

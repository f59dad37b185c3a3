// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func (c *client) settingsPath(kind string) string {
	return "/api/admin/org/" + c.model().ID + "/settings/" + kind
}

const ldapBody = `<OrgLdapSettings ` + xmlns + `><OrgLdapMode>CUSTOM</OrgLdapMode><CustomOrgLdapSettings>` +
	`<HostName>ldap.example</HostName><Port>389</Port><UserName>cn=admin</UserName><Password>secret</Password>` +
	`<AuthenticationMechanism>SIMPLE</AuthenticationMechanism><IsGroupSearchBaseEnabled>false</IsGroupSearchBaseEnabled>` +
	`<ConnectorType>OPEN_LDAP</ConnectorType><UserAttributes><ObjectClass>person</ObjectClass>` +
	`<ObjectIdentifier>uid</ObjectIdentifier><UserName>uid</UserName><Email>mail</Email><FullName>cn</FullName>` +
	`<GivenName>givenName</GivenName><Surname>sn</Surname><Telephone>phone</Telephone>` +
	`<GroupMembershipIdentifier>dn</GroupMembershipIdentifier></UserAttributes>` +
	`<GroupAttributes><ObjectClass>group</ObjectClass><ObjectIdentifier>cn</ObjectIdentifier><GroupName>cn</GroupName>` +
	`<Membership>member</Membership><MembershipIdentifier>dn</MembershipIdentifier></GroupAttributes>` +
	`</CustomOrgLdapSettings></OrgLdapSettings>`

// ldap gives the organization its own directory and returns the path of its settings.
func (c *client) ldap() string {
	path := c.settingsPath("ldap")
	a := c.call(http.MethodPut, path, ldapBody)
	c.Expect(a.status).To(Equal(http.StatusOK), "%s", a.body)
	return path
}

func TestLDAPSettingsHaveOneModeAndNeverShowThePassword(t *testing.T) {
	c := start(t).user("admin")
	path := c.settingsPath("ldap")
	c.Expect(c.get(path).xml.Str("OrgLdapMode")).To(Equal("NONE"))

	c.ldap()
	custom := c.get(path).xml.At("CustomOrgLdapSettings")
	c.Expect(custom.Str("HostName")).To(Equal("ldap.example"))
	c.Expect(custom.At("Password")).To(BeNil())
	c.Expect(custom.Str("UserAttributes", "ObjectClass")).To(Equal("person"))

	for _, replaced := range [][2]string{
		{"CUSTOM", "ELSEWHERE"},
		{"CUSTOM", "NONE"},
		{"<OrgLdapMode>CUSTOM</OrgLdapMode>", "<OrgLdapMode>CUSTOM</OrgLdapMode><CustomUsersOu>ou=x</CustomUsersOu>"},
		{"<HostName>ldap.example</HostName>", ""},
		{">389<", ">many<"},
		{"<Email>mail</Email>", ""},
		{"SIMPLE", "NONE"},
		{"OPEN_LDAP", "CLOSED_LDAP"},
	} {
		c.refused(http.MethodPut, path, strings.Replace(ldapBody, replaced[0], replaced[1], 1), 400, "BAD_REQUEST")
	}
	c.Expect(c.call(http.MethodPut, path, `<OrgLdapSettings `+xmlns+`><OrgLdapMode>NONE</OrgLdapMode></OrgLdapSettings>`).
		status).To(Equal(http.StatusOK))
	c.Expect(c.get(path).xml.At("CustomOrgLdapSettings")).To(BeNil())
}

// discovered returns the site's metadata as an OpenID provider.
func (c *client) discovered() string {
	a := c.call(http.MethodPost, c.settingsPath("oauth")+"/openIdProviderConfig",
		`<OpenIdProviderInfo `+xmlns+`><OpenIdProviderConfigurationEndpoint>`+c.sim.URL()+
			`/oidc/.well-known/openid-configuration</OpenIdProviderConfigurationEndpoint></OpenIdProviderInfo>`)
	c.Expect(a.status).To(Equal(http.StatusOK), "%s", a.body)
	found := string(a.body)
	from := strings.Index(found, "<OrgOAuthSettings>")
	to := strings.Index(found, "</OrgOAuthSettings>")
	return `<OrgOAuthSettings ` + xmlns + `>` + found[from+len("<OrgOAuthSettings>"):to] +
		`<ClientId>client</ClientId><ClientSecret>secret</ClientSecret></OrgOAuthSettings>`
}

// oidc makes the site the organization's OpenID provider and returns the path of the settings.
func (c *client) oidc() string {
	path := c.settingsPath("oauth")
	a := c.call(http.MethodPut, path, c.discovered())
	c.Expect(a.status).To(Equal(http.StatusOK), "%s", a.body)
	return path
}

func TestOpenIDConnectSettingsComeFromTheProviderMetadata(t *testing.T) {
	c := start(t).user("admin")
	path := c.settingsPath("oauth")
	c.Expect(c.get(path).xml.Str("Enabled")).To(Equal("false"))
	c.Expect(c.get(path).xml.Str("OrgRedirectUri")).To(HaveSuffix("tenant:acme"))

	c.oidc()
	settings := c.get(path).xml
	c.Expect(settings.Str("IssuerId")).To(Equal(c.sim.URL() + "/oidc"))
	c.Expect(settings.Str("OAuthKeyConfigurations", "OAuthKeyConfiguration", "Key")).To(ContainSubstring("PUBLIC KEY"))
	c.Expect(settings.Str("OIDCAttributeMapping", "SubjectAttributeName")).To(Equal("sub"))
	c.Expect(settings.All("Scope")).NotTo(BeEmpty())
	c.Expect(c.get("/oidc/.well-known/openid-configuration").json).To(HaveKeyWithValue("issuer", settings.Str("IssuerId")))

	c.Expect(c.call(http.MethodDelete, path, "").status).To(Equal(http.StatusNoContent))
	c.Expect(c.get(path).xml.Str("IssuerId")).To(BeEmpty())
}

func TestInvalidOpenIDConnectSettings(t *testing.T) {
	c := start(t).user("admin")
	path := c.settingsPath("oauth")
	body := c.discovered()
	for _, replaced := range [][2]string{
		{"<ClientId>client</ClientId>", ""},
		{"-----BEGIN PUBLIC KEY-----", "no key"},
		{"<Algorithm>", "<Algorithm>X"},
		{"<ClientId>", "<KeyRefreshStrategy>FORGET</KeyRefreshStrategy><ClientId>"},
		{"<ClientId>", "<MaxClockSkew>-1</MaxClockSkew><ClientId>"},
	} {
		c.refused(http.MethodPut, path, strings.Replace(body, replaced[0], replaced[1], 1), 400, "BAD_REQUEST")
	}
	message := c.refused(http.MethodPost, path+"/openIdProviderConfig",
		`<OpenIdProviderInfo `+xmlns+`><OpenIdProviderConfigurationEndpoint>https://idp.example/</OpenIdProviderConfigurationEndpoint>`+
			`</OpenIdProviderInfo>`, 400, "BAD_REQUEST")
	c.Expect(message).To(ContainSubstring("cannot be reached"))
}

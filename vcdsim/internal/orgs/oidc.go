// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const (
	oidcPath  = "admin/org/{id}/settings/oauth"
	wellKnown = "/oidc/.well-known/openid-configuration"
)

const (
	oidcKeys   = "OAuthKeyConfigurations"
	oidcKey    = "OAuthKeyConfiguration"
	oidcClaims = "OIDCAttributeMapping"
)

// oidcFields are the OpenID Connect settings of an organization. The simulator stores them, but logins do not use them.
var oidcFields = []field{
	{name: "OrgRedirectUri", computed: true},
	{name: "IssuerId"},
	{
		name: oidcKeys,
		kind: fieldGroup,
		fields: []field{
			{
				name: oidcKey,
				kind: fieldGroups,
				fields: []field{
					{name: "KeyId"},
					{name: "Algorithm"},
					{name: "Key"},
					{name: "ExpirationDate"},
				},
			},
		},
	},
	{name: "Enabled", kind: fieldFlag},
	{name: "ClientId"},
	{name: "ClientSecret"},
	{name: "UserAuthorizationEndpoint"},
	{name: "AccessTokenEndpoint"},
	{name: "UserInfoEndpoint"},
	{name: "ScimEndpoint"},
	{name: "Scope", kind: fieldTexts},
	{
		name: oidcClaims,
		kind: fieldGroup,
		fields: []field{
			{name: "SubjectAttributeName"},
			{name: "EmailAttributeName"},
			{name: "FullNameAttributeName"},
			{name: "FirstNameAttributeName"},
			{name: "LastNameAttributeName"},
			{name: "GroupsAttributeName"},
			{name: "RolesAttributeName"},
		},
	},
	{name: "MaxClockSkew", kind: fieldNumber},
	{name: "JwksUri"},
	{name: "AutoRefreshKey", kind: fieldFlag},
	{name: "KeyRefreshStrategy"},
	{name: "KeyRefreshFrequencyInHours", kind: fieldNumber},
	{name: "KeyExpireDurationInHours", kind: fieldNumber},
	{name: "WellKnownEndpoint"},
	{name: "LastKeyRefreshAttempt", computed: true},
	{name: "LastKeySuccessfulRefresh", computed: true},
	{name: "EnableIdTokenClaims", kind: fieldFlag, since: "37.1"},
	{name: "UsePKCE", kind: fieldFlag, since: "38.0"},
	{name: "SendClientCredentialsAsAuthorizationHeader", kind: fieldFlag, since: "38.0"},
	{name: "CustomUiButtonLabel", since: "38.1"},
}

func oidcRoutes(add api.AddRoute) {
	const path = "/api/admin/org/{id}/settings/oauth"
	add("GET", path, api.With(access.OwnOrg, getOIDC), cloud.LatencyLegacy)
	add("PUT", path, api.With2(api.Parsed(access.OwnOrg), putOIDC), cloud.LatencyWrite)
	add("DELETE", path, api.WithCloud(access.OwnOrg, deleteOIDC), cloud.LatencyWrite)
	add("POST", path+"/openIdProviderConfig", api.With2(api.Parsed(access.OwnOrg), discoverOIDC), cloud.LatencyWrite)
}

// OpenRoutes adds the routes that need no session: the OpenID provider configuration of the site.
func OpenRoutes(add api.AddRoute) {
	add("GET", wellKnown, getWellKnown, cloud.LatencyCloudAPI)
}

func getOIDC(r *api.Request, org *store.Org) (*api.Response, error) {
	n := xmltree.New("OrgOAuthSettings", wire.Namespaces(),
		xmltree.A("href", r.Site.Base()+"/api/admin/org/"+org.ID+"/settings/oauth"),
		xmltree.A("type", "application/vnd.vmware.admin.organizationOAuthSettings+xml"))
	n.Add(xmltree.T("OrgRedirectUri", r.Site.Base()+"/login/oauth?service=tenant:"+org.Name))
	addFields(n, r.Version, oidcFields, settingsBody(r.Cloud.Store, org, oidcPath))
	return api.XML(n), nil
}

func putOIDC(r *api.Request, org *store.Org, tree *xmltree.Node) (*api.Response, error) {
	body, err := readFields(tree, oidcFields)
	if err != nil {
		return nil, err
	}
	if err := checkOIDC(body); err != nil {
		return nil, err
	}
	storeSettings(r.Cloud.Store, org, oidcPath, body)
	return getOIDC(r, org)
}

// checkOIDC refuses settings that lack a field that logins need.
func checkOIDC(body map[string]any) error {
	for _, name := range []string{
		"ClientId", "ClientSecret", "UserAuthorizationEndpoint", "AccessTokenEndpoint",
		"UserInfoEndpoint",
	} {
		if store.Text(body, name) == "" {
			return store.BadRequest("The OpenID Connect settings have no %s.", name)
		}
	}
	strategies := []string{"", "ADD", "REPLACE", "EXPIRE_AFTER"}
	if s := store.Text(body, "KeyRefreshStrategy"); !slices.Contains(strategies, s) {
		return store.BadRequest("The strategy %q for refreshed keys is invalid.", s)
	}
	keys, _ := body[oidcKeys].(map[string]any)
	for _, x := range listOf(keys, oidcKey) {
		key, _ := x.(map[string]any)
		if err := checkKey(key); err != nil {
			return err
		}
	}
	return nil
}

// checkKey refuses anything other than a public RSA or EC key in PEM format.
func checkKey(key map[string]any) error {
	if a := store.Text(key, "Algorithm"); a != "RSA" && a != "EC" {
		return store.BadRequest("The algorithm %q of the key %q is invalid.", a, store.Text(key, "KeyId"))
	}
	block, _ := pem.Decode([]byte(store.Text(key, "Key")))
	if block == nil {
		return store.BadRequest("The key %q is not in PEM format.", store.Text(key, "KeyId"))
	}
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		return store.BadRequest("The key %q is invalid: %s", store.Text(key, "KeyId"), err)
	}
	return nil
}

func deleteOIDC(s *cloud.Cloud, org *store.Org) (*api.Response, error) {
	if d := settingsOf(s.Store, org, oidcPath); d != nil {
		s.Store.Documents.Remove(oidcPath, d)
	}
	return api.NoContent(), nil
}

// openIDProvider returns the configuration of the site as an OpenID provider for other services, a role that VCD has
// since 10.4.1. The simulator implements only the configuration.
func openIDProvider(site wire.Site) map[string]any {
	issuer := site.Base() + "/oidc"
	return map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                issuer + "/authorize",
		"token_endpoint":                        issuer + "/token",
		"userinfo_endpoint":                     issuer + "/userinfo",
		"jwks_uri":                              issuer + "/keys",
		"scopes_supported":                      []any{"openid", "profile", "email", "groups"},
		"response_types_supported":              []any{"code"},
		"subject_types_supported":               []any{"public"},
		"id_token_signing_alg_values_supported": []any{"RS256", "ES256"},
	}
}

func getWellKnown(r *api.Request) (*api.Response, error) {
	return api.JSON(openIDProvider(r.Site)), nil
}

// discoverOIDC returns the settings that follow from the configuration of an OpenID provider. The simulator opens no
// connections, so only the site itself is reachable.
func discoverOIDC(r *api.Request, org *store.Org, tree *xmltree.Node) (*api.Response, error) {
	endpoint := tree.Str("OpenIdProviderConfigurationEndpoint")
	if endpoint != r.Site.Base()+wellKnown {
		return nil, store.BadRequest("The OpenID provider at %q cannot be reached.", endpoint)
	}
	described := openIDProvider(r.Site)
	key, err := siteKey(r.Cloud.Chain())
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(described)
	if err != nil {
		return nil, err
	}
	settings := xmltree.New("OrgOAuthSettings",
		xmltree.T("OrgRedirectUri", r.Site.Base()+"/login/oauth?service=tenant:"+org.Name))
	addFields(settings, r.Version, oidcFields, map[string]any{
		"IssuerId":                  described["issuer"],
		oidcKeys:                    map[string]any{oidcKey: []any{key}},
		"UserAuthorizationEndpoint": described["authorization_endpoint"],
		"AccessTokenEndpoint":       described["token_endpoint"],
		"UserInfoEndpoint":          described["userinfo_endpoint"],
		"JwksUri":                   described["jwks_uri"],
		"Scope":                     described["scopes_supported"],
		"WellKnownEndpoint":         endpoint,
		oidcClaims: map[string]any{
			"SubjectAttributeName":   "sub",
			"EmailAttributeName":     "email",
			"FullNameAttributeName":  "name",
			"FirstNameAttributeName": "given_name",
			"LastNameAttributeName":  "family_name",
			"GroupsAttributeName":    "groups",
			"RolesAttributeName":     "roles",
		},
	})
	return api.XML(xmltree.New("OpenIdProviderConfiguration", wire.Namespaces(), settings,
		xmltree.T("ProviderConfigResponse", string(raw)))), nil
}

// siteKey returns the public key of the site's certificate.
func siteKey(chain string) (map[string]any, error) {
	block, _ := pem.Decode([]byte(chain))
	if block == nil {
		return nil, errors.New("the site has no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	algorithm := ""
	switch certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		algorithm = "RSA"
	case *ecdsa.PublicKey:
		algorithm = "EC"
	}
	return map[string]any{
		"KeyId":     certificate.SerialNumber.String(),
		"Algorithm": algorithm,
		"Key":       string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: certificate.RawSubjectPublicKeyInfo})),
	}, nil
}

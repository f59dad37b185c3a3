// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const ldapPath = "admin/org/{id}/settings/ldap"

// Values of OrgLdapMode: the directory that holds the users of an organization.
const (
	ldapNone   = "NONE"
	ldapSystem = "SYSTEM" // the provider's directory
	ldapCustom = "CUSTOM" // a directory of the organization
)

const customLDAP = "CustomOrgLdapSettings"

// ldapFields are the LDAP settings of an organization. The simulator stores them but contacts no directory.
var ldapFields = []field{
	{name: "OrgLdapMode"},
	{name: "CustomUsersOu"},
	{
		name: customLDAP,
		kind: fieldGroup,
		fields: []field{
			{name: "HostName"},
			{name: "Port", kind: fieldNumber},
			{name: "IsSsl", kind: fieldFlag},
			{name: "IsSslAcceptAll", kind: fieldFlag},
			{name: "Realm"},
			{name: "SearchBase"},
			{name: "UserName"},
			{name: "Password", hidden: true},
			{name: "AuthenticationMechanism"},
			{name: "GroupSearchBase"},
			{name: "IsGroupSearchBaseEnabled", kind: fieldFlag},
			{name: "ConnectorType"},
			{
				name:     "UserAttributes",
				kind:     fieldGroup,
				required: true,
				fields: []field{
					{name: "ObjectClass", required: true},
					{name: "ObjectIdentifier", required: true},
					{name: "UserName", required: true},
					{name: "Email", required: true},
					{name: "FullName", required: true},
					{name: "GivenName", required: true},
					{name: "Surname", required: true},
					{name: "Telephone", required: true},
					{name: "GroupMembershipIdentifier", required: true},
					{name: "GroupBackLinkIdentifier"},
				},
			},
			{
				name:     "GroupAttributes",
				kind:     fieldGroup,
				required: true,
				fields: []field{
					{name: "ObjectClass", required: true},
					{name: "ObjectIdentifier", required: true},
					{name: "GroupName", required: true},
					{name: "Membership", required: true},
					{name: "MembershipIdentifier", required: true},
					{name: "BackLinkIdentifier"},
				},
			},
			{name: "UseExternalKerberos", kind: fieldFlag},
		},
	},
}

func ldapRoutes(add api.AddRoute) {
	const path = "/api/admin/org/{id}/settings/ldap"
	add("GET", path, api.With(access.OwnOrg, getLDAP), cloud.LatencyLegacy)
	add("PUT", path, api.With2(api.Parsed(access.OwnOrg), putLDAP), cloud.LatencyWrite)
}

func getLDAP(r *api.Request, org *store.Org) (*api.Response, error) {
	body := settingsBody(r.Cloud.Store, org, ldapPath)
	n := xmltree.New("OrgLdapSettings", wire.Namespaces(),
		xmltree.A("href", r.Site.Base()+"/api/admin/org/"+org.ID+"/settings/ldap"),
		xmltree.A("type", "application/vnd.vmware.admin.organizationLdapSettings+xml"))
	if len(body) == 0 {
		body = map[string]any{"OrgLdapMode": ldapNone}
	}
	addFields(n, r.Version, ldapFields, body)
	return api.XML(n), nil
}

func putLDAP(r *api.Request, org *store.Org, tree *xmltree.Node) (*api.Response, error) {
	body, err := readFields(tree, ldapFields)
	if err != nil {
		return nil, err
	}
	if err := checkLDAP(body); err != nil {
		return nil, err
	}
	keepPassword(body, settingsBody(r.Cloud.Store, org, ldapPath))
	storeSettings(r.Cloud.Store, org, ldapPath, body)
	return getLDAP(r, org)
}

// checkLDAP refuses settings that do not belong to the selected mode.
func checkLDAP(body map[string]any) error {
	mode := store.Text(body, "OrgLdapMode")
	custom, _ := body[customLDAP].(map[string]any)
	switch {
	case !slices.Contains([]string{ldapNone, ldapSystem, ldapCustom}, mode):
		return store.BadRequest("The LDAP mode %q is invalid.", mode)
	case mode != ldapSystem && store.Text(body, "CustomUsersOu") != "":
		return store.BadRequest("A custom organizational unit needs the LDAP mode %s.", ldapSystem)
	case mode != ldapCustom && custom != nil:
		return store.BadRequest("Custom LDAP settings need the LDAP mode %s.", ldapCustom)
	case mode == ldapCustom && (store.Text(custom, "HostName") == "" || store.Text(custom, "Port") == ""):
		return store.BadRequest("Custom LDAP settings need a host name and a port.")
	}
	for name, known := range map[string][]string{
		"AuthenticationMechanism": {"SIMPLE", "KERBEROS", "MD5DIGEST", "NTLM"},
		"ConnectorType":           {"ACTIVE_DIRECTORY", "OPEN_LDAP"},
	} {
		if value := store.Text(custom, name); custom != nil && !slices.Contains(known, value) {
			return store.BadRequest("The value %q of %s is invalid.", value, name)
		}
	}
	return nil
}

// keepPassword copies the old password to a body without one. VCD never shows the password, so clients cannot send it
// back.
func keepPassword(body, old map[string]any) {
	custom, _ := body[customLDAP].(map[string]any)
	had, _ := old[customLDAP].(map[string]any)
	if custom != nil && store.Text(custom, "Password") == "" && had["Password"] != nil {
		custom["Password"] = had["Password"]
	}
}

// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SystemOrg is the name of the provider's organization.
const SystemOrg = "System"

// An Access is the list of users and organizations that an entity is shared with.
type Access struct {
	ID       string // ID of the entity
	Everyone string // level of everyone; empty if not shared with everyone
	Grants   []Grant
}

// A Grant is the access level of a user or an organization.
type Grant struct {
	Kind      string // user, org
	ID        string
	Name      string
	MediaType string
	Level     string
}

// A Session is a login.
type Session struct {
	ID      string
	Token   string
	OrgID   string
	Org     string
	UserID  string
	User    string
	Role    string
	Expires time.Time
	Cell    int    // number of the cell that created it
	Client  string // bare ID of the API token or service account that logged in
}

// Provider reports whether the session belongs to the provider, who sees all organizations.
func (s *Session) Provider() bool { return strings.EqualFold(s.Org, SystemOrg) }

// Sees reports whether the session can see an organization: its own, or any if it belongs to the provider.
func (s *Session) Sees(orgID string) bool { return s.Provider() || s.OrgID == orgID }

// String hides the token when a session is printed.
func (s *Session) String() string { return fmt.Sprintf("session %s of %s@%s", s.ID, s.User, s.Org) }

// An APIClient is a client that is registered for tokens: a user's API token, or a service account.
type APIClient struct {
	ID              string // bare UUID
	Name            string
	OrgID           string
	UserID          string
	User            string
	Role            string
	ServiceAccount  bool
	SoftwareID      string
	SoftwareVersion string
	SoftwareURI     string
	Status          string // of service accounts: CREATED, REQUESTED, GRANTED, ACTIVE
	Token           string // API token; empty until it is retrieved
	UserCode        string // of the device authorization
	DeviceCode      string // of the device authorization
}

// Clashes reports whether another client has the same name. Names of service accounts are unique per organization, and
// those of API tokens per user.
func (c *APIClient) Clashes(x *APIClient) bool {
	return x.Name == c.Name && x.OrgID == c.OrgID && x.ServiceAccount == c.ServiceAccount && (c.ServiceAccount || x.UserID == c.UserID)
}

// TokenOwner returns the enabled user with an API token, or nil if there is none.
func (o *Org) TokenOwner(token string) *User {
	i := slices.IndexFunc(o.Users, func(u User) bool { return !u.Disabled && slices.Contains(u.APITokens, token) })
	if token == "" || i < 0 {
		return nil
	}
	return &o.Users[i]
}

// User returns the name of a user of an organization, or "system" if the user does not exist.
func (s *Store) User(orgID, id string) string {
	if org := s.Org(orgID); org != nil {
		for _, u := range org.Users {
			if u.ID == id {
				return u.Name
			}
		}
	}
	return "system"
}

// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SystemOrg is the name of the organization of the provider.
const SystemOrg = "System"

// An Access is the list of those an entity is shared with.
type Access struct {
	ID       string // of the entity
	Everyone string // level; empty: not shared with all
	Grants   []Grant
}

// A Grant is the level that a user or an organization has.
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
	Cell    int    // where it was opened
	Client  string // bare id of the registered API token or service account that opened it
}

// Provider reports whether the session is of the provider, who sees all organizations.
func (s *Session) Provider() bool { return strings.EqualFold(s.Org, SystemOrg) }

// Sees reports whether the session reaches an organization: its own, or any if it is the provider's.
func (s *Session) Sees(orgID string) bool { return s.Provider() || s.OrgID == orgID }

// String hides the token when a session is printed.
func (s *Session) String() string { return fmt.Sprintf("session %s of %s@%s", s.ID, s.User, s.Org) }

// An APIClient is what registered for tokens: a user's API token, or a service account.
type APIClient struct {
	ID              string // bare
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
	Token           string // the API token, empty until it is fetched
	UserCode        string // of the device authorization
	DeviceCode      string // of the device authorization
}

// Clashes reports whether another client has the name: service accounts of an organization, or API tokens of a user.
func (c *APIClient) Clashes(x *APIClient) bool {
	return x.Name == c.Name && x.OrgID == c.OrgID && x.ServiceAccount == c.ServiceAccount && (c.ServiceAccount || x.UserID == c.UserID)
}

// TokenOwner is the user who has an API token and may log in, nil if there is none.
func (o *Org) TokenOwner(token string) *User {
	i := slices.IndexFunc(o.Users, func(u User) bool { return !u.Disabled && slices.Contains(u.APITokens, token) })
	if token == "" || i < 0 {
		return nil
	}
	return &o.Users[i]
}

// User is the name of a user of an organization; what no user made is the system's.
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

// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// entityLevels maps the access levels of defined entities to those of package access.
var entityLevels = map[string]access.Level{
	"urn:vcloud:accessLevel:ReadOnly":    access.LevelRead,
	"urn:vcloud:accessLevel:ReadWrite":   access.LevelChange,
	"urn:vcloud:accessLevel:FullControl": access.LevelFull,
}

// typeRightsFor returns the rights of a type that permit an access level. A right of the first list permits it together
// with access to the entity, a right of the second list permits it alone.
func typeRightsFor(needs access.Level) (withAccess, alone []string) {
	if needs == access.LevelRead {
		return []string{access.TypeView, access.TypeModify, access.TypeFull}, []string{access.TypeAdminView, access.TypeAdminFull}
	}
	if needs == access.LevelChange {
		return []string{access.TypeModify, access.TypeFull}, []string{access.TypeAdminFull}
	}
	return []string{access.TypeFull}, []string{access.TypeAdminFull}
}

// neededLevel returns the access level that a request requires for the entity in its path.
func neededLevel(r *api.Request) access.Level {
	_, path, _ := strings.Cut(r.Operation, " ")
	switch {
	case r.Method == http.MethodGet:
		return access.LevelRead
	case strings.Contains(path, "/metadata"):
		return access.LevelChange
	case r.Method == http.MethodDelete || strings.Contains(path, "/accessControls"):
		return access.LevelFull
	}
	return access.LevelChange
}

// canAccessEntity reports whether the caller has an access level to an entity. The caller needs an administrator's
// right of its type, or another right of the type together with access to the entity.
func canAccessEntity(r *api.Request, d *store.Object, needs access.Level) bool {
	if !r.Session.Sees(d.OrgID) {
		return false
	}
	if !r.Cloud.Assume.EntitiesTakeRights || r.Session.Provider() {
		return true
	}
	// urn:vcloud:type:vendor:nss:version
	name := append(strings.Split(store.Text(d.Body, "entityType"), ":"), make([]string, 6)...)
	has := func(right string) bool { return access.HasRight(r, access.TypeRight(name[3], name[4], right)) }
	withAccess, alone := typeRightsFor(needs)
	return slices.ContainsFunc(alone, has) ||
		entityLevel(r.Session, r.Cloud.Store, d) >= needs && slices.ContainsFunc(withAccess, has)
}

// entityLevel returns the access level of the caller as the owner of an entity, or by its access controls.
func entityLevel(session *store.Session, st *store.Store, d *store.Object) access.Level {
	if id, _ := api.At(d.Body, []string{"owner", "id"}); id == store.URN("user", session.UserID) {
		return access.LevelFull
	}
	out := access.LevelNone
	for _, g := range st.Documents[access.EntitiesPath+"/"+d.ID()+"/accessControls"] {
		if member := store.Text(g.Body, "memberId"); member == store.URN("user", session.UserID) ||
			member == store.URN("org", session.OrgID) {
			out = max(out, entityLevels[store.Text(g.Body, "accessLevelId")])
		}
	}
	return out
}

// checkMayCreateEntity refuses callers without full access to a type.
func checkMayCreateEntity(r *api.Request, typ *store.Object) error {
	if !r.Cloud.Assume.EntitiesTakeRights || r.Session.Provider() {
		return nil
	}
	vendor := store.Text(typ.Body, "vendor")
	nss := store.Text(typ.Body, "nss")
	return access.PermittedBy(r, &access.Need{
		Rights:    []string{access.TypeRight(vendor, nss, access.TypeFull), access.TypeRight(vendor, nss, access.TypeAdminFull)},
		Operation: "DEFINED_ENTITY_CREATE",
	})
}

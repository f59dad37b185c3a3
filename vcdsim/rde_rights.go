// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// entityLevels are the access levels of defined entities.
var entityLevels = map[string]level{
	"urn:vcloud:accessLevel:ReadOnly":    levelRead,
	"urn:vcloud:accessLevel:ReadWrite":   levelChange,
	"urn:vcloud:accessLevel:FullControl": levelFull,
}

// typeRightsFor are the rights of a type of which an operation takes one: beside access to the entity, or without.
func typeRightsFor(needs level) (withAccess, alone []string) {
	if needs == levelRead {
		return []string{typeView, typeModify, typeFull}, []string{typeAdminView, typeAdminFull}
	}
	if needs == levelChange {
		return []string{typeModify, typeFull}, []string{typeAdminFull}
	}
	return []string{typeFull}, []string{typeAdminFull}
}

// neededOfEntity is what a request needs of the entity in its path.
func neededOfEntity(r *request) level {
	_, path, _ := strings.Cut(r.op, " ")
	switch {
	case r.Method == http.MethodGet:
		return levelRead
	case strings.Contains(path, "/metadata"):
		return levelChange
	case r.Method == http.MethodDelete || strings.Contains(path, "/accessControls"):
		return levelFull
	}
	return levelChange
}

// reachesEntity reports whether the caller may do something with an entity: by a right of administrators of its type,
// or by another right of the type together with access to the entity.
func reachesEntity(r *request, d *store.Object, needs level) bool {
	if !r.session.Sees(d.OrgID) {
		return false
	}
	if !r.cloud.assume.EntitiesTakeRights || r.session.Provider() {
		return true
	}
	// urn:vcloud:type:vendor:nss:version
	name := append(strings.Split(store.Text(d.Body, "entityType"), ":"), make([]string, 6)...)
	has := func(right string) bool { return r.hasRight(typeRight(name[3], name[4], right)) }
	withAccess, alone := typeRightsFor(needs)
	return slices.ContainsFunc(alone, has) ||
		entityLevel(r.session, r.cloud.store, d) >= needs && slices.ContainsFunc(withAccess, has)
}

// entityLevel is the access that the caller has to an entity as its owner, or by its access controls.
func entityLevel(session *store.Session, st *store.Store, d *store.Object) level {
	if id, _ := at(d.Body, []string{"owner", "id"}); id == store.URN("user", session.UserID) {
		return levelFull
	}
	out := levelNone
	for _, g := range st.Documents[entitiesPath+"/"+d.ID()+"/accessControls"] {
		if member := store.Text(g.Body, "memberId"); member == store.URN("user", session.UserID) ||
			member == store.URN("org", session.OrgID) {
			out = max(out, entityLevels[store.Text(g.Body, "accessLevelId")])
		}
	}
	return out
}

// mayCreateEntity refuses callers who have no full access to a type.
func mayCreateEntity(r *request, typ *store.Object) error {
	if !r.cloud.assume.EntitiesTakeRights || r.session.Provider() {
		return nil
	}
	vendor := store.Text(typ.Body, "vendor")
	nss := store.Text(typ.Body, "nss")
	return r.permittedBy(&need{
		rights:    []string{typeRight(vendor, nss, typeFull), typeRight(vendor, nss, typeAdminFull)},
		operation: "DEFINED_ENTITY_CREATE",
	})
}

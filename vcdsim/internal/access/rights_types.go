// SPDX-License-Identifier: Apache-2.0

package access

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Paths of defined interfaces, entity types and entities.
const (
	InterfacesPath = "1.0.0/interfaces"
	TypesPath      = "1.0.0/entityTypes"
	EntitiesPath   = "1.0.0/entities"
)

// Rights of an entity type, as VCD's API names them.
const (
	TypeView      = "View"
	TypeModify    = "Modify"
	TypeFull      = "Full Access"
	TypeAdminView = "Administrator View"
	TypeAdminFull = "Administrator Full access"
)

// TypeRight returns the name of a right of an entity type.
func TypeRight(vendor, nss, right string) string { return vendor + ":" + nss + ": " + right }

// TypeRights returns the rights of an entity type.
func TypeRights(body map[string]any) []Right {
	var out []Right
	for _, name := range []string{TypeView, TypeModify, TypeFull, TypeAdminView, TypeAdminFull} {
		kind := "MODIFY"
		if name == TypeView || name == TypeAdminView {
			kind = "VIEW"
		}
		out = append(out, Right{
			Name:     TypeRight(store.Text(body, "vendor"), store.Text(body, "nss"), name),
			Category: "General",
			kind:     kind,
		})
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Ref is a reference to a VCD object. ID is its URN (urn:vcloud:<kind>:<uuid>); Name may change.
type Ref struct {
	ID   string
	Name string
}

func compareRefs(a, b Ref) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// only returns the single hit whose name or URN matches exactly, because filters of VCD ignore case. It fails if there
// are none or several.
func only(kind, nameOrURN, in string, hits []Ref) (Ref, error) {
	var exact []Ref
	for _, hit := range hits {
		if hit.Name == nameOrURN || hit.ID == nameOrURN {
			exact = append(exact, hit)
		}
	}
	switch len(exact) {
	case 0:
		return Ref{}, &LookupError{Kind: kind, Name: nameOrURN, In: in, Err: ErrNotFound}
	case 1:
		return exact[0], nil
	}
	return Ref{}, &LookupError{
		Kind:   kind,
		Name:   nameOrURN,
		In:     in,
		Err:    ErrAmbiguous,
		Reason: fmt.Sprintf("exists %d times", len(exact)),
	}
}

// refOf converts a reference. It returns the zero value for nil.
func refOf(r *wire.Ref) Ref {
	if r == nil {
		return Ref{}
	}
	return Ref{ID: r.ID, Name: r.Name}
}

// A wireObject contains the fields that most objects have in the JSON API.
type wireObject struct {
	wire.Ref

	Description string      `json:"description"`
	Status      Realization `json:"status"`
}

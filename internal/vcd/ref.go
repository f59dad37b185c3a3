// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Ref names a VCD object. ID is its URN (urn:vcloud:<kind>:<uuid>); Name may change.
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

// only returns the one hit whose name or URN is exactly the one looked for: filters of VCD ignore case.
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

// refOf returns a reference, empty if there is none.
func refOf(r *wire.Ref) Ref {
	if r == nil {
		return Ref{}
	}
	return Ref{ID: r.ID, Name: r.Name}
}

// A wireObject is what the JSON API writes of most objects.
type wireObject struct {
	wire.Ref

	Description string      `json:"description"`
	Status      Realization `json:"status"`
}

// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// checkFields handles fields that a newer API version than the client's introduced: it returns an error or removes them.
func (c *Collection) checkFields(r *api.Request, body map[string]any) error {
	for field, version := range c.Since {
		if r.Version >= version || isZero(body[field]) {
			continue
		}
		if r.Cloud.Assume.NewerFieldsRefused {
			return store.BadRequest("The field %s is not known in API version %s.", field, r.Version)
		}
		delete(body, field)
	}
	return nil
}

// isZero reports whether a JSON value is empty: clients send zero values for fields that they do not use.
func isZero(v any) bool {
	return slices.Contains([]any{nil, "", false, 0.0}, scalar(v))
}

// scalar makes a value comparable. An object or list is true.
func scalar(v any) any {
	switch v.(type) {
	case nil, string, bool, float64:
		return v
	}
	return true
}

// WithinSizes returns an error if a name or description is too long.
func WithinSizes(a cloud.Assumptions, body map[string]any) error {
	for _, x := range []struct {
		field string
		limit int
	}{{"name", a.MaxNetworkName}, {"description", a.MaxNetworkDescription}} {
		if n := len([]rune(store.Text(body, x.field))); x.limit > 0 && n > x.limit {
			return store.BadRequest("The length of the field %s is %d and must not exceed %d.", x.field, n, x.limit)
		}
	}
	return nil
}

// A Bound is the permitted range of a number in a document.
type Bound struct {
	Field    string
	From, To float64
}

// WithinBounds returns an error for numbers out of their bounds and for numbers that are not integers.
func WithinBounds(body map[string]any, bounds ...Bound) error {
	for _, b := range bounds {
		switch v := body[b.Field].(type) {
		case nil, int:
		case float64:
			if v < b.From || v > b.To || v != float64(int(v)) {
				return store.BadRequest("The value %v of the field %s must be between %v and %v.", v, b.Field, b.From, b.To)
			}
		default:
			return store.BadRequest("The value of the field %s is not a number.", b.Field)
		}
	}
	return nil
}

// AtMost returns an error if a list is too long.
func AtMost(body map[string]any, field string, limit int) error {
	if list, _ := body[field].([]any); len(list) > limit {
		return store.BadRequest("The size of the field %s is %d and must not exceed %d.", field, len(list), limit)
	}
	return nil
}

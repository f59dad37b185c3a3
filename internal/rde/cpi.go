// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

const (
	// component is the name of the cloud controller manager in the entity.
	component = "cloud-controller-manager"
	// kept is how many errors and how many events are kept.
	kept = 10
)

// Types of resources, as VMware's CPI writes them.
const (
	VirtualService         = "virtual-service"
	Pool                   = "lb-pool"
	NATRule                = "dnat-rule"
	ApplicationPortProfile = "app-port-profile"
)

// ErrOtherType means that entities of this type have no section for load balancers.
var ErrOtherType = errors.New("the entity is neither a capvcdCluster nor a nativeCluster")

// A Resource is an object in VCD that belongs to the cluster.
type Resource struct {
	Type, ID, Name string
	VirtualIP      string // of virtual services; empty: unknown
}

// An Entry is an error or an event.
type Entry struct {
	Name         string // CreateLoadbalancerError, CreatedLoadbalancer …
	OccurredAt   time.Time
	ResourceID   string
	ResourceName string
	Detail       string
}

// A Change is what happened to the load balancers of a cluster since the entity was last written.
type Change struct {
	Version string // of the controller
	Put     []Resource
	Drop    []Resource // by type and ID
	AddIPs  []string
	DropIPs []string
	Errors  []Entry
	Events  []Entry
	Healed  []string // names of resources whose errors are resolved
}

// Merge returns the content of an entity, updated with a change. Unknown members, including those in the section
// itself, stay byte for byte, as does the whole content if nothing differs. Merge fails with [ErrOtherType] for types
// without a section for load balancers.
func Merge(entityType string, content json.RawMessage, change Change) (json.RawMessage, error) {
	switch {
	case len(content) > 0 && !json.Valid(content):
		return nil, errNoObject
	case strings.HasPrefix(entityType, "urn:vcloud:type:vmware:capvcdCluster:"):
		return mergeCPI(content, change)
	case strings.HasPrefix(entityType, "urn:vcloud:type:cse:nativeCluster:"):
		return editPath(content, []string{"status", "virtual_IPs"}, addresses(change))
	}
	return nil, ErrOtherType
}

func mergeCPI(content json.RawMessage, c Change) (json.RawMessage, error) {
	for _, m := range []struct {
		name   string
		change func(json.RawMessage) (json.RawMessage, error)
	}{
		{"name", text(component)},
		{"version", text(c.Version)},
		{"vcdResourceSet", resources(c)},
		{"errorSet", entries("Detailed Error", c.Errors, c.Healed)},
		{"eventSet", entries("Detailed Event", c.Events, nil)},
		{"virtualIPs", addresses(c)},
	} {
		var err error
		if content, err = editPath(content, []string{"status", "cpi", m.name}, m.change); err != nil {
			return nil, fmt.Errorf("status.cpi of the entity: %w", err)
		}
	}
	return content, nil
}

func text(value string) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		var have string
		if json.Unmarshal(old, &have) == nil && have == value {
			return old, nil
		}
		return json.Marshal(value)
	}
}

// appended returns a list with more values.
func appended[T any](list []json.RawMessage, values []T) ([]json.RawMessage, error) {
	for _, v := range values {
		element, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}
		list = append(list, element)
	}
	return list, nil
}

// A wireResource is the JSON form of a resource.
type wireResource struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Details map[string]any `json:"additionalDetails"`
}

func (r Resource) wire() wireResource {
	w := wireResource{Type: r.Type, ID: r.ID, Name: r.Name, Details: map[string]any{}}
	if r.VirtualIP != "" {
		w.Details["virtualIP"] = r.VirtualIP
	}
	return w
}

func resources(c Change) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		var put []wireResource
		for _, r := range c.Put {
			put = append(put, r.wire())
		}
		var out []json.RawMessage
		for _, element := range elements {
			var have wireResource
			if json.Unmarshal(element, &have) != nil {
				out = append(out, element)
				continue
			}
			i := slices.IndexFunc(put, func(w wireResource) bool { return w.Type == have.Type && w.ID == have.ID })
			if i >= 0 {
				changed, err := replaced(element, have, put[i])
				if err != nil {
					return nil, err
				}
				out = append(out, changed)
				put = slices.Delete(put, i, i+1)
			} else if !slices.ContainsFunc(c.Drop,
				func(r Resource) bool { return r.Type == have.Type && r.ID == have.ID }) {
				out = append(out, element)
			}
		}
		return appended(out, put)
	})
}

// replaced returns the new form of an element, or the element itself if it has the desired values.
func replaced(element json.RawMessage, have, want wireResource) (json.RawMessage, error) {
	if have.Details == nil {
		have.Details = map[string]any{}
	}
	if reflect.DeepEqual(have, want) {
		return element, nil
	}
	return json.Marshal(want)
}

// A wireEntry is the JSON form of an entry.
type wireEntry struct {
	Name         string            `json:"name"`
	OccurredAt   time.Time         `json:"occurredAt"`
	ResourceID   string            `json:"vcdResourceId"`
	ResourceName string            `json:"vcdResourceName"`
	Details      map[string]string `json:"additionalDetails"`
}

func entries(detail string, more []Entry, healed []string) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		out := slices.DeleteFunc(slices.Clone(elements), func(element json.RawMessage) bool {
			var have struct {
				Name string `json:"vcdResourceName"`
			}
			return json.Unmarshal(element, &have) == nil && slices.Contains(healed, have.Name)
		})
		var add []wireEntry
		for _, e := range more {
			details := map[string]string{detail: e.Detail}
			add = append(add, wireEntry{e.Name, e.OccurredAt.UTC(), e.ResourceID, e.ResourceName, details})
		}
		out, err := appended(out, add)
		return out[max(0, len(out)-kept):], err
	})
}

func addresses(c Change) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		var out []json.RawMessage
		var add []string
		seen := map[string]bool{}
		for _, element := range elements {
			var have string
			if json.Unmarshal(element, &have) == nil {
				if seen[have] || slices.Contains(c.DropIPs, have) && !slices.Contains(c.AddIPs, have) {
					continue
				}
				seen[have] = true
			}
			out = append(out, element)
		}
		for _, ip := range c.AddIPs {
			if !seen[ip] {
				add = append(add, ip)
			}
			seen[ip] = true
		}
		return appended(out, add)
	})
}

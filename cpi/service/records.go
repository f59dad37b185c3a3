// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxOlder is how many values of an annotation are read besides one for each location of the configuration. Older builds
// wrote fewer; others may have written any number.
const maxOlder = 16

// A Record is what the core remembers of a Service. It is kept where only the core may write.
type Record struct {
	// Addresses are those that the load balancer is meant to have. They are recorded before their first use.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Locations are the ids of the locations where something of the load balancer may be. They are recorded before
	// anything is made there.
	Locations []string `json:"locations,omitempty"`
}

// IsEmpty reports whether nothing is remembered.
func (r Record) IsEmpty() bool { return len(r.Addresses) == 0 && len(r.Locations) == 0 }

// Records are the records of all Services.
type Records interface {
	// Of returns the record of the Service with that UID; the zero Record if there is none.
	Of(service types.UID) Record
}

// Stored is what is remembered of a Service.
type Stored struct {
	Record

	// Older is what annotations of the Service say. Older builds kept their records there; anyone who may edit the
	// Service can have written it.
	Older Older
}

// Older is what annotations of a Service say of addresses and of the ids of locations.
type Older struct {
	Addresses []string
	Locations []string
}

// IsEmpty reports whether the annotations say nothing.
func (o Older) IsEmpty() bool { return len(o.Addresses) == 0 && len(o.Locations) == 0 }

// Stored returns what is remembered of a Service.
func (d Defaults) Stored(s *corev1.Service) Stored {
	var out Stored
	if d.Records != nil {
		out.Record = d.Records.Of(s.UID)
	}
	if d.Dialect != nil {
		names := d.Dialect.Names()
		out.Older.Addresses = d.older(s, names.OlderAddresses)
		out.Older.Locations = d.older(s, names.OlderLocations)
	}
	return out
}

// older returns the first values of an annotation, without the digests that older builds appended.
func (d Defaults) older(s *corev1.Service, annotation string) []string {
	var values []string
	for x := range strings.SplitSeq(s.Annotations[annotation], ",") {
		value, _, _ := strings.Cut(strings.TrimSpace(x), "=")
		if value == "" || slices.Contains(values, value) {
			continue
		}
		if len(values) == len(d.Locations)+maxOlder {
			break
		}
		values = append(values, value)
	}
	return values
}

// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxOlder is the number of values of an annotation that are read, in addition to one per location of the
// configuration. Older builds wrote fewer values; other writers may have added any number.
const maxOlder = 16

// A Record is the stored state of a Service. It is stored where only the core may write.
type Record struct {
	// Addresses are the intended addresses of the load balancer. They are recorded before their first use.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Locations are the IDs of the locations where the load balancer may have objects. They are recorded before any
	// object is created there.
	Locations []string `json:"locations,omitempty"`
}

// IsEmpty reports whether the record has no data.
func (r Record) IsEmpty() bool { return len(r.Addresses) == 0 && len(r.Locations) == 0 }

// Records returns the records of Services.
type Records interface {
	// Of returns the record of the Service with a UID, or the zero Record if it has none.
	Of(service types.UID) Record
}

// Stored is the data that is stored about a Service.
type Stored struct {
	Record

	// Older are the values in annotations of the Service. Older builds stored their records there, but any user who may
	// edit the Service can have written them.
	Older Older
}

// Older are addresses and IDs of locations in annotations of a Service.
type Older struct {
	Addresses []string
	Locations []string
}

// IsEmpty reports whether the annotations have no values.
func (o Older) IsEmpty() bool { return len(o.Addresses) == 0 && len(o.Locations) == 0 }

// Stored returns the stored data about a Service.
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

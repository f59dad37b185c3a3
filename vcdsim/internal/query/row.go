// SPDX-License-Identifier: Apache-2.0

package query

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A row is one object in the result of a query.
type row interface {
	// get returns one attribute, for filters and sorting. A reference can be an address or a bare ID.
	get(c column) (value string, found bool)
	// labels returns the metadata of the object, for filters.
	labels() map[string]store.Metadata
	// record returns the complete row.
	record() *record
}

// A column is an attribute that a query looks up in many rows.
type column struct {
	name string
	ofVM *vmAttribute // nil if VMs do not have the attribute
}

func columnOf(name string) column { return column{name: name, ofVM: vmAttributeByName(name)} }

// A record is a complete row: attributes in the order of the output, metadata, and links.
type record struct {
	attrs    []xmltree.Attr
	metadata map[string]store.Metadata
	links    []*xmltree.Node
}

// get returns the address of an object for the column id.
func (rec *record) get(c column) (string, bool) {
	if c.name == "id" {
		return rec.attr("href")
	}
	return rec.attr(c.name)
}

func (rec *record) attr(name string) (string, bool) {
	for _, a := range rec.attrs {
		if a.Name == name {
			return a.Value, true
		}
	}
	return "", false
}

func (rec *record) labels() map[string]store.Metadata { return rec.metadata }

func (rec *record) record() *record { return rec }

// complete adapts a function that returns complete rows to the field rows of a queryType.
func complete(records func(r *api.Request) []*record) func(r *api.Request) []row {
	return func(r *api.Request) []row {
		var out []row
		for _, rec := range records(r) {
			out = append(out, rec)
		}
		return out
	}
}

// node returns the row with all attributes, or with href and those in fields. If fields contains metadata, the row
// includes the metadata.
func (rec *record) node(element string, fields []string, links bool) *xmltree.Node {
	n := xmltree.New(element)
	withMetadata := false
	for _, f := range fields {
		withMetadata = withMetadata || strings.HasPrefix(f, "metadata")
	}
	n.Attrs = slices.DeleteFunc(rec.attrs, func(a xmltree.Attr) bool {
		omitted := len(fields) > 0 && a.Name != "href" && !slices.Contains(fields, a.Name)
		return a.Name == "" || omitted
	})
	if links {
		n.Add(rec.links)
	}
	if withMetadata && len(rec.metadata) > 0 {
		n.Add(compute.MetadataNode(rec.metadata, "Metadata"))
	}
	return n
}

// filterTest returns one comparison of a filter as a function. The term metadata:key==STRING:value compares metadata.
func filterTest(t fiql.Term) func(of row) bool {
	if domain, key, ok := strings.Cut(t.Attr, ":"); ok && strings.HasPrefix(domain, "metadata") {
		if domain == "metadata@SYSTEM" {
			key = "SYSTEM/" + key
		}
		return func(of row) bool {
			have, found := of.labels()[key]
			return found && matchesMetadata(t, have)
		}
	}
	attribute := columnOf(t.Attr)
	holds := t.Test()
	equality := t.Op == "==" || t.Op == "!="
	return func(of row) bool {
		have, found := of.get(attribute)
		if !found && !equality {
			return false // an attribute without a value, such as a date, matches no comparison
		}
		return holds(have)
	}
}

// metadataTypes maps the types of metadata in filters to those in the store.
var metadataTypes = map[string]string{
	"STRING":   "MetadataStringValue",
	"NUMBER":   "MetadataNumberValue",
	"BOOLEAN":  "MetadataBooleanValue",
	"DATETIME": "MetadataDateTimeValue",
}

// matchesMetadata evaluates one comparison of metadata. A value does not match if its type differs from that of the
// filter.
func matchesMetadata(t fiql.Term, have store.Metadata) bool {
	kind, value, typed := strings.Cut(t.Value, ":")
	if of, known := metadataTypes[kind]; typed && known {
		return of == have.Type && fiql.Compare(fiql.Term{Op: t.Op, Value: value}, have.Value)
	}
	return fiql.Compare(fiql.Term{Op: t.Op, Value: t.Value}, have.Value)
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// metadataValue is the type of metadata that hold text.
const metadataValue = "MetadataStringValue"

// SetMetadata starts writing metadata of a VM, all by one task. What values does not name stays.
func (v *VMs) SetMetadata(ctx context.Context, id string, values map[string]string) (Task, error) {
	doc := wire.MetadataDocument{Xmlns: wire.NamespaceVCloud, XmlnsXSI: wire.NamespaceXSI}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		doc.Entries = append(doc.Entries, wire.MetadataEntry{Key: name, Value: wire.TypedValue{Type: metadataValue, Value: values[name]}})
	}
	v.documents.take(id)
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/metadata", wire.MIMEMetadata, doc)
}

// RemoveMetadata starts removing one key of the metadata of a VM.
func (v *VMs) RemoveMetadata(ctx context.Context, id, name string) (Task, error) {
	v.documents.take(id)
	return startXML(ctx, v.client, http.MethodDelete, urn.Path(urn.VM, id)+"/metadata/"+url.PathEscape(name), "", nil)
}

// Metadata reads the general metadata of a VM that hold text.
func (v *VMs) Metadata(ctx context.Context, id string) (map[string]string, error) {
	var doc struct {
		Entries []struct {
			Domain string `xml:"Domain"`
			Key    string `xml:"Key"`
			Value  string `xml:"TypedValue>Value"`
		} `xml:"MetadataEntry"`
	}
	if err := v.client.GetXML(ctx, urn.Path(urn.VM, id)+"/metadata", &doc); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, entry := range doc.Entries {
		if entry.Domain != "SYSTEM" {
			values[entry.Key] = entry.Value
		}
	}
	return values, nil
}

// MetadataValue reads a value of a vApp's metadata; empty if there is none.
func (v *VApps) MetadataValue(ctx context.Context, id, key string) (string, error) {
	var doc types.MetadataValue
	err := v.client.GetXML(ctx, urn.Path(urn.VApp, id)+"/metadata/"+url.PathEscape(key), &doc)
	if err = readable(err); err != nil || doc.TypedValue == nil {
		return "", failure.Wrap(err, "reading metadata of vApp", id)
	}
	return doc.TypedValue.Value, nil
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// MetadataType is the type of a metadata value, as named in VCD's API.
type MetadataType string

// Types of metadata values.
const (
	MetadataString   MetadataType = "MetadataStringValue"
	MetadataNumber   MetadataType = "MetadataNumberValue"
	MetadataBoolean  MetadataType = "MetadataBooleanValue"
	MetadataDateTime MetadataType = "MetadataDateTimeValue"
)

// MetadataAccess is the access of tenants to a metadata entry. In VCD, tenants can read and write entries in the domain
// GENERAL. Each entry in the domain SYSTEM has a visibility.
type MetadataAccess string

// Access of tenants to metadata.
const (
	MetadataReadWrite MetadataAccess = "READWRITE"
	MetadataReadOnly  MetadataAccess = "READONLY"
	MetadataPrivate   MetadataAccess = "PRIVATE"
)

// domain returns the domain of entries with this access.
func (a MetadataAccess) domain() string {
	if a == MetadataReadWrite {
		return "GENERAL"
	}
	return systemDomain
}

const systemDomain = "SYSTEM"

// MetadataEntry is a metadata entry of a VM or vApp. Entries in different domains may have the same key.
type MetadataEntry struct {
	Key    string
	Type   MetadataType
	Access MetadataAccess
	Value  string
}

// SetMetadata starts writing metadata entries of a VM, in one task for all of them. Other entries are kept.
func (v *VMs) SetMetadata(ctx context.Context, id string, entries []MetadataEntry) (Task, error) {
	v.documents.take(id)
	return setMetadata(ctx, v.client, urn.Path(urn.VM, id), entries)
}

// RemoveMetadata starts removing a metadata entry of a VM. The access determines the domain of the entry.
func (v *VMs) RemoveMetadata(ctx context.Context, id, key string, access MetadataAccess) (Task, error) {
	v.documents.take(id)
	return removeMetadata(ctx, v.client, urn.Path(urn.VM, id), key, access)
}

// Metadata reads the metadata of a VM that is visible to the user.
func (v *VMs) Metadata(ctx context.Context, id string) ([]MetadataEntry, error) {
	return readMetadata(ctx, v.client, urn.Path(urn.VM, id))
}

// SetVAppMetadata starts writing metadata entries of a vApp, in one task for all of them. Other entries are kept.
func (v *VApps) SetVAppMetadata(ctx context.Context, id string, entries []MetadataEntry) (Task, error) {
	return setMetadata(ctx, v.client, urn.Path(urn.VApp, id), entries)
}

// RemoveVAppMetadata starts removing a metadata entry of a vApp. The access determines the domain of the entry.
func (v *VApps) RemoveVAppMetadata(ctx context.Context, id, key string, access MetadataAccess) (Task, error) {
	return removeMetadata(ctx, v.client, urn.Path(urn.VApp, id), key, access)
}

// VAppMetadata reads the metadata of a vApp that is visible to the user.
func (v *VApps) VAppMetadata(ctx context.Context, id string) ([]MetadataEntry, error) {
	return readMetadata(ctx, v.client, urn.Path(urn.VApp, id))
}

// MetadataValue reads a value of a vApp's metadata. It returns the empty string if there is no such entry, or if it is
// not visible to the user.
func (v *VApps) MetadataValue(ctx context.Context, id, key string) (string, error) {
	var doc types.MetadataValue
	err := v.client.GetXML(ctx, urn.Path(urn.VApp, id)+"/metadata/"+url.PathEscape(key), &doc)
	if err = readable(err); err != nil || doc.TypedValue == nil {
		return "", failure.Wrap(err, "reading metadata of vApp", id)
	}
	return doc.TypedValue.Value, nil
}

// setMetadata starts writing metadata entries of the object with a path.
func setMetadata(ctx context.Context, c *api.Client, path string, entries []MetadataEntry) (Task, error) {
	doc := wire.MetadataDocument{Xmlns: wire.NamespaceVCloud, XmlnsXSI: wire.NamespaceXSI}
	for _, entry := range entries {
		doc.Entries = append(doc.Entries, wire.MetadataEntry{
			Domain: wire.MetadataDomain{
				Visibility: string(entry.Access),
				Name:       entry.Access.domain(),
			},
			Key: entry.Key,
			Value: wire.TypedValue{
				Type:  string(entry.Type),
				Value: entry.Value,
			},
		})
	}
	return startXML(ctx, c, http.MethodPost, path+"/metadata", wire.MIMEMetadata, doc)
}

// removeMetadata starts removing a metadata entry of the object with a path.
func removeMetadata(ctx context.Context, c *api.Client, path, key string, access MetadataAccess) (Task, error) {
	path += "/metadata/"
	if access.domain() == systemDomain {
		path += systemDomain + "/"
	}
	return startXML(ctx, c, http.MethodDelete, path+url.PathEscape(key), "", nil)
}

// readMetadata reads the metadata of the object with a path.
func readMetadata(ctx context.Context, c *api.Client, path string) ([]MetadataEntry, error) {
	var doc struct {
		Entries []struct {
			Domain struct {
				Visibility string `xml:"visibility,attr"`
				Name       string `xml:",chardata"`
			} `xml:"Domain"`
			Key   string `xml:"Key"`
			Value struct {
				Type  string `xml:"type,attr"`
				Value string `xml:"Value"`
			} `xml:"TypedValue"`
		} `xml:"MetadataEntry"`
	}
	if err := c.GetXML(ctx, path+"/metadata", &doc); err != nil {
		return nil, err
	}
	var entries []MetadataEntry
	for _, entry := range doc.Entries {
		access := MetadataReadWrite
		if entry.Domain.Name == systemDomain {
			access = MetadataAccess(entry.Domain.Visibility)
		}
		entries = append(entries, MetadataEntry{
			Key:    entry.Key,
			Type:   MetadataType(entry.Value.Type),
			Access: access,
			Value:  entry.Value.Value,
		})
	}
	return entries, nil
}

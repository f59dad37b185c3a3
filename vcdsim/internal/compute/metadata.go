// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// metadataPaths are the paths of the entities whose metadata the caller can change. Under metadataViews, metadata is
// read-only.
var (
	metadataPaths = []string{
		"/api/vApp/vapp-{vapp}", "/api/vApp/vm-{vm}", "/api/disk/{disk}",
		"/api/vAppTemplate/vappTemplate-{vapptemplate}",
		"/api/catalogItem/{catalogitem}", "/api/admin/org/{org}", "/api/admin/vdc/{vdc}",
		"/api/admin/catalog/{catalog}",
		"/api/admin/network/{network}", "/api/admin/vdcStorageProfile/{vdcstorageProfile}", "/api/media/{media}",
		"/api/admin/providervdc/{providervdc}",
	}
	metadataViews = []string{
		"/api/org/{org}", "/api/vdc/{vdc}", "/api/catalog/{catalog}", "/api/network/{network}",
		"/api/vdcStorageProfile/{vdcstorageProfile}", "/api/vAppTemplate/vm-{templatevm}",
		"/api/admin/extension/providervdc/{providervdc}",
	}
)

func metadataRoutes(add api.AddRoute) {
	for _, base := range metadataViews {
		metadataReads(add, base, noLinks)
	}
	for _, base := range metadataPaths {
		metadataReads(add, base, changeLinks)
		add("POST", base+"/metadata", mergeMetadata, cloud.LatencyLegacy)
		for _, key := range []string{"/metadata/{key}", "/metadata/{domain}/{key}"} {
			add("PUT", base+key, putMetadataValue, cloud.LatencyLegacy)
			add("DELETE", base+key, deleteMetadataValue, cloud.LatencyLegacy)
		}
	}
}

// metadataReads adds the routes that read metadata. links returns the links with some relations in a response.
func metadataReads(add api.AddRoute, base string, links linker) {
	value := func(r *api.Request, e metadataTarget) (*api.Response, error) {
		return getMetadataValue(r, e, links(r, "application/vnd.vmware.vcloud.metadata.value+xml", "edit", "remove"))
	}
	add("GET", base+"/metadata", api.With(metadataEntity, func(r *api.Request, e metadataTarget) (*api.Response, error) {
		return getMetadata(r, e, links(r, wire.Mime("metadata"), "add"))
	}), cloud.LatencyLegacy)
	add("GET", base+"/metadata/{key}", api.With(metadataEntity, value), cloud.LatencyLegacy)
	add("GET", base+"/metadata/{domain}/{key}", api.With(metadataEntity, value), cloud.LatencyLegacy)
}

// A linker returns links to the address of a request, with a media type and relations.
type linker func(r *api.Request, mediaType string, relations ...string) []*xmltree.Node

func noLinks(*api.Request, string, ...string) []*xmltree.Node { return nil }

// changeLinks returns links for changes, or nil if the caller may not change the entity in the path.
func changeLinks(r *api.Request, mediaType string, relations ...string) []*xmltree.Node {
	write := *r
	write.Request = r.WithContext(r.Context())
	write.Method = http.MethodPost
	if _, err := metadataEntity(&write); err != nil {
		return nil
	}
	var out []*xmltree.Node
	for _, relation := range relations {
		if relation == "remove" {
			mediaType = ""
		}
		out = append(out, r.Site.Link(relation, r.URL.EscapedPath(), mediaType))
	}
	return out
}

// A metadataTarget is an entity with its metadata.
type metadataTarget struct {
	entity   store.Entity
	metadata map[string]store.Metadata
}

// metadataEntity returns the entity in the path.
func metadataEntity(r *api.Request) (metadataTarget, error) {
	for kind, id := range r.Vars {
		if kind == "key" || kind == "domain" {
			continue
		}
		e, err := entityByKind(r, kind, store.Bare(id))
		if err != nil {
			return metadataTarget{}, err
		}
		return metadataTarget{e, machines.MetadataOf(r.Cloud, e)}, nil
	}
	return metadataTarget{}, store.Forbidden("METADATA_VIEW", r.URL.Path)
}

// entityByKind returns the entity with the given ID; kind is the name of its path variable.
func entityByKind(r *api.Request, kind, id string) (store.Entity, error) {
	var e store.Entity
	var err error
	switch kind {
	case "vapp":
		e, err = entityOrError(VAppByID(r, id))
	case "vm":
		e, err = entityOrError(vmByID(r, id))
	case "disk":
		e, err = entityOrError(diskByID(r, id))
	case "providervdc":
		if r.Session.Provider() && id == vdcs.ProviderID(r.Cloud) {
			e = store.Entity{Kind: kind, ID: id, Name: vdcs.ProviderVDC}
		}
	default:
		e = visibleModelEntity(r, kind, id)
	}
	if err != nil || e.ID == "" {
		return store.Entity{}, store.Forbidden("METADATA_VIEW", id)
	}
	return e, nil
}

// visibleModelEntity returns an entity of the model, or the zero value if the caller does not see it. Only a GET request can
// access an entity in a catalog of another organization.
func visibleModelEntity(r *api.Request, kind, id string) store.Entity {
	sh, name := catalogEntity(r.Cloud.Store, kind, id)
	org := sh.Org
	if org == nil {
		org, name = modelEntity(r.Cloud.Store, kind, id)
	}
	shared := sh.Org != nil && r.Method == http.MethodGet && access.Reads(r, sh)
	if org == nil || !shared && !r.Session.Sees(org.ID) {
		return store.Entity{}
	}
	return store.Entity{Kind: kind, ID: id, Name: name}
}

// entityOrError converts the results of a lookup into an entity.
func entityOrError(found interface{ Entity() store.Entity }, err error) (store.Entity, error) {
	if err != nil {
		return store.Entity{}, err
	}
	return found.Entity(), nil
}

// modelEntity returns the organization and the name of an entity of the model. The organization is nil if the entity
// does not exist.
func modelEntity(s *store.Store, kind, id string) (*store.Org, string) {
	switch kind {
	case "org":
		if org := s.Org(id); org != nil {
			return org, org.Name
		}
	case "vdc":
		if org, v := s.VDC(id); v != nil {
			return org, v.Name
		}
	case "network":
		if org, _, n := s.Network(id); n != nil {
			return org, n.Name
		}
	case "vdcstorageProfile":
		if org, _, p := s.Profile(id); p != nil {
			return org, p.Name
		}
	}
	return nil, ""
}

// catalogEntity returns the catalog of a catalog, template, VM of a template or media, and the name of the entity. The
// catalog is zero if the entity does not exist or is of another kind.
func catalogEntity(s *store.Store, kind, id string) (store.OrgCatalog, string) {
	switch kind {
	case "catalog":
		if sh, ok := s.Catalog(id); ok {
			return sh, sh.Catalog.Name
		}
	case "templatevm":
		if sh, _, vm := s.TemplateVM(id); vm != nil {
			return sh, vm.Name
		}
	case "vapptemplate", "catalogitem", "media":
		if sh, m := s.Media(id); m != nil {
			return sh, m.Name
		}
		if sh, t := s.Template(id); t != nil {
			return sh, t.Name
		}
	}
	return store.OrgCatalog{}, ""
}

// systemDomain is the domain of metadata that only providers can write. The store prefixes its keys with the name of
// the domain.
const systemDomain = "SYSTEM"

// metadataKey returns the key of the store for the domain and the key in the path.
func metadataKey(r *api.Request) string {
	return domainKey(r.Vars["domain"], r.Vars["key"])
}

func domainKey(domain, key string) string {
	if domain == systemDomain {
		return systemDomain + "/" + key
	}
	return key
}

// domainNode returns the Domain element of a metadata entry. It is nil for an entry of the general domain without
// restricted visibility.
func domainNode(key string, m store.Metadata) *xmltree.Node {
	domain := "GENERAL"
	if strings.HasPrefix(key, systemDomain+"/") {
		domain = systemDomain
	}
	if domain != systemDomain && m.Visibility == "" {
		return nil
	}
	return xmltree.New("Domain", xmltree.A("visibility", cmp.Or(m.Visibility, "READWRITE")), domain)
}

const xsiType = "xsi:type"

func typedValue(m store.Metadata) *xmltree.Node {
	return xmltree.New("TypedValue", xmltree.A("xmlns:xsi", ovf.XSI), xmltree.A(xsiType, m.Type),
		xmltree.T("Value", m.Value))
}

// MetadataNode returns metadata as an element with the given name and attributes.
func MetadataNode(m map[string]store.Metadata, element string, attrs ...xmltree.Attr) *xmltree.Node {
	n := xmltree.New(element, attrs)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		n.Add(xmltree.New("MetadataEntry", xmltree.A("type", "application/vnd.vmware.vcloud.metadata.value+xml"),
			domainNode(k, m[k]), xmltree.T("Key", strings.TrimPrefix(k, systemDomain+"/")), typedValue(m[k])))
	}
	return n
}

func getMetadata(r *api.Request, e metadataTarget, links []*xmltree.Node) (*api.Response, error) {
	attrs := append(wire.Namespaces(), xmltree.A("href", r.Site.Href(e.entity.Kind, e.entity.ID)+"/metadata"),
		xmltree.A("type", wire.Mime("metadata")))
	n := MetadataNode(e.metadata, "Metadata", attrs...)
	n.Children = append(links, n.Children...)
	return api.XML(n), nil
}

func getMetadataValue(r *api.Request, e metadataTarget, links []*xmltree.Node) (*api.Response, error) {
	m, ok := e.metadata[metadataKey(r)]
	if !ok {
		return nil, store.Refuse(http.StatusForbidden, store.CodeForbidden, "The metadata entry %q does not exist.", r.Vars["key"])
	}
	return api.XML(xmltree.New("MetadataValue", wire.Namespaces(),
		xmltree.A("href", r.Site.Href(e.entity.Kind, e.entity.ID)+"/metadata/"+r.Vars["key"]),
		xmltree.A("type", "application/vnd.vmware.vcloud.metadata.value+xml"), links, domainNode(metadataKey(r), m),
		typedValue(m))), nil
}

func readTyped(n *xmltree.Node) (store.Metadata, bool) {
	v := n.At("TypedValue")
	if v == nil {
		return store.Metadata{}, false
	}
	t := v.Attr("type")
	if _, local, ok := strings.Cut(t, ":"); ok {
		t = local
	}
	if t == "" {
		t = "MetadataStringValue"
	}
	m := store.Metadata{Type: t, Value: v.Str("Value")}
	if d := n.At("Domain"); d != nil && d.Attr("visibility") != "READWRITE" {
		m.Visibility = d.Attr("visibility")
	}
	return m, validMetadata(m)
}

// validMetadata reports whether the value matches its type.
func validMetadata(m store.Metadata) bool {
	var err error
	switch m.Type {
	case "MetadataStringValue":
	case "MetadataNumberValue":
		_, err = strconv.ParseFloat(m.Value, 64)
	case "MetadataBooleanValue":
		_, err = strconv.ParseBool(m.Value)
	case "MetadataDateTimeValue":
		_, err = time.Parse(time.RFC3339Nano, m.Value)
	default:
		return false
	}
	return err == nil
}

func mergeMetadata(r *api.Request) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	set := map[string]store.Metadata{}
	for _, entry := range tree.All("MetadataEntry") {
		m, ok := readTyped(entry)
		if !ok || entry.Str("Key") == "" {
			return nil, store.BadRequest("A metadata entry needs a key and a value of its type.")
		}
		set[domainKey(entry.Str("Domain"), entry.Str("Key"))] = m
	}
	return writeMetadata(r, store.Work{Op: cloud.OpMetadata, Metadata: set})
}

func putMetadataValue(r *api.Request) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	m, ok := readTyped(tree)
	if !ok {
		return nil, store.BadRequest("The metadata value is not of its type.")
	}
	return writeMetadata(r, store.Work{Op: cloud.OpMetadata, Metadata: map[string]store.Metadata{metadataKey(r): m}})
}

func deleteMetadataValue(r *api.Request) (*api.Response, error) {
	return writeMetadata(r, store.Work{Op: cloud.OpMetadata, Forget: []string{metadataKey(r)}})
}

func writeMetadata(r *api.Request, w store.Work) (*api.Response, error) {
	e, err := metadataEntity(r)
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(e.entity.ID); err != nil {
		return nil, err
	}
	for key, m := range w.Metadata {
		if strings.HasPrefix(key, systemDomain+"/") && (m.Visibility == "" || !r.Session.Provider()) {
			return nil, store.BadRequest(
				"Metadata of the domain %s must be hidden or read-only, and only providers write it.", systemDomain)
		}
	}
	return r.Start(w, e.entity, []string{e.entity.ID}), nil
}

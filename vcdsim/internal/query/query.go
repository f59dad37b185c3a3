// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Routes adds the routes of the query service.
func Routes(add api.AddRoute) {
	add("GET", "/api/query", runQuery, cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/edgeGateways", api.With2(vdcs.OwnVDC, vdcQuery("edgeGateway")), cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/networks", api.With2(vdcs.OwnVDC, vdcQuery("orgVdcNetwork")), cloud.LatencyQuery)
}

// vdcQuery returns a handler that lists the objects of a type in a VDC. It runs a query with a filter for the VDC.
func vdcQuery(name string) func(*api.Request, *store.Org, *store.VDC) (*api.Response, error) {
	return func(r *api.Request, _ *store.Org, v *store.VDC) (*api.Response, error) {
		filter := "vdc==" + r.Site.Href("vdc", v.ID)
		if more := r.Query.Get("filter"); more != "" {
			filter += ";(" + more + ")"
		}
		r.Query["type"] = name
		r.Query["filter"] = filter
		return runQuery(r)
	}
}

// A record is a row of the query service: attributes in the order of the output, and metadata for filters.
type record struct {
	attrs    []xmltree.Attr
	metadata map[string]store.Metadata
	links    []*xmltree.Node
	row      row // creates attributes and links on demand; set for types with many records
}

// A row creates the content of a record on demand.
type row interface {
	// peek returns one attribute without creating the others. References are bare IDs.
	peek(name string) (value string, found bool)
	fill(rec *record)
}

// complete creates the attributes and links of a record that does not have them yet.
func (rec *record) complete() {
	if rec.row != nil {
		rec.row.fill(rec)
		rec.row = nil
	}
}

func (rec *record) get(name string) (string, bool) {
	if rec.row != nil {
		return rec.row.peek(name)
	}
	for _, a := range rec.attrs {
		if a.Name == name {
			return a.Value, true
		}
	}
	return "", false
}

// A queryType is a type of the query service. Its attributes are those that a filter can use; a row may omit an
// attribute that is empty.
type queryType struct {
	element    string
	admin      string // element for system administrators, if it differs
	attributes string
	rows       func(r *api.Request) []*record
}

// queryTypes maps the names of query types to the types. Under the names in adminTypes, providers get the same rows.
var queryTypes = map[string]queryType{
	"vm": {
		"VMRecord",
		"AdminVMRecord",
		"name containerName container ownerName owner vdc vdcName isVAppTemplate " +
			"isDeleted guestOs numberOfCpus memoryMB " +
			"status networkName network ipAddress isBusy isDeployed isPublished catalogName hardwareVersion " +
			"vmToolsStatus isInMaintenanceMode isAutoNature " +
			"storageProfileName gcStatus autoUndeployDate autoDeleteDate isAutoUndeployNotified isAutoDeleteNotified " +
			"isComputePolicyCompliant vmSizingPolicyId " +
			"vmPlacementPolicyId encrypted dateCreated totalStorageAllocatedMb isExpired vmNameInVc hostName moref org",
		vmRecords,
	},
	"vApp": {
		"VAppRecord",
		"AdminVAppRecord",
		"name vdc vdcName isPublic isEnabled isBusy creationDate status ownerName isDeployed isInMaintenanceMode " +
			"isAutoNature isExpired numberOfVMs numberOfCpus cpuAllocationMhz memoryAllocationMB storageKB " +
			"isVdcEnabled autoUndeployDate autoDeleteDate description org",
		vappRecords,
	},
	"orgVdc": {
		"OrgVdcRecord",
		"AdminVdcRecord",
		"name description isEnabled cpuAllocationMhz cpuLimitMhz cpuUsedMhz memoryAllocationMB memoryLimitMB " +
			"memoryUsedMB storageLimitMB storageUsedMB providerVdcName orgName org isSystemVdc isBusy status " +
			"numberOfStorageProfiles numberOfVMs " +
			"numberOfRunningVMs isFastProvisioned",
		vdcRecords,
	},
	"orgVdcNetwork": {
		"OrgVdcNetworkRecord",
		"",
		"name defaultGateway netmask dns1 dns2 dnsSuffix linkType connectedTo vdc isBusy isShared vdcName " +
			"isIpScopeInherited usedIpCount",
		networkRecords,
	},
	"orgVdcStorageProfile": {
		"OrgVdcStorageProfileRecord",
		"AdminOrgVdcStorageProfileRecord",
		"name isEnabled isDefaultStorageProfile storageUsedMB " +
			"storageLimitMB iopsAllocated iopsLimit numberOfConditions vdc vdcName isVdcBusy",
		profileRecords,
	},
	"catalog": {
		"CatalogRecord",
		"AdminCatalogRecord",
		"name description isPublished isShared creationDate orgName org ownerName numberOfVAppTemplates " +
			"numberOfMedia publishSubscriptionType version status isLocal",
		catalogRecords,
	},
	"catalogItem": {
		"CatalogItemRecord",
		"AdminCatalogItemRecord",
		"entity entityName entityType catalog catalogName ownerName isPublished vdc vdcName " +
			"isVdcEnabled creationDate isExpired status name",
		itemRecords,
	},
	"vAppTemplate": {
		"VAppTemplateRecord",
		"AdminVAppTemplateRecord",
		"ownerName catalogName catalog catalogItem isPublished name description vdc vdcName org " +
			"creationDate isBusy isGoldMaster isEnabled status isDeployed isExpired storageProfileName version " +
			"numberOfVMs isInCatalog",
		templateRecords,
	},
	"task": {
		"TaskRecord",
		"AdminTaskRecord",
		"org orgName name operationFull message startDate endDate status progress ownerName object objectType " +
			"objectName serviceNamespace",
		taskRecords,
	},
	"disk": {
		"DiskRecord",
		"AdminDiskRecord",
		"name vdc description sizeMb ownerName vdcName storageProfile storageProfileName status busType busTypeDesc " +
			"busSubType isAttached attachedVmCount isShareable sharingType uuid encrypted datastoreName",
		diskRecords,
	},
	"organization": {
		"OrgRecord",
		"",
		"name isReadOnly isEnabled displayName numberOfCatalogs numberOfVdcs numberOfVApps",
		orgRecords,
	},
	"providerVdc": {
		"VMWProviderVdcRecord",
		"",
		"name status isBusy isDeleted isEnabled numberOfVdcs numberOfDatastores numberOfStorageProfiles",
		providerRecords,
	},
	"providerVdcStorageProfile": {
		"ProviderVdcStorageProfileRecord",
		"",
		"name providerVdc isEnabled storageTotalMB storageUsedMB vc storageProfileMoref",
		providerProfileRecords,
	},
	"edgeGateway": {
		"EdgeGatewayRecord",
		"",
		"name vdc orgVdcName numberOfExtNetworks numberOfOrgNetworks isBusy gatewayStatus haStatus",
		gatewayRecords,
	},
	"networkPool": {"NetworkPoolRecord", "", "name isBusy networkPoolType", poolRecords},
	"resourcePool": {
		"ResourcePoolRecord",
		"",
		"name moref isDeleted vc vcName providerVdc providerName isEnabled isPrimary clusterMoref isKubernetesEnabled",
		resourcePoolRecords,
	},
	"vmGroups": {
		"VmGroupsRecord",
		"",
		"vmGroupId vmGroupName clusterMoref clusterName vcId namedVmGroupId",
		vmGroupRecords,
	},
	"nsxTManager": {"NsxTManagerRecord", "", "name url username vc", managerRecords},
	"vAppNetwork": {
		"VAppNetworkRecord",
		"AdminVAppNetworkRecord",
		"name vApp vAppName isBusy isLinked linkNetworkName gateway netmask",
		vappNetworkRecords,
	},
	"media": {
		"MediaRecord",
		"AdminMediaRecord",
		"ownerName catalogName catalog catalogItem isPublished name vdc vdcName org creationDate isBusy storageB " +
			"owner status storageProfileName isInCatalog isIso isVdcEnabled",
		mediaRecords,
	},
}

// adminTypes maps the alternative names of query types to the names in queryTypes. They are reserved for providers.
var adminTypes = map[string]string{
	"adminVM":                   "vm",
	"adminVApp":                 "vApp",
	"adminOrgVdc":               "orgVdc",
	"adminOrgVdcStorageProfile": "orgVdcStorageProfile",
	"adminCatalog":              "catalog",
	"adminCatalogItem":          "catalogItem",
	"adminVAppTemplate":         "vAppTemplate",
	"adminTask":                 "task",
	"adminDisk":                 "disk",
	"adminVAppNetwork":          "vAppNetwork",
	"adminMedia":                "media",
	"org":                       "organization",
}

func runQuery(r *api.Request) (*api.Response, error) {
	name := r.Query.Get("type")
	if name == "" {
		return queryList(r.Site, r.Session), nil
	}
	qt, element, err := queryTypeOf(r, name)
	if err != nil {
		return nil, err
	}
	if _, err := queryFormat(r.Query, name); err != nil {
		return nil, err
	}
	rows, err := matchingRecords(r, qt)
	if err != nil {
		return nil, err
	}
	return recordsPage(r, name, element, rows)
}

// queryTypeOf returns the type with the given name, and the element of its rows.
func queryTypeOf(r *api.Request, name string) (queryType, string, error) {
	qt, ok := queryTypes[name]
	element := qt.element
	if base, admin := adminTypes[name]; admin {
		if qt, ok = queryTypes[base]; !r.Session.Provider() {
			return queryType{}, "", store.Forbidden("QUERY_ADMIN", name)
		}
		if element = qt.admin; element == "" {
			element = qt.element
		}
	}
	if !ok {
		r.Cloud.Unknown(r.Operation)
		return queryType{}, "", store.BadRequest("The query type %q is not supported.", name)
	}
	return qt, element, nil
}

// matchingRecords returns the rows that match the filter.
func matchingRecords(r *api.Request, qt queryType) ([]*record, error) {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return nil, store.BadRequest("Invalid filter expression: %s", err)
	}
	if err := qt.checkAttributes(filter); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(qt.rows(r), func(rec *record) bool {
		return !filter.Match(func(t fiql.Term) bool { return rec.matches(hrefTerm(r, t)) })
	}), nil
}

// hrefTerm returns t, or a term that matches nothing. It returns the latter for an address on a host other than the
// public one, if the simulator assumes that VCD compares addresses as text.
func hrefTerm(r *api.Request, t fiql.Term) fiql.Term {
	if r.Cloud.Assume.HrefFilterIsText && strings.Contains(t.Value, "://") && !strings.HasPrefix(t.Value, r.Site.Base()+"/") {
		t.Value += "#"
	}
	return t
}

// checkAttributes refuses a filter on an attribute that the type does not have, as VCD does.
func (qt queryType) checkAttributes(filter *fiql.Expr) error {
	attributes := append(strings.Fields(qt.attributes), "id", "href")
	for _, t := range filter.Terms() {
		if !strings.HasPrefix(t.Attr, "metadata") && !slices.Contains(attributes, t.Attr) {
			return store.BadRequest("Invalid query filter: %q is not a searchable attribute of the query type.", t.Attr)
		}
	}
	return nil
}

// matches evaluates one comparison of a filter. The term metadata:key==STRING:value compares metadata.
func (rec *record) matches(t fiql.Term) bool {
	if domain, key, ok := strings.Cut(t.Attr, ":"); ok && strings.HasPrefix(domain, "metadata") {
		if domain == "metadata@SYSTEM" {
			key = "SYSTEM/" + key
		}
		have, found := rec.metadata[key]
		return found && matchesMetadata(t, have)
	}
	have, found := rec.get(t.Attr)
	if !found && t.Attr == "id" {
		have, found = rec.get("href")
	}
	if !found && t.Op != "==" && t.Op != "!=" {
		return false // an attribute without a value, such as a date, matches no comparison
	}
	return fiql.Compare(t, have)
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

// sortRecords sorts the rows from one index to another, as if all rows were sorted.
func sortRecords(query api.Values, rows []*record, from, to int) {
	key := query.Get("sortAsc")
	sign := 1
	if key == "" {
		key = query.Get("sortDesc")
		sign = -1
	}
	if key == "" {
		key = "id"
		sign = 1
	}
	if isSorted(rows, key, sign) {
		return // types with many rows create them in this order
	}
	keyed := make([]keyedRecord, len(rows))
	for i, rec := range rows {
		keyed[i] = keyOf(rec, key)
		keyed[i].place = i
	}
	sortRange(keyed, from, to, func(a, b *keyedRecord) int {
		return cmp.Or(sign*a.compare(b), cmp.Compare(a.place, b.place))
	})
	for i := range keyed {
		rows[i] = keyed[i].record
	}
}

// isSorted reports whether rows are already sorted.
func isSorted(rows []*record, key string, sign int) bool {
	var last keyedRecord
	for i, rec := range rows {
		next := keyOf(rec, key)
		if i > 0 && sign*last.compare(&next) > 0 {
			return false
		}
		last = next
	}
	return true
}

// A keyedRecord is a record with its sort key, which is computed only once.
type keyedRecord struct {
	record  *record
	text    string
	number  int
	numeric bool
	place   int // original index, which orders records with the same key
}

func keyOf(rec *record, key string) keyedRecord {
	text, found := rec.get(key)
	if !found && key == "id" {
		text, _ = rec.get("href")
	}
	number, numeric := parseInteger(text)
	return keyedRecord{record: rec, text: text, number: number, numeric: numeric}
}

// compare compares two numbers by value, and all other keys as text.
func (k *keyedRecord) compare(other *keyedRecord) int {
	if k.numeric && other.numeric {
		return cmp.Compare(k.number, other.number)
	}
	return strings.Compare(k.text, other.text)
}

// parseInteger parses an integer of digits only. It returns early for most other values.
func parseInteger(s string) (int, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[len(s)-1] < '0' || s[len(s)-1] > '9' || len(s) > 18 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// queryPage returns the requested page size and page number.
func queryPage(assume *cloud.Assumptions, query api.Values) (size, page int, err error) {
	size = query.Number("pageSize", api.DefaultPage)
	page = query.Number("page", 1)
	if size > api.MaxPage && !assume.QueryPageSizeIsCut {
		return 0, 0, store.BadRequest("The page size %d is more than %d.", size, api.MaxPage)
	}
	return min(size, api.MaxPage), page, nil
}

// recordsPage returns the requested page of the rows.
func recordsPage(r *api.Request, name, element string, rows []*record) (*api.Response, error) {
	size, page, err := queryPage(&r.Cloud.Assume, r.Query)
	if err != nil {
		return nil, err
	}
	if page > 1 && (page-1)*size >= len(rows) && !r.Cloud.Assume.EmptyPageBeyondEnd {
		return nil, store.BadRequest("The page %d does not exist.", page)
	}
	format, err := queryFormat(r.Query, name)
	if err != nil {
		return nil, err
	}
	from := min((page-1)*size, len(rows))
	to := min(from+size, len(rows))
	sortRecords(r.Query, rows, from, to)
	n := xmltree.New(containerElement(name, format), wire.Namespaces(), xmltree.A("total", len(rows)), xmltree.A("pageSize", size),
		xmltree.A("page", page),
		xmltree.A("name", name), xmltree.A("type", formatType(format)),
		xmltree.A("href", r.Site.Base()+pageURI(r.Query, page, format)))
	n.Add(queryAlternates(r.Site, r.Query, name, format, page))
	other := func(rel string, page int) {
		n.Add(r.Site.Link(rel, pageURI(r.Query, page, format), formatType(format)))
	}
	if page > 1 {
		other("firstPage", 1)
		other("previousPage", page-1)
	}
	if to < len(rows) {
		other("nextPage", page+1)
		other("lastPage", (len(rows)+size-1)/size)
	}
	for _, rec := range rows[from:to] {
		n.Add(rec.rowNode(r.Site, r.Query, name, element, format))
	}
	return &api.Response{Status: http.StatusOK, XML: n}, nil
}

// pageURI returns the address of a page of the current query.
func pageURI(query api.Values, page int, format string) string {
	size := min(query.Number("pageSize", api.DefaultPage), api.MaxPage)
	uri := fmt.Sprintf("/api/query?type=%s&page=%d&pageSize=%d&format=%s", query.Get("type"), page, size, format)
	for _, k := range []string{"filter", "filterEncoded", "sortAsc", "sortDesc", "fields", "links"} {
		if v := query.Get(k); v != "" {
			uri += "&" + k + "=" + url.QueryEscape(v)
		}
	}
	return uri
}

// node returns the row with all attributes, or with href and those in fields. If fields contains metadata, the row
// includes the metadata.
func (rec *record) node(element string, fields []string, links bool) *xmltree.Node {
	rec.complete()
	n := xmltree.New(element)
	withMetadata := false
	for _, f := range fields {
		withMetadata = withMetadata || strings.HasPrefix(f, "metadata")
	}
	for _, a := range rec.attrs {
		if len(fields) == 0 || a.Name == "href" || slices.Contains(fields, a.Name) {
			n.Add(a)
		}
	}
	if links {
		n.Add(rec.links)
	}
	if withMetadata && len(rec.metadata) > 0 {
		n.Add(compute.MetadataNode(rec.metadata, "Metadata"))
	}
	return n
}

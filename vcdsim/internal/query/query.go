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

// Routes are the routes of the query service.
func Routes(add api.AddRoute) {
	add("GET", "/api/query", runQuery, cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/edgeGateways", api.With2(vdcs.OwnVDC, queryOf("edgeGateway")), cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/networks", api.With2(vdcs.OwnVDC, queryOf("orgVdcNetwork")), cloud.LatencyQuery)
}

// queryOf answers with what a VDC has of a type, as a query with a filter does.
func queryOf(name string) func(*api.Request, *store.Org, *store.VDC) (*api.Response, error) {
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

// A record is a row of the query service: attributes in the order they are written, and metadata to filter by.
type record struct {
	attrs    []xmltree.Attr
	metadata map[string]store.Metadata
	links    []*xmltree.Node
	row      row // of numerous records: attributes and links are made on demand
}

// A row makes a record on demand.
type row interface {
	// peek returns an attribute without making the record; references as bare ids.
	peek(name string) (value string, found bool)
	fill(rec *record)
}

// complete makes the attributes and links of a record that has none yet.
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

// A queryType is one type of the query service. Attributes are what a filter may name; a row leaves some out when they
// are empty.
type queryType struct {
	element    string
	admin      string // element for system administrators, if another
	attributes string
	rows       func(r *api.Request) []*record
}

// queryTypes by name; the admin names show the same rows to those who may ask.
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

// adminTypes are other names for the same rows.
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

// queryTypeOf finds a type by its name, and the element of its rows.
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

// matchingRecords evaluates the filter over the rows.
func matchingRecords(r *api.Request, qt queryType) ([]*record, error) {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return nil, store.BadRequest("Invalid filter expression: %s", err)
	}
	if err := qt.known(filter); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(qt.rows(r), func(rec *record) bool {
		return !filter.Match(func(t fiql.Term) bool { return rec.holds(reference(r, t)) })
	}), nil
}

// reference returns a term with which an address of another host than the public one equals nothing.
func reference(r *api.Request, t fiql.Term) fiql.Term {
	if r.Cloud.Assume.HrefFilterIsText && strings.Contains(t.Value, "://") && !strings.HasPrefix(t.Value, r.Site.Base()+"/") {
		t.Value += "#"
	}
	return t
}

// known refuses a filter on an attribute the type does not have, as VCD does.
func (qt queryType) known(filter *fiql.Expr) error {
	attributes := append(strings.Fields(qt.attributes), "id", "href")
	for _, t := range filter.Terms() {
		if !strings.HasPrefix(t.Attr, "metadata") && !slices.Contains(attributes, t.Attr) {
			return store.BadRequest("Invalid query filter: %q is not a searchable attribute of the query type.", t.Attr)
		}
	}
	return nil
}

// holds evaluates one comparison; metadata:key==STRING:value compares metadata.
func (rec *record) holds(t fiql.Term) bool {
	if domain, key, ok := strings.Cut(t.Attr, ":"); ok && strings.HasPrefix(domain, "metadata") {
		if domain == "metadata@SYSTEM" {
			key = "SYSTEM/" + key
		}
		have, found := rec.metadata[key]
		return found && holdsMetadata(t, have)
	}
	have, found := rec.get(t.Attr)
	if !found && t.Attr == "id" {
		have, found = rec.get("href")
	}
	if !found && t.Op != "==" && t.Op != "!=" {
		return false // without a date no comparison holds
	}
	return fiql.Compare(t, have)
}

// metadataTypes are the types of metadata as a filter writes them.
var metadataTypes = map[string]string{
	"STRING":   "MetadataStringValue",
	"NUMBER":   "MetadataNumberValue",
	"BOOLEAN":  "MetadataBooleanValue",
	"DATETIME": "MetadataDateTimeValue",
}

// holdsMetadata evaluates one comparison of metadata. A value of another type than that of the filter equals nothing.
func holdsMetadata(t fiql.Term, have store.Metadata) bool {
	kind, value, typed := strings.Cut(t.Value, ":")
	if of, known := metadataTypes[kind]; typed && known {
		return of == have.Type && fiql.Compare(fiql.Term{Op: t.Op, Value: value}, have.Value)
	}
	return fiql.Compare(fiql.Term{Op: t.Op, Value: t.Value}, have.Value)
}

// sortRecords sorts the rows from an index to another, as if all were sorted.
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
	if inOrder(rows, key, sign) {
		return // as those of a type with many rows are made
	}
	keyed := make([]keyedRecord, len(rows))
	for i, rec := range rows {
		keyed[i] = keyOf(rec, key)
		keyed[i].place = i
	}
	arrange(keyed, from, to, func(a, b *keyedRecord) int {
		return cmp.Or(sign*a.compare(b), cmp.Compare(a.place, b.place))
	})
	for i := range keyed {
		rows[i] = keyed[i].record
	}
}

// inOrder reports whether rows are sorted already.
func inOrder(rows []*record, key string, sign int) bool {
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

// A keyedRecord is a record with what it is sorted by, which is computed once.
type keyedRecord struct {
	record  *record
	text    string
	number  int
	numeric bool
	place   int // among those with the same key
}

func keyOf(rec *record, key string) keyedRecord {
	text, found := rec.get(key)
	if !found && key == "id" {
		text, _ = rec.get("href")
	}
	number, numeric := whole(text)
	return keyedRecord{record: rec, text: text, number: number, numeric: numeric}
}

// compare compares numbers as such, anything else as text.
func (k *keyedRecord) compare(other *keyedRecord) int {
	if k.numeric && other.numeric {
		return cmp.Compare(k.number, other.number)
	}
	return strings.Compare(k.text, other.text)
}

// whole reads a number that has nothing but digits, which most values are not.
func whole(s string) (int, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[len(s)-1] < '0' || s[len(s)-1] > '9' || len(s) > 18 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// queryPage is how many rows a page has, and which page was asked for.
func queryPage(assume *cloud.Assumptions, query api.Values) (size, page int, err error) {
	size = query.Number("pageSize", api.DefaultPage)
	page = query.Number("page", 1)
	if size > api.MaxPage && !assume.QueryPageSizeIsCut {
		return 0, 0, store.BadRequest("The page size %d is more than %d.", size, api.MaxPage)
	}
	return min(size, api.MaxPage), page, nil
}

// recordsPage cuts the page that was asked for and writes it.
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
	n := xmltree.New(container(name, format), wire.Namespaces(), xmltree.A("total", len(rows)), xmltree.A("pageSize", size),
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
		n.Add(rec.in(r.Site, r.Query, name, element, format))
	}
	return &api.Response{Status: http.StatusOK, XML: n}, nil
}

// pageURI is the address of a page of the query at hand.
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

// node writes the row: all attributes, or href and those in fields, which may name metadata too.
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

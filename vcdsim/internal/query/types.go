// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// A queryType is a type of the query service. Its attributes are those that a filter can use; a row may omit an
// attribute that is empty.
type queryType struct {
	element    string
	admin      string // element for system administrators, if it differs
	attributes string
	rows       func(r *api.Request) []row // in the order of IDs if sortedByID
	sortedByID bool
	timeless   bool // rows change only if the store changes, not with time
}

// queryTypes maps the names of query types to the types. Under the names in adminTypes, providers get the same rows.
var queryTypes = map[string]queryType{
	"vm": {
		element: "VMRecord",
		admin:   "AdminVMRecord",
		attributes: `name containerName container ownerName owner vdc vdcName isVAppTemplate isDeleted guestOs numberOfCpus memoryMB
			status networkName network ipAddress isBusy isDeployed isPublished catalogName hardwareVersion vmToolsStatus
			isInMaintenanceMode isAutoNature storageProfileName gcStatus autoUndeployDate autoDeleteDate
			isAutoUndeployNotified isAutoDeleteNotified isComputePolicyCompliant vmSizingPolicyId vmPlacementPolicyId
			encrypted dateCreated totalStorageAllocatedMb isExpired vmNameInVc hostName moref org`,
		rows:       vmRows,
		sortedByID: true,
		timeless:   true,
	},
	"vApp": {
		element: "VAppRecord",
		admin:   "AdminVAppRecord",
		attributes: `name vdc vdcName isPublic isEnabled isBusy creationDate status ownerName isDeployed isInMaintenanceMode
			isAutoNature isExpired numberOfVMs numberOfCpus cpuAllocationMhz memoryAllocationMB storageKB isVdcEnabled
			autoUndeployDate autoDeleteDate description org`,
		rows: complete(vappRecords),
	},
	"orgVdc": {
		element: "OrgVdcRecord",
		admin:   "AdminVdcRecord",
		attributes: `name description isEnabled cpuAllocationMhz cpuLimitMhz cpuUsedMhz memoryAllocationMB memoryLimitMB memoryUsedMB
			storageLimitMB storageUsedMB providerVdcName orgName org isSystemVdc isBusy status numberOfStorageProfiles
			numberOfVMs numberOfRunningVMs isFastProvisioned`,
		rows: complete(vdcRecords),
	},
	"orgVdcNetwork": {
		element:    "OrgVdcNetworkRecord",
		attributes: "name defaultGateway netmask dns1 dns2 dnsSuffix linkType connectedTo vdc isBusy isShared vdcName isIpScopeInherited usedIpCount",
		rows:       complete(networkRecords),
	},
	"orgVdcStorageProfile": {
		element: "OrgVdcStorageProfileRecord",
		admin:   "AdminOrgVdcStorageProfileRecord",
		attributes: `name isEnabled isDefaultStorageProfile storageUsedMB storageLimitMB iopsAllocated iopsLimit numberOfConditions
			vdc vdcName isVdcBusy`,
		rows: complete(profileRecords),
	},
	"catalog": {
		element: "CatalogRecord",
		admin:   "AdminCatalogRecord",
		attributes: `name description isPublished isShared creationDate orgName org ownerName numberOfVAppTemplates numberOfMedia
			publishSubscriptionType version status isLocal`,
		rows: complete(catalogRecords),
	},
	"catalogItem": {
		element: "CatalogItemRecord",
		admin:   "AdminCatalogItemRecord",
		attributes: `entity entityName entityType catalog catalogName ownerName isPublished vdc vdcName isVdcEnabled creationDate
			isExpired status name`,
		rows: complete(itemRecords),
	},
	"vAppTemplate": {
		element: "VAppTemplateRecord",
		admin:   "AdminVAppTemplateRecord",
		attributes: `ownerName catalogName catalog catalogItem isPublished name description vdc vdcName org creationDate isBusy
			isGoldMaster isEnabled status isDeployed isExpired storageProfileName version numberOfVMs isInCatalog`,
		rows: complete(templateRecords),
	},
	"task": {
		element:    "TaskRecord",
		admin:      "AdminTaskRecord",
		attributes: "org orgName name operationFull message startDate endDate status progress ownerName object objectType objectName serviceNamespace",
		rows:       complete(taskRecords),
	},
	"disk": {
		element: "DiskRecord",
		admin:   "AdminDiskRecord",
		attributes: `name vdc description sizeMb ownerName vdcName storageProfile storageProfileName status busType busTypeDesc
			busSubType isAttached attachedVmCount isShareable sharingType uuid encrypted datastoreName`,
		rows: complete(diskRecords),
	},
	"organization": {
		element:    "OrgRecord",
		attributes: "name isReadOnly isEnabled displayName numberOfCatalogs numberOfVdcs numberOfVApps",
		rows:       complete(orgRecords),
	},
	"providerVdc": {
		element:    "VMWProviderVdcRecord",
		attributes: "name status isBusy isDeleted isEnabled numberOfVdcs numberOfDatastores numberOfStorageProfiles",
		rows:       complete(providerRecords),
	},
	"providerVdcStorageProfile": {
		element:    "ProviderVdcStorageProfileRecord",
		attributes: "name providerVdc isEnabled storageTotalMB storageUsedMB vc storageProfileMoref",
		rows:       complete(providerProfileRecords),
	},
	"edgeGateway": {
		element:    "EdgeGatewayRecord",
		attributes: "name vdc orgVdcName numberOfExtNetworks numberOfOrgNetworks isBusy gatewayStatus haStatus",
		rows:       complete(gatewayRecords),
	},
	"networkPool": {
		element:    "NetworkPoolRecord",
		attributes: "name isBusy networkPoolType",
		rows:       complete(poolRecords),
	},
	"resourcePool": {
		element:    "ResourcePoolRecord",
		attributes: "name moref isDeleted vc vcName providerVdc providerName isEnabled isPrimary clusterMoref isKubernetesEnabled",
		rows:       complete(resourcePoolRecords),
	},
	"vmGroups": {
		element:    "VmGroupsRecord",
		attributes: "vmGroupId vmGroupName clusterMoref clusterName vcId namedVmGroupId",
		rows:       complete(vmGroupRecords),
	},
	"nsxTManager": {
		element:    "NsxTManagerRecord",
		attributes: "name url username vc",
		rows:       complete(managerRecords),
	},
	"vAppNetwork": {
		element:    "VAppNetworkRecord",
		admin:      "AdminVAppNetworkRecord",
		attributes: "name vApp vAppName isBusy isLinked linkNetworkName gateway netmask",
		rows:       complete(vappNetworkRecords),
	},
	"media": {
		element: "MediaRecord",
		admin:   "AdminMediaRecord",
		attributes: `ownerName catalogName catalog catalogItem isPublished name vdc vdcName org creationDate isBusy storageB owner
			status storageProfileName isInCatalog isIso isVdcEnabled`,
		rows: complete(mediaRecords),
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

// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Names and managed object references of the vCenter's inventory: one cluster and one distributed switch.
const (
	ClusterName     = "cluster1"
	ClusterMoref    = "domain-c8"
	providerSwitch  = "dvs1"
	switchMoref     = "dvs-20"
	centerOperation = "VIM_SERVER_VIEW"
)

// A ResourcePool is a resource pool of the cluster. The provider VDC uses the first.
type ResourcePool struct {
	Moref, Name string
}

// ResourcePools lists the resource pools of the cluster.
var ResourcePools = []ResourcePool{
	{"resgroup-9", "vcd-resources"},
	{"resgroup-10", "spare-resources"},
}

// A PortGroup is a port group of the distributed switch. A network or a network pool can use it.
type PortGroup struct {
	Moref, Name, VLAN string
}

// PortGroups lists the port groups of the distributed switch.
var PortGroups = []PortGroup{
	{"dvportgroup-21", "port-group", "21"},
	{"dvportgroup-22", "port-group-2", "22"},
	{"dvportgroup-23", "port-group-3", "23"},
}

// VMGroups lists the VM groups of the cluster, which placement policies refer to.
var VMGroups = []string{"rack-a-vms", "rack-b-vms"}

func vsphereRoutes(add api.AddRoute) {
	const centers = "/cloudapi/1.0.0/virtualCenters"
	add("GET", centers, listVirtualCenters, cloud.LatencyCloudAPI)
	add("GET", centers+"/{id}",
		func(r *api.Request) (*api.Response, error) {
			return access.OneOf(r, virtualCenters(r.Session, r.Cloud.IDs), "vcId")
		}, cloud.LatencyCloudAPI)
	add("GET", centers+"/{id}/resourcePools/browse", forCenter(listResourcePools), cloud.LatencyCloudAPI)
	add("GET", centers+"/{id}/resourcePools/browseAll", forCenter(listResourcePools), cloud.LatencyCloudAPI)
	add("GET", centers+"/{id}/resourcePools/{pool}/hwv", forCenter(getPoolHardware), cloud.LatencyCloudAPI)
	add("GET", centers+"/{id}/storageProfiles", forCenter(listCenterProfiles), cloud.LatencyCloudAPI)
	add("GET", centers+"/resources/importableDvpgs", listPortGroups, cloud.LatencyCloudAPI)
	add("GET", centers+"/resources/dvSwitches", listSwitches, cloud.LatencyCloudAPI)
}

// CenterID returns the ID of the vCenter.
func CenterID(source *ids.Source) string { return source.Named("vimserver", CenterName) }

func centerRef(source *ids.Source) map[string]any {
	return api.Ref("vimserver", CenterID(source), CenterName)
}

// forCenter restricts a handler to providers, and to the ID of the only vCenter.
func forCenter(handle api.Handler) api.Handler {
	return func(r *api.Request) (*api.Response, error) {
		if !r.Session.Provider() || store.Bare(r.Vars["id"]) != CenterID(r.Cloud.IDs) {
			return nil, store.Forbidden(centerOperation, r.Vars["id"])
		}
		return handle(r)
	}
}

func listResourcePools(r *api.Request) (*api.Response, error) {
	var out []any
	for i, p := range ResourcePools {
		out = append(out, map[string]any{
			"moref":             p.Moref,
			"clusterMoref":      ClusterMoref,
			"name":              p.Name,
			"vcId":              store.URN("vimserver", CenterID(r.Cloud.IDs)),
			"eligible":          i > 0,
			"kubernetesEnabled": false,
			"vgpuEnabled":       false,
		})
	}
	return r.Page(out)
}

func getPoolHardware(r *api.Request) (*api.Response, error) {
	for _, p := range ResourcePools {
		if p.Moref != r.Vars["pool"] {
			continue
		}
		supported := []any{}
		for _, v := range Hardware {
			supported = append(supported, map[string]any{"name": v, "isDefault": v == DefaultHardware})
		}
		return api.JSON(map[string]any{"versions": Hardware, "supportedVersions": supported}), nil
	}
	return nil, store.Forbidden(centerOperation, r.Vars["pool"])
}

// listCenterProfiles returns the storage policies of the vCenter: one per storage profile of the VDCs.
func listCenterProfiles(r *api.Request) (*api.Response, error) {
	var out []any
	for _, name := range ProviderProfiles(r.Cloud) {
		out = append(out, map[string]any{"moref": r.Cloud.IDs.Named("storagePolicy", name), "name": name})
	}
	return r.PageIgnoring(out, []string{"_context"})
}

func backing(id, name string) map[string]any { return map[string]any{"id": id, "name": name} }

func switchJSON(source *ids.Source) map[string]any {
	return map[string]any{
		"backingRef":    backing(switchMoref, providerSwitch),
		"virtualCenter": centerRef(source),
	}
}

func listSwitches(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider(centerOperation); err != nil {
		return nil, err
	}
	return r.PageIgnoring([]any{switchJSON(r.Cloud.IDs)}, []string{"virtualCenter.id"})
}

// listPortGroups returns the unused port groups.
func listPortGroups(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider(centerOperation); err != nil {
		return nil, err
	}
	var out []any
	for _, g := range PortGroups {
		if portGroupUser(r.Cloud, g.Moref) != "" {
			continue
		}
		out = append(out, map[string]any{
			"backingRef":    backing(g.Moref, g.Name),
			"virtualCenter": centerRef(r.Cloud.IDs),
			"vlan":          g.VLAN,
			"dvSwitch":      switchJSON(r.Cloud.IDs),
		})
	}
	return r.PageIgnoring(out, []string{"orgVdcId"})
}

// FreePortGroup refuses a port group that does not exist or is in use.
func FreePortGroup(s *cloud.Cloud, moref string) error {
	for _, g := range PortGroups {
		if g.Moref != moref {
			continue
		}
		if user := portGroupUser(s, moref); user != "" {
			return store.BadRequest("The port group %q is in use by %s.", g.Name, user)
		}
		return nil
	}
	return store.BadRequest("The port group %q does not exist.", moref)
}

// portGroupUser describes the network or network pool that uses a port group. It returns an empty string for an unused
// one.
func portGroupUser(s *cloud.Cloud, moref string) string {
	for _, o := range s.Store.Model.Orgs {
		for _, v := range o.VDCs {
			for _, n := range v.Networks {
				if n.Fields["backingNetworkId"] == moref {
					return fmt.Sprintf("the network %q", n.Name)
				}
			}
		}
	}
	for _, d := range s.Store.Documents[poolsPath] {
		for _, x := range backings(d.Body, "portGroupRefs") {
			if store.Text(x, "id") == moref {
				return fmt.Sprintf("the network pool %q", store.Text(d.Body, "name"))
			}
		}
	}
	return ""
}

func virtualCenters(session *store.Session, source *ids.Source) []any {
	if !session.Provider() {
		return nil
	}
	return []any{map[string]any{
		"vcId":                      store.URN("vimserver", CenterID(source)),
		"name":                      CenterName,
		"description":               "",
		"username":                  "administrator@vsphere.local",
		"url":                       "https://" + CenterName + ".example",
		"isEnabled":                 true,
		"vsphereWebClientServerUrl": nil,
		"hasProxy":                  false,
		"rootFolder":                nil,
		"vcNoneNetwork":             nil,
		"tenantVisibleName":         CenterName,
		"isConnected":               true,
		"mode":                      "IAAS",
		"listenerState":             "CONNECTED",
		"clusterHealthStatus":       "GREEN",
		"vcVersion":                 "8.0.3",
		"buildNumber":               nil,
		"uuid":                      CenterID(source),
		"nsxVManager":               nil,
		"proxyConfigurationUrn":     nil,
	}}
}

func listVirtualCenters(r *api.Request) (*api.Response, error) {
	return r.Page(virtualCenters(r.Session, r.Cloud.IDs))
}

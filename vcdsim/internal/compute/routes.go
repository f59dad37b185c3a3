// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Routes adds the routes of vApps, VMs, disks and tasks, and of the metadata, access settings and security tags of any
// entity.
func Routes(add api.AddRoute) {
	taskRoutes(add)
	vappRoutes(add)
	vmRoutes(add)
	vmSettingRoutes(add)
	diskRoutes(add)
	affinityRoutes(add)
	snapshotRoutes(add)
	linkedCloneRoutes(add)
	standaloneRoutes(add)
	metadataRoutes(add)
	accessRoutes(add)
	securityTagRoutes(add)
}

func vmRoutes(add api.AddRoute) {
	const vm = "/api/vApp/vm-{vm}"
	add("GET", vm, api.With(OwnVM, GetVM), cloud.LatencyVM)
	add("PUT", vm, reconfigureVM, cloud.LatencyWrite)
	add("DELETE", vm, api.With(IdleVM, deleteVMRequest), cloud.LatencyWrite)
	add("POST", vm+"/action/reconfigureVm", reconfigureVM, cloud.LatencyWrite)
	add("POST", vm+"/action/deploy", api.With(IdleVM, deployVM), cloud.LatencyWrite)
	add("POST", vm+"/action/undeploy", api.With(IdleVM, undeployVM), cloud.LatencyWrite)
	for _, action := range []string{"powerOn", "powerOff", "shutdown", "reboot", "reset", "suspend"} {
		add("POST", vm+"/power/action/"+action, func(r *api.Request) (*api.Response, error) { return powerVM(r, action) },
			cloud.LatencyWrite)
	}
	for part, show := range map[string]func(*api.Request, *store.VM) *api.Response{
		"/networkConnectionSection": func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.ConnectionSection(r.Site, v, true))
		},
		"/guestCustomizationSection": func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.CustomizationSection(r.Site, v, true))
		},
		"/virtualHardwareSection": func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.HardwareSection(r, v, true))
		},
		"/virtualHardwareSection/disks": func(r *api.Request, v *store.VM) *api.Response {
			return ovf.ItemsList(r.Site, v, "disks", ovf.DiskItems(r.Site, r.Cloud.Store, "Item", v))
		},
		"/virtualHardwareSection/media": func(r *api.Request, v *store.VM) *api.Response {
			return ovf.ItemsList(r.Site, v, "media", ovf.DriveItems(r.Cloud.Store, "Item", v))
		},
		"/virtualHardwareSection/networkCards": func(r *api.Request, v *store.VM) *api.Response {
			return ovf.ItemsList(r.Site, v, "networkCards", ovf.NICItems(v))
		},
		"/virtualHardwareSection/cpu": func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.RootItem(ovf.CPUItem(r.Site, "Item", v)))
		},
		"/virtualHardwareSection/memory": func(r *api.Request, v *store.VM) *api.Response {
			return api.XML(ovf.RootItem(ovf.MemoryItem(r.Site, "Item", v)))
		},
		"/productSections":          vmProducts,
		"/guestcustomizationstatus": func(_ *api.Request, v *store.VM) *api.Response { return api.XML(ovf.CustomizationStatus(v)) },
	} {
		add("GET", vm+part, func(r *api.Request) (*api.Response, error) { return showVM(r, show) }, cloud.LatencyLegacy)
	}
	add("PUT", vm+"/networkConnectionSection", putNICs, cloud.LatencyWrite)
	add("PUT", vm+"/guestCustomizationSection", putCustomization, cloud.LatencyWrite)
	add("PUT", vm+"/virtualHardwareSection", putHardware, cloud.LatencyWrite)
	add("PUT", vm+"/virtualHardwareSection/cpu", putItem(resourceCPU), cloud.LatencyWrite)
	add("PUT", vm+"/virtualHardwareSection/memory", putItem(resourceMemory), cloud.LatencyWrite)
	add("PUT", vm+"/virtualHardwareSection/disks", putDisks, cloud.LatencyWrite)
	add("PUT", vm+"/productSections", putVMProducts, cloud.LatencyWrite)
	add("POST", vm+"/disk/action/attach", api.With2(diskParam, attachDisk), cloud.LatencyWrite)
	add("POST", vm+"/disk/action/detach", api.With2(diskParam, detachDisk), cloud.LatencyWrite)
}

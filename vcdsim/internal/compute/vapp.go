// SPDX-License-Identifier: Apache-2.0

package compute

import (
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

func vappRoutes(add api.AddRoute) {
	add("POST", "/api/vdc/{id}/action/composeVApp", composeVApp, cloud.LatencyWrite)
	add("POST", "/api/vdc/{id}/action/instantiateVAppTemplate", instantiateTemplate, cloud.LatencyWrite)
	const vapp = "/api/vApp/vapp-{vapp}"
	add("GET", vapp, api.With(OwnVApp, GetVApp), cloud.LatencyVApp)
	add("PUT", vapp, api.With2(api.Parsed(idleVApp), putVApp), cloud.LatencyWrite)
	add("DELETE", vapp, api.With(idleVApp, deleteVApp), cloud.LatencyWrite)
	add("POST", vapp+"/action/recomposeVApp", api.With2(api.Parsed(idleVApp), recomposeVApp), cloud.LatencyWrite)
	add("GET", vapp+"/networkConfigSection", api.With(OwnVApp, getVAppNetworks), cloud.LatencyLegacy)
	add("PUT", vapp+"/networkConfigSection", api.With2(api.Parsed(idleVApp), putVAppNetworks), cloud.LatencyWrite)
	add("GET", vapp+"/leaseSettingsSection", api.WithSite(OwnVApp, getLease), cloud.LatencyLegacy)
	add("PUT", vapp+"/leaseSettingsSection", api.With(OwnVApp, putLease), cloud.LatencyWrite)
	add("GET", vapp+"/productSections", api.WithSite(OwnVApp, getVAppProducts), cloud.LatencyLegacy)
	add("PUT", vapp+"/productSections", api.With2(api.Parsed(idleVApp), putVAppProducts), cloud.LatencyWrite)
	add("GET", vapp+"/owner", api.With(OwnVApp, getVAppOwner), cloud.LatencyLegacy)
	add("PUT", vapp+"/owner", api.With2(api.Parsed(OwnVApp), putVAppOwner), cloud.LatencyWrite)
	add("POST", vapp+"/action/deploy", api.With(idleVApp, deployVApp), cloud.LatencyWrite)
	add("POST", vapp+"/action/undeploy", api.With(idleVApp, undeployVApp), cloud.LatencyWrite)
	for _, action := range []string{"powerOn", "powerOff", "shutdown", "reboot", "reset", "suspend"} {
		add("POST", vapp+"/power/action/"+action, func(r *api.Request) (*api.Response, error) { return powerVApp(r, action) },
			cloud.LatencyWrite)
	}
}

func composeVApp(r *api.Request) (*api.Response, error) { return createVApp(r, cloud.OpCompose) }

func instantiateTemplate(r *api.Request) (*api.Response, error) {
	return createVApp(r, cloud.OpInstantiate)
}

// createVApp creates a vApp. The response has status 201 and contains the vApp with its task.
func createVApp(r *api.Request, op string) (*api.Response, error) {
	org, vdc, err := vdcs.OwnVDC(r)
	if err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if err := vdcs.MayUseVDC(vdc); err != nil {
		return nil, err
	}
	v, err := NewVApp(r, org, vdc, tree)
	if err != nil {
		return nil, err
	}
	create := newVMs
	if op == cloud.OpInstantiate {
		create = instantiateVMs
	}
	vms, err := create(r, vdc, v, tree)
	if err != nil {
		return nil, err
	}
	r.Cloud.Store.VApps[v.ID] = v
	ids := AddVMs(r.Cloud.Store, vms)
	if op == cloud.OpCompose && len(ids) > 0 {
		op = cloud.OpComposeVMs
	}
	w := CreationWork(op, v, ids, tree)
	r.StartTask(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v))
	return CreatedVApp(r, v), nil
}

// CreationWork returns the work that creates a vApp with VMs. VCD deploys the vApp and powers it on unless the request says
// otherwise. It is not known whether it also deploys a vApp without VMs; the simulator does not.
func CreationWork(op string, v *store.VApp, vms []string, tree *xmltree.Node) store.Work {
	on := tree.Attr("powerOn") != "false"
	return store.Work{
		Op:      op,
		VApp:    v.ID,
		VMs:     vms,
		PowerOn: on,
		Deploy:  len(vms) > 0 && (on || tree.Attr("deploy") != "false"),
	}
}

// CreatedVApp returns a response with status 201 and a new vApp.
func CreatedVApp(r *api.Request, v *store.VApp) *api.Response {
	return api.XML(ovf.VAppNode(r, v)).CreatedAt(r.Site.Href("vapp", v.ID))
}

// AddVMs adds VMs to the store and returns their IDs.
func AddVMs(st *store.Store, vms []*store.VM) []string {
	var out []string
	for _, vm := range vms {
		st.AddVM(vm)
		out = append(out, vm.ID)
	}
	return out
}

// GetVApp returns the document of a vApp.
func GetVApp(r *api.Request, v *store.VApp) (*api.Response, error) {
	return api.XML(ovf.VAppNode(r, v)), nil
}

// putVApp changes the name and the description of a vApp.
func putVApp(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	w := store.Work{Op: cloud.OpUpdateVApp, VApp: v.ID}
	if err := readVAppName(r.Cloud.Store, v, tree, &w); err != nil {
		return nil, err
	}
	return r.Start(w, v.Entity(), []string{v.ID}), nil
}

// readVAppName reads a new name and description into w.
func readVAppName(st *store.Store, v *store.VApp, tree *xmltree.Node, w *store.Work) error {
	if name := tree.Attr("name"); name != "" && name != v.Name {
		for _, other := range st.VApps {
			if other.VDCID == v.VDCID && other.Name == name {
				return store.DuplicateName(name)
			}
		}
		w.Name = name
	}
	if d := tree.At("Description"); d != nil {
		text := tree.Str("Description")
		w.Describe = &text
	}
	return nil
}

// recomposeVApp adds, moves and removes VMs, adds networks, and changes the name and the description.
func recomposeVApp(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	vdc, err := vdcs.VDCByID(r.Cloud.Store, v.VDCID)
	if err != nil {
		return nil, err
	}
	w := store.Work{Op: cloud.OpRecompose, VApp: v.ID, PowerOn: tree.Attr("powerOn") == "true"}
	if err := readVAppName(r.Cloud.Store, v, tree, &w); err != nil {
		return nil, err
	}
	if w.Networks, err = readNetworks(r.Cloud.Store, r.Cloud.IDs, vdc, tree.At("InstantiationParams", "NetworkConfigSection"),
		v.Networks); err != nil {
		return nil, err
	}
	// The NICs of new VMs may connect to networks that the same request adds.
	planned := *v
	planned.Networks = append(append([]store.VAppNetwork{}, v.Networks...), w.Networks...)
	moves := takeMoves(r.Cloud.Store, tree)
	vms, err := newVMs(r, vdc, &planned, tree)
	if err != nil {
		return nil, err
	}
	if w.Moves, err = readMoves(r, vdc, &planned, moves, vms); err != nil {
		return nil, err
	}
	if w.Remove, err = readDeletes(r, v, tree); err != nil {
		return nil, err
	}
	w.VMs = AddVMs(r.Cloud.Store, vms)
	locks := append(append([]string{v.ID}, w.VMs...), w.Remove...)
	for i := range w.Moves {
		locks = append(locks, w.Moves[i].VM.ID, w.Moves[i].VM.VAppID)
	}
	if len(w.VMs)+len(w.Moves) == 0 {
		w.Op = cloud.OpUpdateVApp
	}
	return r.Start(w, v.Entity(), locks), nil
}

func readDeletes(r *api.Request, v *store.VApp, tree *xmltree.Node) ([]string, error) {
	var out []string
	for _, d := range tree.All("DeleteItem") {
		vm, err := vmByID(r, store.Bare(d.Attr("href")))
		if err != nil {
			return nil, err
		}
		if vm.VAppID != v.ID {
			return nil, store.Forbidden("VAPP_VM_DELETE", vm.ID)
		}
		if err := checkDeletable(r.Cloud.Store, &r.Cloud.Assume, vm); err != nil {
			return nil, err
		}
		out = append(out, vm.ID)
	}
	return out, nil
}

func deleteVApp(r *api.Request, v *store.VApp) (*api.Response, error) {
	if r.Cloud.Store.Running(v) {
		return nil, store.BadRequest("The requested operation could not be executed on vApp %q. Stop the vApp and try again.", v.Name)
	}
	for _, vm := range r.Cloud.Store.VMsOf(v.ID) {
		if err := checkNoIndependentDisks(r.Cloud.Store, &r.Cloud.Assume, vm); err != nil {
			return nil, err
		}
	}
	return r.Start(store.Work{Op: cloud.OpDeleteVApp, VApp: v.ID}, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}

func getVAppNetworks(r *api.Request, v *store.VApp) (*api.Response, error) {
	return api.XML(ovf.NetworkConfigSection(r.Site, r.Cloud.Store, v, true)), nil
}

// putVAppNetworks replaces the networks of a vApp.
func putVAppNetworks(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	vdc, err := vdcs.VDCByID(r.Cloud.Store, v.VDCID)
	if err != nil {
		return nil, err
	}
	networks, err := readNetworks(r.Cloud.Store, r.Cloud.IDs, vdc, tree, v.Networks)
	if err != nil {
		return nil, err
	}
	after := *v
	after.Networks = networks
	if err := checkNetworkRemoval(r.Cloud.Store, &r.Cloud.Assume, v, &after); err != nil {
		return nil, err
	}
	return replaceNetworks(r, v, networks), nil
}

func getLease(site wire.Site, v *store.VApp) (*api.Response, error) {
	return api.XML(ovf.LeaseSection(site, v, true)), nil
}

func putLease(r *api.Request, v *store.VApp) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(v.ID); err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	lease := readLease(tree, v.Lease, r.Cloud.Store.Org(v.OrgID))
	return r.Start(store.Work{Op: cloud.OpLease, VApp: v.ID, Lease: &lease}, v.Entity(), []string{v.ID}), nil
}

func getVAppOwner(r *api.Request, v *store.VApp) (*api.Response, error) {
	n := xmltree.New("Owner", wire.Namespaces(), xmltree.A("href", r.Site.Href("vapp", v.ID)+"/owner"),
		xmltree.A("type", wire.Mime("owner")))
	n.Add(api.OwnerNode(r.Site, v.OwnerID, ovf.UserName(r.Cloud.Store, v)).Children)
	return api.XML(n), nil
}

// putVAppOwner transfers a vApp to another user of the organization.
func putVAppOwner(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	org, u, err := access.UserByID(r.Session, r.Cloud.Store, store.Bare(tree.At("User").Attr("href")))
	if err != nil {
		return nil, err
	}
	if org.ID != v.OrgID {
		return nil, store.BadRequest("The user %s is not of the organization of the vApp.", u.Name)
	}
	v.OwnerID = u.ID
	return api.NoContent(), nil
}

// powerVApp starts a power action on all VMs of a vApp.
func powerVApp(r *api.Request, action string) (*api.Response, error) {
	v, err := idleVApp(r)
	if err != nil {
		return nil, err
	}
	w := powerWork(action)
	w.VApp = v.ID
	for _, vm := range r.Cloud.Store.VMsOf(v.ID) {
		if vm.Status != w.Power && vm.Status != store.Unresolved {
			w.VMs = append(w.VMs, vm.ID)
		}
	}
	if err := vdcs.MayStart(r.Cloud.Store, v.VDCID, w); err != nil {
		return nil, err
	}
	if action != "powerOn" && !r.Cloud.Store.Deployed(v) {
		return nil, notRunning(v)
	}
	return r.Start(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}

func notRunning(v *store.VApp) error {
	return store.BadRequest("The requested operation could not be executed since vApp %q is not running.", v.Name)
}

func deployVApp(r *api.Request, v *store.VApp) (*api.Response, error) {
	w, err := deployWork(r)
	if err != nil {
		return nil, err
	}
	w.VApp = v.ID
	w.VMs = machines.VAppsOf(r.Cloud).VMIDs(v)
	if err := vdcs.MayStart(r.Cloud.Store, v.VDCID, w); err != nil {
		return nil, err
	}
	return r.Start(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}

func undeployVApp(r *api.Request, v *store.VApp) (*api.Response, error) {
	w, err := undeployWork(r)
	if err != nil {
		return nil, err
	}
	if !r.Cloud.Store.Deployed(v) {
		return nil, notRunning(v)
	}
	w.VApp = v.ID
	w.VMs = machines.VAppsOf(r.Cloud).VMIDs(v)
	return r.Start(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}

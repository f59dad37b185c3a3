// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Compute is a VDC's share of its provider's hardware. It is stored and shown, and limits nothing.
type Compute struct {
	CPUAllocated, CPULimit       int64 // MHz
	MemoryAllocated, MemoryLimit int64 // MiB
	CPUGuaranteed                float64
	MemoryGuaranteed             float64
	CPUSpeed                     int64 // of a virtual CPU in MHz; 0 is 1000
	NetworkQuota                 *int  // nil is 1000
	ThickDisks                   bool
	NoOvercommit                 bool
	Elastic                      bool
	NoMemoryOverhead             bool // in what is accounted
}

const (
	defaultCPUSpeed     = 1000
	defaultNetworkQuota = 1000
)

func vdcCapacityRoutes(add addRoute) {
	add("GET", "/api/admin/vdcStorageProfile/{id}", getAdminProfile, latencyLegacy)
	add("PUT", "/api/admin/vdcStorageProfile/{id}", with2(adminProfile, putAdminProfile), latencyWrite)
	add("POST", "/api/admin/vdc/{id}/vdcStorageProfiles", changeProfiles, latencyWrite)
}

func (c *Compute) speed() int64 {
	if c.CPUSpeed == 0 {
		return defaultCPUSpeed
	}
	return c.CPUSpeed
}

func (c *Compute) networks() int {
	if c.NetworkQuota == nil {
		return defaultNetworkQuota
	}
	return *c.NetworkQuota
}

// units are how many of the smallest unit another is.
var units = map[string]int64{"GHz": 1000, "GB": 1024}

// read applies the compute capacity in a document; what it does not name stays.
func (c *Compute) read(tree *xmltree.Node) {
	capacity := tree.At("ComputeCapacity")
	for name, into := range map[string][2]*int64{
		"Cpu":    {&c.CPUAllocated, &c.CPULimit},
		"Memory": {&c.MemoryAllocated, &c.MemoryLimit},
	} {
		for i, field := range []string{"Allocated", "Limit"} {
			if v, ok := capacity.At(name).Int(field); ok {
				*into[i] = v * max(units[capacity.Str(name, "Units")], 1)
			}
		}
	}
	c.readShares(tree)
	if v, ok := tree.Int("VCpuInMhz"); ok {
		c.CPUSpeed = v
	}
	if v, ok := tree.Int("NetworkQuota"); ok {
		quota := int(v)
		c.NetworkQuota = &quota
	}
}

// readShares reads what is guaranteed and how it is accounted.
func (c *Compute) readShares(tree *xmltree.Node) {
	for name, into := range map[string]*float64{
		"ResourceGuaranteedCpu":    &c.CPUGuaranteed,
		"ResourceGuaranteedMemory": &c.MemoryGuaranteed,
	} {
		if v, err := strconv.ParseFloat(tree.Str(name), 64); err == nil {
			*into = v
		}
	}
	for name, into := range map[string]*bool{
		"IsThinProvision":       &c.ThickDisks,
		"OverCommitAllowed":     &c.NoOvercommit,
		"IncludeMemoryOverhead": &c.NoMemoryOverhead,
	} {
		if tree.At(name) != nil {
			*into = !tree.Bool(name)
		}
	}
	if tree.At("IsElastic") != nil {
		c.Elastic = tree.Bool("IsElastic")
	}
}

// read applies a document of a VDC except for its names and storage; what it does not name stays.
func (v *VDC) read(tree *xmltree.Node) {
	v.Compute.read(tree)
	if quota, ok := tree.Int("VmQuota"); ok {
		v.VMQuota = int(quota)
	}
	if fast := tree.Str("UsesFastProvisioning"); fast != "" {
		v.FullClones = fast == "false"
	}
	if enabled := tree.Str("IsEnabled"); enabled != "" {
		v.Disabled = enabled == "false"
	}
}

// mayUse refuses to create or start something in a VDC that is disabled; what runs in it goes on.
func (v *VDC) mayUse() error {
	if v.Disabled {
		return badRequest("The VDC %q is disabled.", v.Name)
	}
	return nil
}

// mayStart refuses to start something in a VDC that is disabled.
func mayStart(r *request, vdcID string, w Work) error {
	v, err := vdcByID(r, vdcID)
	if err != nil || w.Op != opDeploy || w.Power != PoweredOn {
		return err
	}
	return v.mayUse()
}

func capacity(name, unit string, allocated, limit int64) *xmltree.Node {
	T := xmltree.T
	return xmltree.New(name, T("Units", unit), T("Allocated", allocated), T("Limit", limit), T("Reserved", 0),
		T("Used", 0), T("Overhead", 0))
}

func (c *Compute) node() *xmltree.Node {
	return xmltree.New("ComputeCapacity", capacity("Cpu", "MHz", c.CPUAllocated, c.CPULimit),
		capacity("Memory", "MB", c.MemoryAllocated, c.MemoryLimit))
}

// resourcePools are the resource pools of a VDC, which its provider sees.
func resourcePools(r *request, v *VDC) *xmltree.Node {
	if !r.session.provider() {
		return nil
	}
	server := r.sim.ids.named("vimserver", providerCenter)
	return xmltree.New("ResourcePoolRefs", xmltree.New("vmext:VimObjectRef",
		xmltree.New("vmext:VimServerRef", xmltree.A("href", r.base()+"/api/admin/extension/vimServer/"+server),
			xmltree.A("type", "application/vnd.vmware.admin.vmwvirtualcenter+xml")),
		xmltree.T("vmext:MoRef", "resgroup-"+v.ID[:4]), xmltree.T("vmext:VimObjectType", "RESOURCE_POOL")))
}

// providerProfile is the provider's storage profile of a name.
func providerProfile(r *request, element, name string) *xmltree.Node {
	return adminRef(r, element, "pvdcStorageProfile", r.sim.ids.named("providerVdcStorageProfile", name), name)
}

// adminProfile finds the storage profile in the path for its provider.
func adminProfile(r *request) (*VDC, *StorageProfile, error) {
	if err := r.byProvider("VDC_STORAGE_PROFILE_VIEW"); err != nil {
		return nil, nil, err
	}
	_, vdc, p := r.sim.store.profile(bare(r.vars["id"]))
	if p == nil {
		return nil, nil, forbidden("VDC_STORAGE_PROFILE_VIEW", r.vars["id"])
	}
	return vdc, p, nil
}

func getAdminProfile(r *request) (*response, error) {
	vdc, p, err := adminProfile(r)
	if err != nil {
		return nil, err
	}
	n := xmltree.New("AdminVdcStorageProfile", namespaces(), xmltree.A("name", p.Name),
		xmltree.A("id", URN("vdcstorageProfile", p.ID)),
		xmltree.A("href", r.base()+"/api/admin/vdcStorageProfile/"+p.ID),
		xmltree.A("type", "application/vnd.vmware.admin.vdcStorageProfile+xml"))
	n.Add(r.link("up", "/api/admin/vdc/"+vdc.ID, "application/vnd.vmware.admin.vdc+xml"))
	profileContent(r, n, p)
	n.Add(providerProfile(r, "ProviderVdcStorageProfile", p.Name))
	return xmlOK(n), nil
}

// putAdminProfile changes limit, whether the profile can be used, and which is the default. A VDC always has a default.
func putAdminProfile(r *request, vdc *VDC, p *StorageProfile) (*response, error) {
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	if err := r.sim.tasks.checkIdle(vdc.ID); err != nil {
		return nil, err
	}
	if err := vdc.changeProfile(p, tree); err != nil {
		return nil, err
	}
	return getAdminProfile(r)
}

func (v *VDC) changeProfile(p *StorageProfile, tree *xmltree.Node) error {
	limit, ok := tree.Int("Limit")
	enabled := tree.Str("Enabled") != "false"
	first := tree.Bool("Default")
	switch {
	case !ok || limit < 0:
		return badRequest("A storage profile needs a limit, which may be 0.")
	case p.Default && (!first || !enabled):
		return badRequest("The storage profile %q is the default of VDC %q: make another the default first.", p.Name,
			v.Name)
	case first && !enabled:
		return badRequest("The storage profile %q cannot be the default while it is disabled.", p.Name)
	}
	if first {
		for i := range v.StorageProfiles {
			v.StorageProfiles[i].Default = false
		}
	}
	p.LimitMiB = limit * max(units[tree.Str("Units")], 1)
	p.Disabled = !enabled
	p.Default = first
	return nil
}

// changeProfiles adds a storage profile of the provider to a VDC, or removes one.
func changeProfiles(r *request) (*response, error) {
	_, v, tree, err := vdcToChange(r, "VDC_UPDATE_STORAGE_PROFILES")
	if err != nil {
		return nil, err
	}
	if err := r.sim.tasks.checkIdle(v.ID); err != nil {
		return nil, err
	}
	for _, x := range tree.All("AddStorageProfile") {
		if err := addProfile(r, v, x); err != nil {
			return nil, err
		}
	}
	for _, x := range tree.All("RemoveStorageProfile") {
		if err := removeProfile(r, v, bare(x.Attr("href"))); err != nil {
			return nil, err
		}
	}
	return r.start(Work{Op: opDone}, v.entity(), []string{v.ID}), nil
}

func addProfile(r *request, v *VDC, tree *xmltree.Node) error {
	p, found := readProfileParams(r, tree)
	if !found {
		return forbidden("PROVIDER_VDC_STORAGE_PROFILE_VIEW", bare(tree.At("ProviderVdcStorageProfile").Attr("href")))
	}
	if slices.ContainsFunc(v.StorageProfiles, func(x StorageProfile) bool { return x.Name == p.Name }) {
		return duplicateName(p.Name)
	}
	if p.Default {
		for i := range v.StorageProfiles {
			v.StorageProfiles[i].Default = false
		}
	}
	v.StorageProfiles = append(v.StorageProfiles, p)
	return nil
}

// readProfileParams reads what a VDC is to have of its provider's storage.
func readProfileParams(r *request, tree *xmltree.Node) (StorageProfile, bool) {
	for _, name := range providerProfiles(r.sim) {
		if r.sim.ids.named("providerVdcStorageProfile",
			name) == bare(tree.At("ProviderVdcStorageProfile").Attr("href")) {
			limit, _ := tree.Int("Limit")
			return StorageProfile{
				ID:       r.sim.ids.next("vdcstorageProfile"),
				Name:     name,
				Default:  tree.Bool("Default"),
				Disabled: tree.Str("Enabled") == "false",
				LimitMiB: limit * max(units[tree.Str("Units")], 1),
			}, true
		}
	}
	return StorageProfile{}, false
}

// removeProfile takes a storage profile from a VDC that is neither enabled nor used nor the default.
func removeProfile(r *request, v *VDC, id string) error {
	i := slices.IndexFunc(v.StorageProfiles, func(x StorageProfile) bool { return x.ID == id })
	if i < 0 {
		return forbidden("VDC_STORAGE_PROFILE_VIEW", id)
	}
	p := &v.StorageProfiles[i]
	switch {
	case p.Default:
		return badRequest("The storage profile %q is the default of VDC %q.", p.Name, v.Name)
	case !p.Disabled:
		return badRequest("The storage profile %q is enabled: disable it first.", p.Name)
	case r.sim.store.storageUsed(id) > 0:
		return inUse("storage profile", p.Name, "disks")
	}
	v.StorageProfiles = slices.Delete(slices.Clone(v.StorageProfiles), i, i+1)
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const (
	defaultCPUSpeed     = 1000
	defaultNetworkQuota = 1000
)

func vdcCapacityRoutes(add api.AddRoute) {
	add("GET", "/api/admin/vdcStorageProfile/{id}", getAdminProfile, cloud.LatencyLegacy)
	add("PUT", "/api/admin/vdcStorageProfile/{id}", api.With2(adminProfile, putAdminProfile), cloud.LatencyWrite)
	add("POST", "/api/admin/vdc/{id}/vdcStorageProfiles", changeProfiles, cloud.LatencyWrite)
}

func cpuSpeed(c *store.Compute) int64 {
	if c.CPUSpeed == 0 {
		return defaultCPUSpeed
	}
	return c.CPUSpeed
}

func networkQuota(c *store.Compute) int {
	if c.NetworkQuota == nil {
		return defaultNetworkQuota
	}
	return *c.NetworkQuota
}

// units maps units of CPU and memory to their number of MHz or MB.
var units = map[string]int64{"GHz": 1000, "GB": 1024}

// readVDCCompute applies the compute capacity in a document. Fields that it omits keep their values.
func readVDCCompute(c *store.Compute, tree *xmltree.Node) {
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
	readShares(c, tree)
	speed := cpuSpeed(c)
	for _, name := range []string{"VCpuInMhz", "VCpuInMhz2"} { // clients change only one of the two
		if v, ok := tree.Int(name); ok && v != speed {
			c.CPUSpeed = v
		}
	}
	if v, ok := tree.Int("NetworkQuota"); ok {
		quota := int(v)
		c.NetworkQuota = &quota
	}
}

// readShares reads the guaranteed shares, and the settings that account for memory and disks.
func readShares(c *store.Compute, tree *xmltree.Node) {
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

// ReadVDC applies a VDC document except for its name, description and storage. Fields that it omits keep their values.
func ReadVDC(v *store.VDC, tree *xmltree.Node) {
	readVDCCompute(&v.Compute, tree)
	if quota, ok := tree.Int("VmQuota"); ok {
		v.VMQuota = int(quota)
	}
	if quota, ok := tree.Int("NicQuota"); ok {
		v.NICQuota = int(quota)
	}
	if tree.At("VmDiscoveryEnabled") != nil {
		v.DiscoversVMs = tree.Bool("VmDiscoveryEnabled")
	}
	if fast := tree.Str("UsesFastProvisioning"); fast != "" {
		v.FullClones = fast == "false"
	}
	if enabled := tree.Str("IsEnabled"); enabled != "" {
		v.Disabled = enabled == "false"
	}
}

// ReadDefaultPolicy reads the default sizing policy of a VDC, which applies to VMs that do not request one. A document
// without it changes nothing.
func ReadDefaultPolicy(st *store.Store, v *store.VDC, tree *xmltree.Node) error {
	id := store.Bare(tree.At("DefaultComputePolicy").Attr("href"))
	if id == "" {
		return nil
	}
	p := st.Policy(id)
	if p == nil || p.Placement || !slices.Contains(v.Policies, p.Name) {
		return store.BadRequest("The compute policy %q cannot be the default of VDC %q.", id, v.Name)
	}
	v.DefaultPolicy = id
	return nil
}

// MayUseVDC refuses to create or start anything in a disabled VDC. Running VMs are not affected.
func MayUseVDC(v *store.VDC) error {
	if v.Disabled {
		return store.BadRequest("The VDC %q is disabled.", v.Name)
	}
	return nil
}

// MayStart refuses work that powers on VMs in a disabled VDC.
func MayStart(st *store.Store, vdcID string, w store.Work) error {
	v, err := VDCByID(st, vdcID)
	if err != nil || w.Op != cloud.OpDeploy || w.Power != store.PoweredOn {
		return err
	}
	return MayUseVDC(v)
}

func capacity(name, unit string, allocated, limit int64) *xmltree.Node {
	T := xmltree.T
	return xmltree.New(name, T("Units", unit), T("Allocated", allocated), T("Limit", limit), T("Reserved", 0),
		T("Used", 0), T("Overhead", 0))
}

func computeNode(c *store.Compute) *xmltree.Node {
	return xmltree.New("ComputeCapacity", capacity("Cpu", "MHz", c.CPUAllocated, c.CPULimit),
		capacity("Memory", "MB", c.MemoryAllocated, c.MemoryLimit))
}

// resourcePools returns the resource pools of a VDC. It returns nil unless the caller is a provider.
func resourcePools(r *api.Request, v *store.VDC) *xmltree.Node {
	if !r.Session.Provider() {
		return nil
	}
	server := r.Cloud.IDs.Named("vimserver", CenterName)
	return xmltree.New("ResourcePoolRefs", xmltree.New("vmext:VimObjectRef",
		xmltree.New("vmext:VimServerRef", xmltree.A("href", r.Site.Base()+"/api/admin/extension/vimServer/"+server),
			xmltree.A("type", "application/vnd.vmware.admin.vmwvirtualcenter+xml")),
		xmltree.T("vmext:MoRef", "resgroup-"+v.ID[:4]), xmltree.T("vmext:VimObjectType", "RESOURCE_POOL")))
}

// providerProfile returns a reference to the provider's storage profile with the given name.
func providerProfile(site wire.Site, source *ids.Source, element, name string) *xmltree.Node {
	return api.AdminRef(site, element, "pvdcStorageProfile", source.Named("providerVdcStorageProfile", name), name)
}

// adminProfile returns the storage profile in the path and its VDC. It refuses callers other than providers.
func adminProfile(r *api.Request) (*store.VDC, *store.StorageProfile, error) {
	if err := r.ByProvider("VDC_STORAGE_PROFILE_VIEW"); err != nil {
		return nil, nil, err
	}
	_, vdc, p := r.Cloud.Store.Profile(store.Bare(r.Vars["id"]))
	if p == nil {
		return nil, nil, store.Forbidden("VDC_STORAGE_PROFILE_VIEW", r.Vars["id"])
	}
	return vdc, p, nil
}

func getAdminProfile(r *api.Request) (*api.Response, error) {
	vdc, p, err := adminProfile(r)
	if err != nil {
		return nil, err
	}
	n := xmltree.New("AdminVdcStorageProfile", wire.Namespaces(), xmltree.A("name", p.Name),
		xmltree.A("id", store.URN("vdcstorageProfile", p.ID)),
		xmltree.A("href", r.Site.Base()+"/api/admin/vdcStorageProfile/"+p.ID),
		xmltree.A("type", "application/vnd.vmware.admin.vdcStorageProfile+xml"))
	n.Add(r.Site.Link("up", "/api/admin/vdc/"+vdc.ID, "application/vnd.vmware.admin.vdc+xml"))
	addProfileContent(r.Cloud.Store, n, p)
	n.Add(providerProfile(r.Site, r.Cloud.IDs, "ProviderVdcStorageProfile", p.Name))
	return api.XML(n), nil
}

// putAdminProfile changes the limit of a profile, whether it is enabled, and whether it is the default. A VDC always
// has a default.
func putAdminProfile(r *api.Request, vdc *store.VDC, p *store.StorageProfile) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(vdc.ID); err != nil {
		return nil, err
	}
	if err := changeProfile(vdc, p, tree); err != nil {
		return nil, err
	}
	return getAdminProfile(r)
}

func changeProfile(v *store.VDC, p *store.StorageProfile, tree *xmltree.Node) error {
	limit, ok := tree.Int("Limit")
	enabled := tree.Str("Enabled") != "false"
	makeDefault := tree.Bool("Default")
	switch {
	case !ok || limit < 0:
		return store.BadRequest("A storage profile needs a limit, which may be 0.")
	case p.Default && (!makeDefault || !enabled):
		return store.BadRequest("The storage profile %q is the default of VDC %q: make another the default first.", p.Name,
			v.Name)
	case makeDefault && !enabled:
		return store.BadRequest("The storage profile %q cannot be the default while it is disabled.", p.Name)
	}
	if makeDefault {
		for i := range v.StorageProfiles {
			v.StorageProfiles[i].Default = false
		}
	}
	p.LimitMiB = limit * max(units[tree.Str("Units")], 1)
	p.Disabled = !enabled
	p.Default = makeDefault
	readIOPS(&p.IOPS, tree.At("IopsSettings"))
	return nil
}

// readIOPS reads the IOPS limits. Limits that the element omits keep their values.
func readIOPS(s *store.IOPS, n *xmltree.Node) {
	if n.At("Enabled") != nil {
		s.Enabled = n.Bool("Enabled")
	}
	for name, into := range map[string]*int64{
		"DiskIopsMax":             &s.DiskMax,
		"DiskIopsDefault":         &s.DiskDefault,
		"DiskIopsPerGbMax":        &s.PerGB,
		"StorageProfileIopsLimit": &s.Limit,
	} {
		if v, ok := n.Int(name); ok {
			*into = v
		}
	}
}

// changeProfiles adds storage profiles of the provider to a VDC, or removes profiles from it.
func changeProfiles(r *api.Request) (*api.Response, error) {
	_, v, tree, err := VDCToChange(r, "VDC_UPDATE_STORAGE_PROFILES")
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(v.ID); err != nil {
		return nil, err
	}
	for _, x := range tree.All("AddStorageProfile") {
		if err := addProfile(r, v, x); err != nil {
			return nil, err
		}
	}
	for _, x := range tree.All("RemoveStorageProfile") {
		if err := removeProfile(r.Cloud.Store, v, store.Bare(x.Attr("href"))); err != nil {
			return nil, err
		}
	}
	return r.Start(store.Work{Op: cloud.OpDone}, v.Entity(), []string{v.ID}), nil
}

func addProfile(r *api.Request, v *store.VDC, tree *xmltree.Node) error {
	p, found := ReadProfileParams(r.Cloud, tree)
	if !found {
		return store.Forbidden("PROVIDER_VDC_STORAGE_PROFILE_VIEW", store.Bare(tree.At("ProviderVdcStorageProfile").Attr("href")))
	}
	if slices.ContainsFunc(v.StorageProfiles, func(x store.StorageProfile) bool { return x.Name == p.Name }) {
		return store.DuplicateName(p.Name)
	}
	if p.Default {
		for i := range v.StorageProfiles {
			v.StorageProfiles[i].Default = false
		}
	}
	v.StorageProfiles = append(v.StorageProfiles, p)
	return nil
}

// ReadProfileParams reads a new storage profile of a VDC. It returns false if the provider does not have the profile.
func ReadProfileParams(s *cloud.Cloud, tree *xmltree.Node) (store.StorageProfile, bool) {
	for _, name := range ProviderProfiles(s) {
		if s.IDs.Named("providerVdcStorageProfile",
			name) == store.Bare(tree.At("ProviderVdcStorageProfile").Attr("href")) {
			limit, _ := tree.Int("Limit")
			return store.StorageProfile{
				ID:       s.IDs.Next("vdcstorageProfile"),
				Name:     name,
				Default:  tree.Bool("Default"),
				Disabled: tree.Str("Enabled") == "false",
				LimitMiB: limit * max(units[tree.Str("Units")], 1),
			}, true
		}
	}
	return store.StorageProfile{}, false
}

// removeProfile removes a storage profile from a VDC. The profile must be disabled and unused, and must not be the
// default.
func removeProfile(st *store.Store, v *store.VDC, id string) error {
	i := slices.IndexFunc(v.StorageProfiles, func(x store.StorageProfile) bool { return x.ID == id })
	if i < 0 {
		return store.Forbidden("VDC_STORAGE_PROFILE_VIEW", id)
	}
	p := &v.StorageProfiles[i]
	switch {
	case p.Default:
		return store.BadRequest("The storage profile %q is the default of VDC %q.", p.Name, v.Name)
	case !p.Disabled:
		return store.BadRequest("The storage profile %q is enabled: disable it first.", p.Name)
	case st.StorageUsed(id) > 0:
		return documents.InUse("storage profile", p.Name, "disks")
	}
	v.StorageProfiles = slices.Delete(slices.Clone(v.StorageProfiles), i, i+1)
	return nil
}

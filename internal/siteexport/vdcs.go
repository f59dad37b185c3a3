// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"net/url"
	"slices"
	"strconv"
)

// A wireVDC is a VDC in the XML API. The administrator's document has additional elements.
type wireVDC struct {
	AllocationModel string `xml:"AllocationModel"`
	CPU             struct {
		Allocated int64 `xml:"Allocated"`
		Limit     int64 `xml:"Limit"`
	} `xml:"ComputeCapacity>Cpu"`
	Memory struct {
		Allocated int64 `xml:"Allocated"`
		Limit     int64 `xml:"Limit"`
	} `xml:"ComputeCapacity>Memory"`
	NICQuota      int   `xml:"NicQuota"`
	NetworkQuota  *int  `xml:"NetworkQuota"`
	VMQuota       int   `xml:"VmQuota"`
	IsEnabled     *bool `xml:"IsEnabled"`
	CPUSpeed      int64 `xml:"VCpuInMhz2"`
	DefaultPolicy struct {
		ID string `xml:"id,attr"`
	} `xml:"DefaultComputePolicy"`

	MemoryGuaranteed  float64 `xml:"ResourceGuaranteedMemory"`
	CPUGuaranteed     float64 `xml:"ResourceGuaranteedCpu"`
	Thin              *bool   `xml:"IsThinProvision"`
	FastProvisioning  *bool   `xml:"UsesFastProvisioning"`
	OverCommitAllowed *bool   `xml:"OverCommitAllowed"`
	Elastic           bool    `xml:"IsElastic"`
	MemoryOverhead    *bool   `xml:"IncludeMemoryOverhead"`
}

// readVDCs reads the VDCs of the organization, without their networks and gateways.
func (r *reader) readVDCs(ctx context.Context, names *aliases) ([]VDC, []Policy, error) {
	records, err := r.readQuery(ctx, "VDCs", "orgVdc")
	if err != nil {
		return nil, nil, r.noteIfHidden("VDCs", err)
	}
	policies := &policyReader{reader: r, names: names}
	var vdcs []VDC
	for _, x := range records {
		id := uuidOf(x.of("href"))
		vdc, defaultPolicy, err := r.readVDC(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		vdc.Name = names.assign("vdc", id)
		if x.of("isFastProvisioned") == "false" {
			vdc.FullClones = true
		}
		if vdc.Policies, err = policies.of(ctx, id, defaultPolicy); err != nil {
			return nil, nil, err
		}
		vdcs = append(vdcs, vdc)
	}
	return vdcs, policies.all, r.addStorage(ctx, names, vdcs)
}

// readVDC reads the quotas of a VDC, its share of hardware, and the ID of its default policy.
func (r *reader) readVDC(ctx context.Context, id string) (VDC, string, error) {
	var shown wireVDC
	if err := r.noteIfHidden("quotas of VDCs", r.readXML(ctx, "/api/vdc/"+id, nil, &shown)); err != nil {
		return VDC{}, "", err
	}
	administered := shown
	err := r.noteIfHidden("guarantees and provisioning of VDCs", r.readXML(ctx, "/api/admin/vdc/"+id, nil, &administered))
	if err != nil {
		return VDC{}, "", err
	}
	isFalse := func(b *bool) bool { return b != nil && !*b }
	vdc := VDC{
		Disabled:        isFalse(shown.IsEnabled),
		AllocationModel: oneOf(shown.AllocationModel, "Flex", "AllocationVApp", "AllocationPool", "ReservationPool"),
		FullClones:      isFalse(administered.FastProvisioning),
		VMQuota:         shown.VMQuota,
		NICQuota:        shown.NICQuota,
		Compute: Compute{
			CPUAllocated:     shown.CPU.Allocated,
			CPULimit:         shown.CPU.Limit,
			MemoryAllocated:  shown.Memory.Allocated,
			MemoryLimit:      shown.Memory.Limit,
			CPUGuaranteed:    administered.CPUGuaranteed,
			MemoryGuaranteed: administered.MemoryGuaranteed,
			CPUSpeed:         shown.CPUSpeed,
			NetworkQuota:     shown.NetworkQuota,
			ThickDisks:       isFalse(administered.Thin),
			NoOvercommit:     isFalse(administered.OverCommitAllowed),
			Elastic:          administered.Elastic,
			NoMemoryOverhead: isFalse(administered.MemoryOverhead),
		},
	}
	return vdc, shown.DefaultPolicy.ID, nil
}

// addStorage adds the storage policies to their VDCs.
func (r *reader) addStorage(ctx context.Context, names *aliases, vdcs []VDC) error {
	records, err := r.readQuery(ctx, "storage policies", "orgVdcStorageProfile")
	if err != nil {
		return r.noteIfHidden("storage policies", err)
	}
	byName := map[string]alias{} // a policy has the same name in each VDC
	for _, x := range records {
		i := slices.IndexFunc(vdcs, func(v VDC) bool { return v.Name == names.of(uuidOf(x.of("vdc"))) })
		if i < 0 {
			continue
		}
		if byName[x.of("name")] == "" {
			byName[x.of("name")] = names.assign("storage", x.of("href"))
		}
		limit, _ := strconv.ParseInt(x.of("storageLimitMB"), 10, 64)
		vdcs[i].StorageProfiles = append(vdcs[i].StorageProfiles, StorageProfile{
			Name:     byName[x.of("name")],
			Default:  x.of("isDefaultStorageProfile") == "true",
			Disabled: x.of("isEnabled") == "false",
			LimitMiB: limit,
		})
	}
	return nil
}

// A policyReader reads the policies of VDCs and collects them without duplicates.
type policyReader struct {
	reader *reader
	names  *aliases
	all    []Policy
}

type wirePolicy struct {
	ref

	SizingOnly *bool  `json:"isSizingOnly"`
	CPUs       *int64 `json:"cpuCount"`
	Memory     *int64 `json:"memory"`
}

// of returns the policies of a VDC. The default policy comes first, because the simulator uses the first sizing policy
// as the default.
func (p *policyReader) of(ctx context.Context, vdc, defaultPolicy string) ([]alias, error) {
	found, err := readList[wirePolicy](ctx, p.reader, "policies",
		"/cloudapi/2.0.0/vdcs/urn:vcloud:vdc:"+vdc+"/computePolicies", url.Values{"sortAsc": {"name"}})
	if err != nil {
		return []alias{systemDefault}, p.reader.noteIfHidden("sizing and placement policies", err)
	}
	var names []alias
	for _, x := range inOrder(found, func(x wirePolicy) string { return x.Name }) {
		name := p.add(x)
		if uuidOf(x.ID) == uuidOf(defaultPolicy) {
			names = slices.Insert(names, 0, name)
		} else {
			names = append(names, name)
		}
	}
	return names, nil
}

// add returns the alias of a policy. It adds the policy if it is new.
func (p *policyReader) add(x wirePolicy) alias {
	if name := p.names.of(x.ID); name != "" {
		return name
	}
	policy := Policy{Placement: x.SizingOnly != nil && !*x.SizingOnly}
	if x.CPUs != nil {
		policy.CPUs = *x.CPUs
	}
	if x.Memory != nil {
		policy.MemoryMiB = *x.Memory
	}
	if x.Name == systemDefault {
		policy.Name = systemDefault
		p.names.byID[x.ID] = systemDefault
	} else {
		policy.Name = p.names.assign("policy", x.ID)
	}
	p.all = append(p.all, policy)
	return policy.Name
}

type wireGroup struct {
	ref

	Firewall bool `json:"dfwEnabled"`
	Members  []struct {
		VDC ref `json:"vdcRef"`
	} `json:"participatingOrgVdcs"`
}

// readGroups reads the data center groups of the organization.
func (r *reader) readGroups(ctx context.Context, names *aliases) ([]Group, error) {
	found, err := readList[wireGroup](ctx, r, "data center groups", "/cloudapi/1.0.0/vdcGroups", url.Values{"sortAsc": {"name"}})
	if err != nil {
		return nil, r.noteIfHidden("data center groups", err)
	}
	var groups []Group
	for _, x := range inOrder(found, func(x wireGroup) string { return x.Name }) {
		group := Group{Firewall: x.Firewall}
		for _, member := range x.Members {
			if vdc := names.of(uuidOf(member.VDC.ID)); vdc != "" {
				group.VDCs = append(group.VDCs, vdc)
			}
		}
		if len(group.VDCs) == 0 {
			continue
		}
		slices.SortFunc(group.VDCs, func(x, y alias) int { return compareNatural(string(x), string(y)) })
		group.Name = names.assign("group", uuidOf(x.ID))
		groups = append(groups, group)
	}
	return groups, nil
}

// A home is the place in the file of the edge gateways and networks of a VDC or a data center group.
type home struct {
	vdc   int   // index of the VDC
	group alias // empty if they belong to the VDC itself
}

// homes returns a function that finds the home for the objects of an owner. It returns found=false if the owner is not
// in the file.
func homes(names *aliases, vdcs []VDC, groups []Group) func(owner string) (_ home, found bool) {
	indexOf := func(name alias) int { return slices.IndexFunc(vdcs, func(v VDC) bool { return v.Name == name }) }
	return func(owner string) (home, bool) {
		name := names.of(uuidOf(owner))
		for _, group := range groups {
			if name != "" && group.Name == name {
				return home{vdc: indexOf(group.VDCs[0]), group: name}, true
			}
		}
		i := indexOf(name)
		return home{vdc: i}, i >= 0
	}
}

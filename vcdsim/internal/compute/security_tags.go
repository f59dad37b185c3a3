// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"maps"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Limits of security tags.
const (
	maxSecurityTag  = 128 // characters
	maxSecurityTags = 256 // per VM
)

func securityTagRoutes(add api.AddRoute) {
	const base = "/cloudapi/1.0.0/securityTags"
	add("GET", base+"/values", listSecurityTags, cloud.LatencyCloudAPI)
	add("GET", base+"/entities", listTaggedVMs, cloud.LatencyCloudAPI)
	add("PUT", base+"/tag", putSecurityTag, cloud.LatencyWrite)
	add("GET", base+"/vm/{vm}", getVMTags, cloud.LatencyCloudAPI)
	add("PUT", base+"/vm/{vm}", putVMTags, cloud.LatencyWrite)
}

// taggedVMs returns the VMs with security tags in the organization of the request.
func taggedVMs(r *api.Request) []*store.VM {
	var out []*store.VM
	viewer := access.ViewerOf(r)
	for _, placed := range r.Cloud.Store.Order {
		visible := placed.VApp.OrgID == r.Tenant() && viewer.Sees(placed.VApp)
		if visible && len(placed.VM.SecurityTags) > 0 {
			out = append(out, placed.VM)
		}
	}
	return out
}

func listSecurityTags(r *api.Request) (*api.Response, error) {
	tags := map[string]bool{}
	for _, vm := range taggedVMs(r) {
		for _, tag := range vm.SecurityTags {
			tags[tag] = true
		}
	}
	var out []any
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, map[string]any{"tag": tag})
	}
	return r.Page(out)
}

// listTaggedVMs lists the VMs that have a security tag, or those that match the filter.
func listTaggedVMs(r *api.Request) (*api.Response, error) {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return nil, store.BadRequest("The filter %q is invalid: %s", r.Query.Get("filter"), err)
	}
	matches := fiql.Compile(filter, tagTest)
	var out []any
	for _, vm := range taggedVMs(r) {
		if !matches(vm) {
			continue
		}
		v := r.Cloud.Store.VApps[vm.VAppID]
		out = append(out, map[string]any{
			"id":         store.URN("vm", vm.ID),
			"name":       vm.Name,
			"entityType": "vm",
			"parentRef":  api.Ref("vapp", v.ID, v.Name),
			"ownerRef":   api.Ref("vdc", v.VDCID, r.Cloud.Store.VDCName(v.VDCID)),
		})
	}
	return r.PageIgnoring(out, []string{"tag"})
}

// tagTest returns a function that reports whether a tag of a VM satisfies a term.
func tagTest(t fiql.Term) func(*store.VM) bool {
	holds := t.Test()
	return func(vm *store.VM) bool { return t.Attr != "tag" || slices.ContainsFunc(vm.SecurityTags, holds) }
}

func readTag(tag string) (string, error) {
	if tag == "" || len([]rune(tag)) > maxSecurityTag {
		return "", store.BadRequest("The security tag %q is invalid: it must have 1 to %d characters.", tag, maxSecurityTag)
	}
	return strings.ToLower(tag), nil
}

// putSecurityTag sets a tag on the listed VMs and removes it from all other VMs of the organization.
func putSecurityTag(r *api.Request) (*api.Response, error) {
	var in struct {
		Tag      string   `json:"tag"`
		Entities []string `json:"entities"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	tag, err := readTag(in.Tag)
	if err != nil {
		return nil, err
	}
	var wanted []*store.VM
	for _, id := range in.Entities {
		vm, err := vmByID(r, store.Bare(id))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(vm.SecurityTags, tag) && len(vm.SecurityTags) >= maxSecurityTags {
			return nil, store.BadRequest("The VM %q cannot have more than %d security tags.", vm.Name, maxSecurityTags)
		}
		wanted = append(wanted, vm)
	}
	for _, vm := range taggedVMs(r) {
		vm.SecurityTags = slices.DeleteFunc(slices.Clone(vm.SecurityTags), func(t string) bool { return t == tag })
	}
	for _, vm := range wanted {
		vm.Tag(append(slices.Clone(vm.SecurityTags), tag))
	}
	return api.NoContent(), nil
}

func getVMTags(r *api.Request) (*api.Response, error) {
	vm, err := vmByID(r, store.Bare(r.Vars["vm"]))
	if err != nil {
		return nil, err
	}
	return api.JSON(map[string]any{"tags": append([]string{}, vm.SecurityTags...)}), nil
}

// putVMTags replaces the tags of a VM.
func putVMTags(r *api.Request) (*api.Response, error) {
	vm, err := vmByID(r, store.Bare(r.Vars["vm"]))
	if err != nil {
		return nil, err
	}
	var in struct {
		Tags []string `json:"tags"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	if len(in.Tags) > maxSecurityTags {
		return nil, store.BadRequest("The VM %q cannot have more than %d security tags.", vm.Name, maxSecurityTags)
	}
	var tags []string
	for _, text := range in.Tags {
		tag, err := readTag(text)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	vm.Tag(tags)
	return getVMTags(r)
}

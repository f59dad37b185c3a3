// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// descriptorFile is the name of the OVF descriptor in a transfer.
const descriptorFile = "descriptor.ovf"

func templateRoutes(add api.AddRoute) {
	add("PUT", "/api/vAppTemplate/vappTemplate-{id}", api.With2(idleTemplate, putTemplate), cloud.LatencyWrite)
	add("PUT", "/api/vAppTemplate/vappTemplate-{id}/leaseSettingsSection", api.With2(idleTemplate, putTemplateLease),
		cloud.LatencyWrite)
	add("DELETE", "/api/vAppTemplate/vappTemplate-{id}", api.With2(idleTemplate, deleteTemplate), cloud.LatencyWrite)
	add("POST", "/api/catalog/{id}/action/captureVApp", api.With(OwnCatalog, captureVApp), cloud.LatencyWrite)
	add("POST", "/api/vdc/{id}/action/cloneVApp", api.With2(vdcs.OwnVDC, cloneVApp), cloud.LatencyWrite)
}

// uploadTemplate creates a template. The client first uploads the descriptor, which lists the other files. If the
// request has a source address, the descriptor and the files come from there.
func uploadTemplate(r *api.Request, sh store.OrgCatalog, tree *xmltree.Node) (*api.Response, error) {
	if source := tree.Attr("sourceHref"); source != "" {
		return importTemplate(r, sh, tree, source)
	}
	t := newTemplate(r.Cloud, tree)
	t.Upload = newUpload(r, t.Entity(), store.UploadFile{Name: descriptorFile, Size: -1}).ID
	sh.Catalog.Templates = append(sh.Catalog.Templates, t)
	return createdItem(r, t.ItemID)
}

// importTemplate creates a template from the descriptor at an address. The simulator opens no connections, so the
// address must be a download link of this site. The files that the descriptor lists are assumed to exist.
func importTemplate(r *api.Request, sh store.OrgCatalog, tree *xmltree.Node, source string) (*api.Response, error) {
	descriptor, found := downloadAt(r, source)
	if !found {
		return nil, store.BadRequest("The source %q cannot be reached.", source)
	}
	if _, err := readDescriptor(descriptor.Content); err != nil {
		return nil, err
	}
	t := newTemplate(r.Cloud, tree)
	u := newUpload(r, t.Entity(), store.UploadFile{
		Name:     descriptorFile,
		Size:     descriptor.Size,
		Received: descriptor.Size,
		Content:  descriptor.Content,
	})
	t.Upload = u.ID
	if err := addReferencedFiles(u); err != nil {
		return nil, err
	}
	for i := range u.Files {
		u.Files[i].Size = max(u.Files[i].Size, 0)
		u.Files[i].Received = u.Files[i].Size
	}
	sh.Catalog.Templates = append(sh.Catalog.Templates, t)
	finishUpload(r.Cloud, u)
	return createdItem(r, t.ItemID)
}

// downloadAt returns the file at a download link of this site.
func downloadAt(r *api.Request, address string) (*store.UploadFile, bool) {
	path, own := strings.CutPrefix(address, r.Site.Base()+"/transfer/")
	id, name, _ := strings.Cut(path, "/")
	u := r.Cloud.Store.Uploads[id]
	if !own || u == nil || !u.Download {
		return nil, false
	}
	i := slices.IndexFunc(u.Files, func(f store.UploadFile) bool { return f.Name == name && int64(len(f.Content)) == f.Size })
	if i < 0 {
		return nil, false
	}
	return &u.Files[i], true
}

func newTemplate(c *cloud.Cloud, tree *xmltree.Node) store.Template {
	return store.Template{
		ID:          c.IDs.Next("vapptemplate"),
		ItemID:      c.IDs.Next("catalogitem"),
		Created:     c.Clock.Now(),
		Name:        tree.Attr("name"),
		Description: tree.Str("Description"),
	}
}

// addReferencedFiles adds the files that an uploaded descriptor lists to its transfer. It is a no-op until the
// descriptor is complete.
func addReferencedFiles(u *store.Upload) error {
	if u.Entity.Kind != "vapptemplate" || len(u.Files) > 1 || !fileReceived(&u.Files[0]) {
		return nil
	}
	ovf, err := readDescriptor(u.Files[0].Content)
	if err != nil {
		return err
	}
	for _, f := range ovf.At("References").All("File") {
		size, err := strconv.ParseInt(f.Attr("size"), 10, 64)
		if err != nil || size < 0 {
			size = -1
		}
		u.Files = append(u.Files, store.UploadFile{Name: f.Attr("href"), Size: size})
	}
	return nil
}

// readDescriptor parses an OVF descriptor.
func readDescriptor(content []byte) (*xmltree.Node, error) {
	ovf, err := xmltree.Parse(content)
	if err != nil || ovf.Name != "Envelope" {
		return nil, store.BadRequest("The OVF descriptor is invalid.")
	}
	return ovf, nil
}

// templateVMs returns the VMs of an OVF descriptor.
func templateVMs(ovf *xmltree.Node, next func(kind string) string) []store.TemplateVM {
	capacity := map[string]int64{}
	for _, d := range ovf.At("DiskSection").All("Disk") {
		n, _ := strconv.ParseInt(d.Attr("capacity"), 10, 64) // 0 if it is not a number
		capacity[d.Attr("diskId")] = n * ovfUnit(d.Attr("capacityAllocationUnits")) >> 20
	}
	var out []store.TemplateVM
	for _, s := range append(ovf.All("VirtualSystem"), ovf.At("VirtualSystemCollection").All("VirtualSystem")...) {
		vm := store.TemplateVM{
			ID:          next("vm"),
			Name:        api.OrElse(s.Str("Name"), s.Attr("id")),
			OS:          s.At("OperatingSystemSection").Attr("osType"),
			CPUs:        1,
			ExtraConfig: valuesByKey(s.At("VirtualHardwareSection").All("ExtraConfig")),
			Properties:  valuesByKey(s.At("ProductSection").All("Property")),
		}
		for _, item := range s.At("VirtualHardwareSection").All("Item") {
			readTemplateHardware(&vm, item, capacity)
		}
		out = append(out, vm)
	}
	return out
}

// valuesByKey returns the values of elements of a descriptor by their keys.
func valuesByKey(elements []*xmltree.Node) map[string]string {
	out := map[string]string{}
	for _, e := range elements {
		if key := e.Attr("key"); key != "" {
			out[key] = e.Attr("value")
		}
	}
	return out
}

// readTemplateHardware applies a hardware item of a descriptor to vm.
func readTemplateHardware(vm *store.TemplateVM, item *xmltree.Node, capacity map[string]int64) {
	quantity, _ := item.Int("VirtualQuantity")
	switch item.Str("ResourceType") {
	case "3":
		vm.CPUs = quantity
	case "4":
		vm.MemoryMiB = quantity
	case "10":
		vm.NICs++
	case "17":
		host := item.Str("HostResource")
		vm.DisksMiB = append(vm.DisksMiB, capacity[host[strings.LastIndex(host, "/")+1:]])
	}
}

// ovfUnit returns the number of bytes of a capacity unit such as "byte * 2^20", or 1 if it cannot parse the unit.
func ovfUnit(unit string) int64 {
	_, power, found := strings.Cut(unit, "2^")
	n, err := strconv.Atoi(strings.TrimSpace(power))
	if !found || err != nil || n < 0 || n > 40 {
		return 1
	}
	return 1 << n
}

// idleTemplate returns the template in the path, or an error if the caller cannot change it or a task uses it.
func idleTemplate(r *api.Request) (store.OrgCatalog, *store.Template, error) {
	sh, t, err := ownTemplate(r)
	if err != nil {
		return store.OrgCatalog{}, nil, err
	}
	if !r.Session.Sees(sh.Org.ID) {
		return store.OrgCatalog{}, nil, store.Forbidden("VAPP_TEMPLATE_EDIT", t.ID)
	}
	return sh, t, r.Cloud.Tasks.CheckIdle(t.ID)
}

// putTemplate changes the name, the description and the golden master flag of a template.
func putTemplate(r *api.Request, sh store.OrgCatalog, t *store.Template) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if name := tree.Attr("name"); name != t.Name {
		if err := checkItemName(sh.Catalog, name); err != nil {
			return nil, err
		}
		t.Name = name
	}
	if tree.At("Description") != nil {
		t.Description = tree.Str("Description")
	}
	if g := tree.Attr("goldMaster"); g != "" {
		t.GoldMaster = g == "true"
	}
	return r.Done(t.Entity()), nil
}

func putTemplateLease(r *api.Request, sh store.OrgCatalog, t *store.Template) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if n, ok := tree.Int("StorageLeaseInSeconds"); ok {
		t.Lease = store.Duration(machines.Capped(machines.Seconds(n), time.Duration(sh.Org.Settings.TemplateLease)))
	}
	return r.Done(t.Entity()), nil
}

func deleteTemplate(r *api.Request, _ store.OrgCatalog, t *store.Template) (*api.Response, error) {
	w := store.Work{Op: cloud.OpDeleteTemplate, Document: t.ID}
	return r.Start(w, t.Entity(), []string{t.ID}), nil
}

func commitDeleteTemplate(s *cloud.Cloud, t *store.Task) error {
	removeTemplate(s, t.Work.Document)
	return nil
}

func removeTemplate(s *cloud.Cloud, id string) {
	if sh, t := s.Store.Template(id); t != nil {
		delete(s.Store.Uploads, t.Upload)
		s.Store.Forget(id)
		s.Store.Forget(t.ItemID)
		sh.Catalog.Templates = slices.DeleteFunc(slices.Clone(sh.Catalog.Templates),
			func(x store.Template) bool { return x.ID == id })
	}
}

// captureVApp creates a template from a vApp. If the request has a TargetCatalogItem, the new template replaces that
// item.
func captureVApp(r *api.Request, sh store.OrgCatalog) (*api.Response, error) {
	tree, v, err := sourceVApp(r)
	if err != nil {
		return nil, err
	}
	replaced, err := replacedTemplate(r.Cloud.Store, r.Cloud.Tasks, sh, tree)
	if err != nil {
		return nil, err
	}
	w := store.Work{Op: cloud.OpCapture, VApp: v.ID, Remove: replaced}
	if len(r.Cloud.Store.VMsOf(v.ID)) == 0 {
		return nil, store.BadRequest("The vApp %q does not contain any VMs.", v.Name)
	}
	t := newTemplate(r.Cloud, tree)
	if _, vdc := r.Cloud.Store.VDC(v.VDCID); vdc != nil {
		t.VDC = vdc.Name
	}
	for _, vm := range r.Cloud.Store.VMsOf(v.ID) {
		t.VMs = append(t.VMs, capturedVM(r.Cloud.IDs, vm))
		t.KubernetesVersion = api.OrElse(t.KubernetesVersion, vm.KubernetesVersion)
	}
	sh.Catalog.Templates = append(sh.Catalog.Templates, t)
	w.Document = t.ID
	return r.Start(w, t.Entity(), append(machines.VAppsOf(r.Cloud).Locks(v), t.ID)), nil
}

// replacedTemplate returns the ID of the template that a capture replaces, if any.
func replacedTemplate(st *store.Store, ts *cloud.Tasks, sh store.OrgCatalog, tree *xmltree.Node) ([]string, error) {
	target := tree.At("TargetCatalogItem")
	if target == nil {
		return nil, checkItemName(sh.Catalog, tree.Attr("name"))
	}
	i, found := st.Item(store.Bare(target.Attr("href")))
	if !found || i.Catalog.ID != sh.Catalog.ID || i.Of.Kind != "vapptemplate" {
		return nil, store.Forbidden("CATALOG_ITEM_VIEW", store.Bare(target.Attr("href")))
	}
	return []string{i.Of.ID}, ts.CheckIdle(i.Of.ID)
}

// capturedVM converts a VM to a VM of a template, without its independent disks.
func capturedVM(source *ids.Source, vm *store.VM) store.TemplateVM {
	out := store.TemplateVM{
		ID:              source.Next("vm"),
		Name:            vm.Name,
		OS:              vm.OS,
		CPUs:            vm.CPUs,
		MemoryMiB:       vm.MemoryMiB,
		NICs:            len(vm.NICs),
		HardwareVersion: vm.HardwareVersion,
		ExtraConfig:     maps.Clone(vm.ExtraConfig),
		Properties:      map[string]string{},
	}
	for key, p := range vm.Properties {
		out.Properties[key] = p.Value
	}
	for _, d := range vm.Disks {
		if d.DiskID == "" {
			out.DisksMiB = append(out.DisksMiB, d.SizeMiB)
		}
	}
	return out
}

// sourceVApp reads a request to copy a vApp, which no task may use.
func sourceVApp(r *api.Request) (*xmltree.Node, *store.VApp, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, nil, err
	}
	v, err := compute.VAppByID(r, store.Bare(tree.At("Source").Attr("href")))
	if err != nil {
		return nil, nil, err
	}
	if v.Status == store.Unresolved || v.Status == store.FailedCreation {
		return nil, nil, store.BadRequest("The vApp %q is not resolved.", v.Name)
	}
	return tree, v, machines.VAppsOf(r.Cloud).CheckIdle(v)
}

func commitCapture(s *cloud.Cloud, t *store.Task) error {
	_, tpl := s.Store.Template(t.Work.Document)
	if tpl == nil {
		return cloud.Gone("vAppTemplate", t.Work.Document)
	}
	tpl.Status = int(store.PoweredOff)
	for _, id := range t.Work.Remove {
		removeTemplate(s, id)
	}
	return nil
}

func undoCapture(s *cloud.Cloud, t *store.Task) { removeTemplate(s, t.Work.Document) }

// cloneVApp copies a vApp and its VMs, with new IDs and new addresses. With IsSourceDelete, it moves the vApp.
func cloneVApp(r *api.Request, org *store.Org, vdc *store.VDC) (*api.Response, error) {
	tree, source, err := sourceVApp(r)
	if err != nil {
		return nil, err
	}
	v, err := compute.NewVApp(r, org, vdc, tree)
	if err != nil {
		return nil, err
	}
	var document string
	if tree.Bool("IsSourceDelete") {
		if r.Cloud.Store.Running(source) {
			return nil, store.BadRequest(
				"The requested operation could not be executed on vApp %q. Stop the vApp and try again.", source.Name)
		}
		document = source.ID
	}
	if len(v.Networks) == 0 {
		v.Networks = slices.Clone(source.Networks)
		for i := range v.Networks {
			v.Networks[i].ID = r.Cloud.IDs.Next("network")
		}
	}
	vms := clonedVMs(r, source, v)
	if err := compute.CheckVMQuota(r.Cloud, vdc, len(vms)); err != nil {
		return nil, err
	}
	r.Cloud.Store.VApps[v.ID] = v
	w := compute.CreationWork(cloud.OpClone, v, compute.AddVMs(r.Cloud.Store, vms), tree)
	w.Document = document
	r.StartTask(w, v.Entity(), append(machines.VAppsOf(r.Cloud).Locks(v), machines.VAppsOf(r.Cloud).Locks(source)...))
	return compute.CreatedVApp(r, v), nil
}

func clonedVMs(r *api.Request, source, v *store.VApp) []*store.VM {
	var out []*store.VM
	for _, vm := range r.Cloud.Store.VMsOf(source.ID) {
		out = append(out, compute.CopyVM(r.Cloud, vm, v))
	}
	return out
}

// commitClone completes the copy. If the request moves the vApp, it then deletes the source.
func commitClone(s *cloud.Cloud, t *store.Task) error {
	w := t.Work
	if err := machines.CommitCompose(s, t); err != nil {
		return err
	}
	if v := s.Store.VApps[w.Document]; v != nil {
		machines.VAppsOf(s).Remove(v)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func catalogRoutes(add addRoute) {
	add("GET", "/api/catalog/{id}", with(ownCatalog, getCatalog), latencyLegacy)
	add("GET", "/api/catalogItem/{id}", getCatalogItem, latencyLegacy)
	add("DELETE", "/api/catalogItem/{id}", deleteCatalogItem, latencyWrite)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}", with2(ownTemplate, getTemplate), latencyVApp)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}/owner", with2(ownTemplate, getTemplateOwner), latencyLegacy)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}/productSections", with2(ownTemplate, getTemplateProducts),
		latencyLegacy)
	add("GET", "/api/vAppTemplate/vm-{id}", getTemplateVM, latencyVM)
}

func getCatalog(r *request, sh store.OrgCatalog) (*response, error) {
	n := r.site.Entity("Catalog", "catalog", sh.Catalog.ID, sh.Catalog.Name)
	n.Add(r.site.Link("up", "/api/org/"+sh.Org.ID, wire.Mime("org")))
	catalogContent(r.site, n, sh)
	return xmlOK(n), nil
}

// catalogContent is what a catalog shows to all callers.
func catalogContent(site wire.Site, n *xmltree.Node, sh store.OrgCatalog) {
	c := sh.Catalog
	n.Add([]*xmltree.Node{
		site.Link("down", "/api/catalog/"+c.ID+"/metadata", wire.Mime("metadata")),
		site.Link("add", "/api/catalog/"+c.ID+"/catalogItems", wire.Mime("catalogitem")),
		site.Link("add", "/api/catalog/"+c.ID+"/action/upload", wire.Mime("media")),
		site.Link("add", "/api/catalog/"+c.ID+"/action/upload", wire.Mime("uploadVAppTemplateParams")),
		site.Link("add", "/api/catalog/"+c.ID+"/action/captureVApp", wire.Mime("captureVAppParams")),
		xmltree.T("Description", c.Description),
	})
	items := xmltree.New("CatalogItems")
	for _, i := range sh.Items() {
		items.Add(xmltree.New("CatalogItem", xmltree.A("href", site.Href("catalogitem", i.ID)), xmltree.A("id", i.ID),
			xmltree.A("name", i.Of.Name), xmltree.A("type", wire.Mime("catalogitem"))))
	}
	n.Add([]*xmltree.Node{
		ownerAmong(site, sh.Org.Users),
		items,
		xmltree.T("IsPublished", false),
		xmltree.T("DateCreated", c.CreatedAt()),
		xmltree.T("VersionNumber", 1),
	})
}

// ownerAmong is the Owner element, the first user of an organization.
func ownerAmong(site wire.Site, users []store.User) *xmltree.Node {
	u := store.User{Name: "system"}
	if len(users) > 0 {
		u = users[0]
	}
	return ownerNode(site, u.ID, u.Name)
}

func ownerNode(site wire.Site, id, name string) *xmltree.Node {
	return xmltree.New("Owner", xmltree.A("type", wire.Mime("owner")),
		xmltree.New("User", xmltree.A("href", site.Base()+"/api/admin/user/"+id),
			xmltree.A("name", name), xmltree.A("type", "application/vnd.vmware.admin.user+xml")))
}

func ownTemplate(r *request) (store.OrgCatalog, *store.Template, error) {
	sh, t := r.cloud.store.Template(store.Bare(r.vars["id"]))
	if t == nil || !r.reads(sh) {
		return store.OrgCatalog{}, nil, store.Forbidden("VAPP_TEMPLATE_VIEW", r.vars["id"])
	}
	return sh, t, nil
}

func getCatalogItem(r *request) (*response, error) {
	n, err := catalogItemNode(r, store.Bare(r.vars["id"]))
	if err != nil {
		return nil, err
	}
	return xmlOK(n), nil
}

func catalogItemNode(r *request, id string) (*xmltree.Node, error) {
	i, found := r.cloud.store.Item(id)
	if !found || !r.reads(i.OrgCatalog) {
		return nil, store.Forbidden("CATALOG_ITEM_VIEW", id)
	}
	path := "/api/catalogItem/" + i.ID
	n := r.site.Entity("CatalogItem", "catalogitem", i.ID, i.Of.Name, xmltree.A("size", 0))
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/catalog/"+i.Catalog.ID, wire.Mime("catalog")),
		r.site.Link("down", path+"/metadata", wire.Mime("metadata")),
		r.site.Link("edit", path, wire.Mime("catalogitem")),
		r.site.Link("remove", path, ""),
		xmltree.T("Description", i.Description),
		r.site.Ref("Entity", i.Of),
		xmltree.T("DateCreated", i.Created),
		xmltree.T("VersionNumber", 1),
	})
	return n, nil
}

// deleteCatalogItem removes an item with its template or media.
func deleteCatalogItem(r *request) (*response, error) {
	i, found := r.cloud.store.Item(store.Bare(r.vars["id"]))
	if !found || !r.session.Sees(i.Org.ID) {
		return nil, store.Forbidden("CATALOG_ITEM_VIEW", r.vars["id"])
	}
	if _, m := r.cloud.store.Media(i.Of.ID); m != nil {
		if err := removableMedia(r.cloud.store, r.cloud.tasks, m); err != nil {
			return nil, err
		}
		removeMedia(r.cloud, m.ID)
		return noContent(), nil
	}
	if err := r.cloud.tasks.checkIdle(i.Of.ID); err != nil {
		return nil, err
	}
	removeTemplate(r.cloud, i.Of.ID)
	return noContent(), nil
}

func getTemplate(r *request, sh store.OrgCatalog, t *store.Template) (*response, error) {
	vdc := sh.VDCOf(t)
	path := "/api/vAppTemplate/vappTemplate-" + t.ID
	n := r.site.Entity("VAppTemplate", "vapptemplate", t.ID, t.Name,
		xmltree.A("goldMaster", t.GoldMaster), xmltree.A("ovfDescriptorUploaded", templateDescribed(r.cloud.store, t)),
		xmltree.A("status", t.Status))
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.site.Link("catalogItem", "/api/catalogItem/"+t.ItemID, wire.Mime("catalogitem")),
		r.site.Link("remove", path, ""),
		r.site.Link("edit", path, wire.Mime("vapptemplate")),
		r.site.Link("enable", path+"/action/enableDownload", ""),
		r.site.Link("ovf", path+"/ovf", "text/xml"),
		r.site.Link("down", path+"/owner", wire.Mime("owner")),
		r.site.Link("down", path+"/metadata", wire.Mime("metadata")),
		r.site.Link("down", path+"/productSections/", wire.Mime("productSections")),
		xmltree.T("Description", t.Description),
		tasksNode(r, t.ID),
		filesNode(r, t.Upload),
		ownerAmong(r.site, sh.Org.Users),
	})
	children := xmltree.New("Children")
	for i := range t.VMs {
		children.Add(templateVMNode(r, vdc, t, &t.VMs[i], false))
	}
	n.Add([]*xmltree.Node{children, templateLease(r.site, t)})
	n.Add(xmltree.New("CustomizationSection", xmltree.A("goldMaster", false),
		section(r.site.Base()+path+"/customizationSection/", "customizationSection"),
		xmltree.T("ovf:Info", "VApp template customization section"), xmltree.T("CustomizeOnInstantiate", true)))
	n.Add(xmltree.T("DateCreated", store.Beginning()))
	return xmlOK(n), nil
}

func getTemplateOwner(r *request, sh store.OrgCatalog, t *store.Template) (*response, error) {
	n := xmltree.New("Owner", wire.Namespaces(), xmltree.A("type", wire.Mime("owner")),
		xmltree.A("href", r.site.Base()+"/api/vAppTemplate/vappTemplate-"+t.ID+"/owner"))
	n.Add(ownerAmong(r.site, sh.Org.Users).Children)
	return xmlOK(n), nil
}

// getTemplateProducts answers with no product section: those of a template are its VMs'.
func getTemplateProducts(r *request, _ store.OrgCatalog, t *store.Template) (*response, error) {
	return xmlOK(productSections(r.site, "/api/vAppTemplate/vappTemplate-"+t.ID, nil)), nil
}

func templateLease(site wire.Site, t *store.Template) *xmltree.Node {
	path := "/api/vAppTemplate/vappTemplate-" + t.ID + "/leaseSettingsSection/"
	return xmltree.New("LeaseSettingsSection", section(site.Base()+path, "leaseSettingsSection"),
		xmltree.T("ovf:Info", "Lease settings section"), site.Link("edit", path, wire.Mime("leaseSettingsSection")),
		xmltree.T("StorageLeaseInSeconds", int64(t.Lease.Seconds())))
}

// templateDescribed reports whether the descriptor of a template is there.
func templateDescribed(st *store.Store, t *store.Template) bool {
	u := st.Uploads[t.Upload]
	return u == nil || fileReceived(&u.Files[0])
}

// section are the attributes of an OVF section.
func section(href, kind string) []xmltree.Attr {
	return []xmltree.Attr{xmltree.A("href", href), xmltree.A("type", wire.Mime(kind)), xmltree.A("ovf:required", false)}
}

func getTemplateVM(r *request) (*response, error) {
	sh, t, vm := r.cloud.store.TemplateVM(store.Bare(r.vars["id"]))
	if vm == nil || !r.reads(sh) {
		return nil, store.Forbidden("VAPP_TEMPLATE_VIEW", r.vars["id"])
	}
	return xmlOK(templateVMNode(r, sh.VDCOf(t), t, vm, true)), nil
}

func templateVMNode(r *request, vdc *store.VDC, t *store.Template, vm *store.TemplateVM, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	href := r.site.Href("templatevm", vm.ID)
	n := xmltree.New("Vm")
	if root { // on its own it is a template
		n = xmltree.New("VAppTemplate", wire.Namespaces())
	}
	n.Add([]xmltree.Attr{
		A("goldMaster", false),
		A("status", int(store.PoweredOff)),
		A("name", vm.Name),
		A("id", store.URN("vm", vm.ID)),
		A("href", href),
		A("type", wire.Mime("vm")),
	})
	path := "/api/vAppTemplate/vm-" + vm.ID
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/vAppTemplate/vappTemplate-"+t.ID, wire.Mime("vapptemplate")),
		r.site.Link("storageProfile", "/api/vdcStorageProfile/"+vdc.DefaultProfile(), wire.Mime("vdcstorageProfile")),
		r.site.Link("down", path+"/metadata", wire.Mime("metadata")),
		T("Description", ""),
	})
	nics := xmltree.New("NetworkConnectionSection",
		section(href+"/networkConnectionSection/", "networkConnectionSection"),
		T("ovf:Info", "Specifies the available VM network connections"), T("PrimaryNetworkConnectionIndex", 0))
	for i := range vm.NICs {
		nics.Add(xmltree.New("NetworkConnection", A("needsCustomization", true), A("network", "VM Network"),
			T("NetworkConnectionIndex", i), T("IsConnected", true), T("MACAddress", "00:50:56:00:00:00"),
			T("IpAddressAllocationMode", "DHCP"), T("NetworkAdapterType", "VMXNET3")))
	}
	custom := xmltree.New("GuestCustomizationSection",
		section(href+"/guestCustomizationSection/", "guestCustomizationSection"),
		T("ovf:Info", "Specifies Guest OS Customization Settings"), T("Enabled", false), T("ChangeSid", false),
		T("VirtualMachineId", vm.ID), T("JoinDomainEnabled", false), T("UseOrgSettings", false),
		T("AdminPasswordEnabled", true), T("AdminPasswordAuto", true), T("ResetPasswordRequired", false),
		T("ComputerName", computerName(vm.Name)))
	n.Add([]*xmltree.Node{
		nics,
		custom,
		productSection(vm.InitialProperties()),
		specSection(r, &store.VM{
			OS:              vm.OS,
			CPUs:            vm.CPUs,
			CoresPerSocket:  1,
			MemoryMiB:       vm.MemoryMiB,
			HardwareVersion: orElse(vm.HardwareVersion, defaultHardware),
			Disks:           templateDisks(vm, vdc.DefaultProfile()),
		}),
	})
	n.Add([]*xmltree.Node{
		T("VAppScopedLocalId", r.cloud.ids.Named("local", vm.ID)),
		T("DefaultStorageProfile", r.cloud.store.ProfileName(vdc.DefaultProfile())),
		T("DateCreated", store.Beginning()),
	})
	return n
}

func templateDisks(vm *store.TemplateVM, profile string) []store.VMDisk {
	var out []store.VMDisk
	for i, size := range vm.DisksMiB {
		out = append(out, store.VMDisk{ID: diskID(i), SizeMiB: size, Unit: i, StorageProfileID: profile})
	}
	return out
}

// freeItemName refuses a name that a template or media of the catalog has.
func freeItemName(c *store.Catalog, name string) error {
	if err := checkName("catalog item", name); err != nil {
		return err
	}
	if slices.ContainsFunc(c.Media, func(m store.Media) bool { return m.Name == name }) ||
		slices.ContainsFunc(c.Templates, func(t store.Template) bool { return t.Name == name }) {
		return store.DuplicateName(name)
	}
	return nil
}

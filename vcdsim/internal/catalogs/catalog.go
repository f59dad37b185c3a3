// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"time"

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

func catalogRoutes(add api.AddRoute) {
	add("GET", "/api/catalog/{id}", api.WithSite(OwnCatalog, getCatalog), cloud.LatencyLegacy)
	for _, path := range []string{"/api/catalog/{id}", "/api/admin/catalog/{id}"} {
		add("POST", path+"/action/publish", api.With2(api.Parsed(OwnCatalog), publishCatalog), cloud.LatencyWrite)
	}
	add("GET", "/api/catalogItem/{id}", getCatalogItem, cloud.LatencyLegacy)
	add("DELETE", "/api/catalogItem/{id}", deleteCatalogItem, cloud.LatencyWrite)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}", api.With2(ownTemplate, getTemplate), cloud.LatencyVApp)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}/owner", api.With2(ownTemplate, getTemplateOwner), cloud.LatencyLegacy)
	add("GET", "/api/vAppTemplate/vappTemplate-{id}/productSections", api.With2(ownTemplate, getTemplateProducts),
		cloud.LatencyLegacy)
	add("GET", "/api/vAppTemplate/vm-{id}", getTemplateVM, cloud.LatencyVM)
}

func getCatalog(site wire.Site, sh store.OrgCatalog) (*api.Response, error) {
	n := site.Entity("Catalog", "catalog", sh.Catalog.ID, sh.Catalog.Name)
	n.Add(site.Link("up", "/api/org/"+sh.Org.ID, wire.Mime("org")))
	addCatalogContent(site, n, sh)
	return api.XML(n), nil
}

// addCatalogContent adds the part of a catalog that all callers see.
func addCatalogContent(site wire.Site, n *xmltree.Node, sh store.OrgCatalog) {
	c := sh.Catalog
	n.Add([]*xmltree.Node{
		site.Link("down", "/api/catalog/"+c.ID+"/metadata", wire.Mime("metadata")),
		site.Link("add", "/api/admin/catalog/"+c.ID+"/metadata", wire.Mime("metadata")),
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
		firstUserNode(site, sh.Org.Users),
		items,
		xmltree.T("IsPublished", c.Published),
		xmltree.T("DateCreated", c.CreatedAt()),
		xmltree.T("VersionNumber", 1),
	})
}

// firstUserNode returns an Owner element with the first user of an organization.
func firstUserNode(site wire.Site, users []store.User) *xmltree.Node {
	u := store.User{Name: "system"}
	if len(users) > 0 {
		u = users[0]
	}
	return api.OwnerNode(site, u.ID, u.Name)
}

func ownTemplate(r *api.Request) (store.OrgCatalog, *store.Template, error) {
	sh, t := r.Cloud.Store.Template(store.Bare(r.Vars["id"]))
	if t == nil || !access.Reads(r, sh) {
		return store.OrgCatalog{}, nil, store.Forbidden("VAPP_TEMPLATE_VIEW", r.Vars["id"])
	}
	return sh, t, nil
}

func getCatalogItem(r *api.Request) (*api.Response, error) {
	n, err := catalogItemNode(r, store.Bare(r.Vars["id"]))
	if err != nil {
		return nil, err
	}
	return api.XML(n), nil
}

func catalogItemNode(r *api.Request, id string) (*xmltree.Node, error) {
	i, found := r.Cloud.Store.Item(id)
	if !found || !access.Reads(r, i.OrgCatalog) {
		return nil, store.Forbidden("CATALOG_ITEM_VIEW", id)
	}
	path := "/api/catalogItem/" + i.ID
	n := r.Site.Entity("CatalogItem", "catalogitem", i.ID, i.Of.Name, xmltree.A("size", 0))
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/catalog/"+i.Catalog.ID, wire.Mime("catalog")),
		r.Site.Link("down", path+"/metadata", wire.Mime("metadata")),
		r.Site.Link("remove", path, ""),
		xmltree.T("Description", i.Description),
		r.Site.Ref("Entity", i.Of),
		xmltree.T("DateCreated", i.Created),
		xmltree.T("VersionNumber", 1),
	})
	return n, nil
}

// deleteCatalogItem removes an item and its template or media item.
func deleteCatalogItem(r *api.Request) (*api.Response, error) {
	i, found := r.Cloud.Store.Item(store.Bare(r.Vars["id"]))
	if !found || !r.Session.Sees(i.Org.ID) {
		return nil, store.Forbidden("CATALOG_ITEM_VIEW", r.Vars["id"])
	}
	if _, m := r.Cloud.Store.Media(i.Of.ID); m != nil {
		if err := checkMediaRemovable(r.Cloud.Store, r.Cloud.Tasks, m); err != nil {
			return nil, err
		}
		removeMedia(r.Cloud, m.ID)
		return api.NoContent(), nil
	}
	if err := r.Cloud.Tasks.CheckIdle(i.Of.ID); err != nil {
		return nil, err
	}
	removeTemplate(r.Cloud, i.Of.ID)
	return api.NoContent(), nil
}

func getTemplate(r *api.Request, sh store.OrgCatalog, t *store.Template) (*api.Response, error) {
	vdc := sh.VDCOf(t)
	path := "/api/vAppTemplate/vappTemplate-" + t.ID
	n := r.Site.Entity("VAppTemplate", "vapptemplate", t.ID, t.Name,
		xmltree.A("goldMaster", t.GoldMaster), xmltree.A("ovfDescriptorUploaded", descriptorUploaded(r.Cloud.Store, t)),
		xmltree.A("status", t.Status))
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.Site.Link("catalogItem", "/api/catalogItem/"+t.ItemID, wire.Mime("catalogitem")),
		r.Site.Link("remove", path, ""),
		r.Site.Link("edit", path, wire.Mime("vapptemplate")),
		r.Site.Link("down", path+"/owner", wire.Mime("owner")),
		r.Site.Link("down", path+"/metadata", wire.Mime("metadata")),
		r.Site.Link("down", path+"/productSections/", wire.Mime("productSections")),
		xmltree.T("Description", t.Description),
		api.TasksNode(r, t.ID),
		filesNode(r, t.Upload),
		firstUserNode(r.Site, sh.Org.Users),
	})
	children := xmltree.New("Children")
	for i := range t.VMs {
		children.Add(templateVMNode(r, vdc, t, &t.VMs[i], false))
	}
	n.Add([]*xmltree.Node{children, templateLease(r.Site, t)})
	n.Add(xmltree.New("CustomizationSection", xmltree.A("goldMaster", false),
		api.Section(r.Site.Base()+path+"/customizationSection/", "customizationSection"),
		xmltree.T("ovf:Info", "VApp template customization section"), xmltree.T("CustomizeOnInstantiate", true)))
	n.Add(xmltree.T("DateCreated", t.CreatedAt()))
	return api.XML(n), nil
}

func getTemplateOwner(r *api.Request, sh store.OrgCatalog, t *store.Template) (*api.Response, error) {
	n := xmltree.New("Owner", wire.Namespaces(), xmltree.A("type", wire.Mime("owner")),
		xmltree.A("href", r.Site.Base()+"/api/vAppTemplate/vappTemplate-"+t.ID+"/owner"))
	n.Add(firstUserNode(r.Site, sh.Org.Users).Children)
	return api.XML(n), nil
}

// getTemplateProducts returns an empty list: the product sections of a template belong to its VMs.
func getTemplateProducts(r *api.Request, _ store.OrgCatalog, t *store.Template) (*api.Response, error) {
	return api.XML(ovf.NoProductSections(r.Site, "/api/vAppTemplate/vappTemplate-"+t.ID)), nil
}

func templateLease(site wire.Site, t *store.Template) *xmltree.Node {
	path := "/api/vAppTemplate/vappTemplate-" + t.ID + "/leaseSettingsSection/"
	return xmltree.New("LeaseSettingsSection", api.Section(site.Base()+path, "leaseSettingsSection"),
		xmltree.T("ovf:Info", "Lease settings section"), site.Link("edit", path, wire.Mime("leaseSettingsSection")),
		xmltree.T("StorageLeaseInSeconds", int64(time.Duration(t.Lease).Seconds())))
}

// descriptorUploaded reports whether VCD has the OVF descriptor of a template.
func descriptorUploaded(st *store.Store, t *store.Template) bool {
	u := st.Uploads[t.Upload]
	return u == nil || fileReceived(&u.Files[0])
}

func getTemplateVM(r *api.Request) (*api.Response, error) {
	sh, t, vm := r.Cloud.Store.TemplateVM(store.Bare(r.Vars["id"]))
	if vm == nil || !access.Reads(r, sh) {
		return nil, store.Forbidden("VAPP_TEMPLATE_VIEW", r.Vars["id"])
	}
	return api.XML(templateVMNode(r, sh.VDCOf(t), t, vm, true)), nil
}

func templateVMNode(r *api.Request, vdc *store.VDC, t *store.Template, vm *store.TemplateVM, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	href := r.Site.Href("templatevm", vm.ID)
	n := xmltree.New("Vm")
	if root { // VCD shows a VM outside its template as a template
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
		r.Site.Link("up", "/api/vAppTemplate/vappTemplate-"+t.ID, wire.Mime("vapptemplate")),
		r.Site.Link("storageProfile", "/api/vdcStorageProfile/"+vdc.DefaultProfile(), wire.Mime("vdcstorageProfile")),
		r.Site.Link("down", path+"/metadata", wire.Mime("metadata")),
		T("Description", ""),
	})
	nics := xmltree.New("NetworkConnectionSection",
		api.Section(href+"/networkConnectionSection/", "networkConnectionSection"),
		T("ovf:Info", "Specifies the available VM network connections"), T("PrimaryNetworkConnectionIndex", 0))
	for i := range vm.NICs {
		nics.Add(xmltree.New("NetworkConnection", A("needsCustomization", true), A("network", "VM Network"),
			T("NetworkConnectionIndex", i), T("IsConnected", true), T("MACAddress", "00:50:56:00:00:00"),
			T("IpAddressAllocationMode", "DHCP"), T("NetworkAdapterType", "VMXNET3")))
	}
	custom := xmltree.New("GuestCustomizationSection",
		api.Section(href+"/guestCustomizationSection/", "guestCustomizationSection"),
		T("ovf:Info", "Specifies Guest OS Customization Settings"), T("Enabled", false), T("ChangeSid", false),
		T("VirtualMachineId", vm.ID), T("JoinDomainEnabled", false), T("UseOrgSettings", false),
		T("AdminPasswordEnabled", true), T("AdminPasswordAuto", true), T("ResetPasswordRequired", false),
		T("ComputerName", ovf.ComputerName(vm.Name)))
	n.Add([]*xmltree.Node{
		nics,
		custom,
		ovf.ProductSection(vm.InitialProperties()),
		ovf.SpecSection(r, &store.VM{
			OS:              vm.OS,
			CPUs:            vm.CPUs,
			CoresPerSocket:  1,
			MemoryMiB:       vm.MemoryMiB,
			HardwareVersion: api.OrElse(vm.HardwareVersion, vdcs.DefaultHardware),
			Disks:           machines.TemplateDisks(vm, vdc.DefaultProfile()),
		}),
	})
	n.Add([]*xmltree.Node{
		T("VAppScopedLocalId", r.Cloud.IDs.Named("local", vm.ID)),
		T("DefaultStorageProfile", r.Cloud.Store.ProfileName(vdc.DefaultProfile())),
		T("DateCreated", store.Beginning()),
	})
	return n
}

// checkItemName refuses an invalid name, and the name of another template or media item of the catalog.
func checkItemName(c *store.Catalog, name string) error {
	if err := api.CheckName("catalog item", name); err != nil {
		return err
	}
	if slices.ContainsFunc(c.Media, func(m store.Media) bool { return m.Name == name }) ||
		slices.ContainsFunc(c.Templates, func(t store.Template) bool { return t.Name == name }) {
		return store.DuplicateName(name)
	}
	return nil
}

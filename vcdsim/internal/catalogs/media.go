// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func mediaRoutes(add api.AddRoute) {
	add("POST", "/api/catalog/{id}/action/upload", api.With2(api.Parsed(OwnCatalog), uploadItem), cloud.LatencyWrite)
	add("GET", "/api/media/{media}", getMedia, cloud.LatencyLegacy)
	add("DELETE", "/api/media/{media}", deleteMedia, cloud.LatencyWrite)
	add("POST", "/api/media/{media}/action/enableDownload", enableDownload, cloud.LatencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/insertMedia", api.With2(mediaParam, insertMedia), cloud.LatencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/ejectMedia", api.With2(mediaParam, ejectMedia), cloud.LatencyWrite)
	add("GET", "/api/vApp/vm-{vm}/question", api.With(compute.OwnVM, getQuestion), cloud.LatencyLegacy)
}

// uploadItem creates a catalog item. The client then sends the item's content to its transfer links.
func uploadItem(r *api.Request, sh store.OrgCatalog, tree *xmltree.Node) (*api.Response, error) {
	if err := checkItemName(sh.Catalog, tree.Attr("name")); err != nil {
		return nil, err
	}
	switch tree.Name {
	case "Media":
		return uploadMedia(r, sh, tree)
	case "UploadVAppTemplateParams":
		return uploadTemplate(r, sh, tree)
	default:
		return nil, store.BadRequest("Bad request - %q cannot be uploaded.", tree.Name)
	}
}

func uploadMedia(r *api.Request, sh store.OrgCatalog, tree *xmltree.Node) (*api.Response, error) {
	size, err := strconv.ParseInt(tree.Attr("size"), 10, 64)
	if err != nil || size < 0 {
		return nil, store.BadRequest("The size %q of the media is invalid.", tree.Attr("size"))
	}
	kind := api.OrElse(tree.Attr("imageType"), "iso")
	if kind != "iso" && kind != "floppy" {
		return nil, store.BadRequest("The image type %q is invalid.", kind)
	}
	m := store.Media{
		ID:          r.Cloud.IDs.Next("media"),
		ItemID:      r.Cloud.IDs.Next("catalogitem"),
		Name:        tree.Attr("name"),
		Description: tree.Str("Description"),
		ImageType:   kind,
		Size:        size,
		Created:     r.Cloud.Clock.Now(),
	}
	u := newUpload(r, m.Entity(), store.UploadFile{Name: "file", Size: size})
	m.Upload = u.ID
	sh.Catalog.Media = append(sh.Catalog.Media, m)
	return createdItem(r, m.ItemID)
}

func createdItem(r *api.Request, id string) (*api.Response, error) {
	n, err := catalogItemNode(r, id)
	if err != nil {
		return nil, err
	}
	return api.XML(n).CreatedAt(r.Site.Href("catalogitem", id)), nil
}

func getMedia(r *api.Request) (*api.Response, error) {
	sh, m, err := compute.MediaByID(r, r.Vars["media"])
	if err != nil {
		return nil, err
	}
	path := "/api/media/" + m.ID
	n := r.Site.Entity("Media", "media", m.ID, m.Name, xmltree.A("imageType", api.OrElse(m.ImageType, "iso")),
		xmltree.A("size", m.Size),
		xmltree.A("status", int(m.Status)))
	vdc := sh.VDCOf(&store.Template{VDC: m.VDC})
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.Site.Link("catalogItem", "/api/catalogItem/"+m.ItemID, wire.Mime("catalogitem")),
		r.Site.Link("remove", path, ""),
		r.Site.Link("enable", path+"/action/enableDownload", ""),
		r.Site.Link("down", path+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", m.Description),
		api.TasksNode(r, m.ID),
		filesNode(r, m.Upload),
		firstUserNode(r.Site, sh.Org.Users),
		ovf.ProfileRef(r.Site, r.Cloud.Store, "VdcStorageProfile", vdc.DefaultProfile()),
	})
	return api.XML(n), nil
}

// deleteMedia removes a media item, unless it is inserted in a VM.
func deleteMedia(r *api.Request) (*api.Response, error) {
	_, m, err := compute.MediaByID(r, r.Vars["media"])
	if err != nil {
		return nil, err
	}
	if err := checkMediaRemovable(r.Cloud.Store, r.Cloud.Tasks, m); err != nil {
		return nil, err
	}
	return r.Start(store.Work{Op: cloud.OpDeleteMedia, Document: m.ID}, m.Entity(), []string{m.ID}), nil
}

func checkMediaRemovable(st *store.Store, ts *cloud.Tasks, m *store.Media) error {
	for _, placed := range st.Order {
		vm := placed.VM
		if vm.MediaID == m.ID {
			return store.BadRequest("The media %q cannot be deleted: it is inserted in VM %q.", m.Name, vm.Name)
		}
	}
	return ts.CheckIdle(m.ID)
}

func commitDeleteMedia(s *cloud.Cloud, t *store.Task) error {
	removeMedia(s, t.Work.Document)
	return nil
}

func removeMedia(s *cloud.Cloud, id string) {
	sh, m := s.Store.Media(id)
	if m == nil {
		return
	}
	delete(s.Store.Uploads, m.Upload)
	s.Store.Forget(id)
	s.Store.Forget(m.ItemID)
	sh.Catalog.Media = slices.DeleteFunc(slices.Clone(sh.Catalog.Media), func(x store.Media) bool { return x.ID == id })
}

// enableDownload makes the content of a media item available at a download link.
func enableDownload(r *api.Request) (*api.Response, error) {
	_, m, err := compute.MediaByID(r, r.Vars["media"])
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(m.ID); err != nil {
		return nil, err
	}
	u := r.Cloud.Store.Uploads[m.Upload]
	if u == nil {
		return nil, store.BadRequest("The media %q has no content.", m.Name)
	}
	u.Download = true
	return r.Done(m.Entity()), nil
}

// mediaParam returns the VM in the path and the media item that the request inserts or ejects.
func mediaParam(r *api.Request) (*store.VM, *store.Media, error) {
	vm, tree, err := api.Parsed(compute.IdleVM)(r)
	if err != nil {
		return nil, nil, err
	}
	_, m, err := compute.MediaByID(r, tree.At("Media").Attr("href"))
	return vm, m, err
}

func insertMedia(r *api.Request, vm *store.VM, m *store.Media) (*api.Response, error) {
	if m.Status != store.Resolved {
		return nil, store.BadRequest("The media %q is not resolved.", m.Name)
	}
	if vm.MediaID != "" {
		return nil, store.BadRequest("The VM %q has a media inserted already.", vm.Name)
	}
	return compute.StartVM(r, vm, store.Work{Op: cloud.OpInsertMedia, Document: m.ID})
}

// ejectMedia ejects the media item of a VM. It is a no-op for an empty drive.
func ejectMedia(r *api.Request, vm *store.VM, _ *store.Media) (*api.Response, error) {
	return compute.StartVM(r, vm, store.Work{Op: cloud.OpEjectMedia})
}

// commitMedia inserts a media item into the drive of a VM, or ejects it.
func commitMedia(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	if vm == nil {
		return cloud.Gone("vm", t.Work.VM)
	}
	if id := t.Work.Document; id != "" {
		if _, m := s.Store.Media(id); m == nil {
			return cloud.Gone("media", id)
		}
	}
	vm.MediaID = t.Work.Document
	return nil
}

// getQuestion responds as VCD does if no VM waits for an answer.
func getQuestion(_ *api.Request, vm *store.VM) (*api.Response, error) {
	return nil, store.Forbidden("VAPP_VM_QUESTION_VIEW", vm.ID)
}

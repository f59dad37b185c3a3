// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func mediaRoutes(add addRoute) {
	add("POST", "/api/catalog/{id}/action/upload", with2(parsed(ownCatalog), uploadItem), latencyWrite)
	add("GET", "/api/media/{media}", getMedia, latencyLegacy)
	add("DELETE", "/api/media/{media}", deleteMedia, latencyWrite)
	add("POST", "/api/media/{media}/action/enableDownload", enableDownload, latencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/insertMedia", with2(mediaParam, insertMedia), latencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/ejectMedia", with2(mediaParam, ejectMedia), latencyWrite)
	add("GET", "/api/vApp/vm-{vm}/question", with(ownVM, getQuestion), latencyLegacy)
}

func mediaByID(r *request, id string) (store.OrgCatalog, *store.Media, error) {
	sh, m := r.cloud.store.Media(store.Bare(id))
	if m == nil || !r.reads(sh) || r.Method != http.MethodGet && r.vars["vm"] == "" && !r.session.Sees(sh.Org.ID) {
		return store.OrgCatalog{}, nil, store.Forbidden("MEDIA_VIEW", id)
	}
	return sh, m, nil
}

// uploadItem creates a catalog item, whose bytes the client then sends to the item's transfer links.
func uploadItem(r *request, sh store.OrgCatalog, tree *xmltree.Node) (*response, error) {
	if err := freeItemName(sh.Catalog, tree.Attr("name")); err != nil {
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

func uploadMedia(r *request, sh store.OrgCatalog, tree *xmltree.Node) (*response, error) {
	size, err := strconv.ParseInt(tree.Attr("size"), 10, 64)
	if err != nil || size < 0 {
		return nil, store.BadRequest("The size %q of the media is invalid.", tree.Attr("size"))
	}
	kind := orElse(tree.Attr("imageType"), "iso")
	if kind != "iso" && kind != "floppy" {
		return nil, store.BadRequest("The image type %q is invalid.", kind)
	}
	m := store.Media{
		ID:          r.cloud.ids.Next("media"),
		ItemID:      r.cloud.ids.Next("catalogitem"),
		Name:        tree.Attr("name"),
		Description: tree.Str("Description"),
		ImageType:   kind,
		Size:        size,
		Created:     r.cloud.clock.Now(),
	}
	u := newUpload(r, m.Entity(), store.UploadFile{Name: "file", Size: size})
	m.Upload = u.ID
	sh.Catalog.Media = append(sh.Catalog.Media, m)
	return createdItem(r, m.ItemID)
}

func createdItem(r *request, id string) (*response, error) {
	n, err := catalogItemNode(r, id)
	if err != nil {
		return nil, err
	}
	return xmlOK(n).createdAt(r.site.Href("catalogitem", id)), nil
}

func getMedia(r *request) (*response, error) {
	sh, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	path := "/api/media/" + m.ID
	n := r.site.Entity("Media", "media", m.ID, m.Name, xmltree.A("imageType", orElse(m.ImageType, "iso")),
		xmltree.A("size", m.Size),
		xmltree.A("status", int(m.Status)))
	vdc := sh.VDCOf(&store.Template{VDC: m.VDC})
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.site.Link("catalogItem", "/api/catalogItem/"+m.ItemID, wire.Mime("catalogitem")),
		r.site.Link("remove", path, ""),
		r.site.Link("edit", path, wire.Mime("media")),
		r.site.Link("enable", path+"/action/enableDownload", ""),
		r.site.Link("down", path+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", m.Description),
		tasksNode(r, m.ID),
		filesNode(r, m.Upload),
		ownerAmong(r.site, sh.Org.Users),
		profileRef(r.site, r.cloud.store, "VdcStorageProfile", vdc.DefaultProfile()),
	})
	return xmlOK(n), nil
}

// deleteMedia removes a media, unless a VM has it in its drive.
func deleteMedia(r *request) (*response, error) {
	_, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	if err := removableMedia(r.cloud.store, r.cloud.tasks, m); err != nil {
		return nil, err
	}
	return r.start(store.Work{Op: opDeleteMedia, Document: m.ID}, m.Entity(), []string{m.ID}), nil
}

func removableMedia(st *store.Store, ts *tasks, m *store.Media) error {
	for _, vm := range st.Order {
		if vm.MediaID == m.ID {
			return store.BadRequest("The media %q cannot be deleted: it is inserted in VM %q.", m.Name, vm.Name)
		}
	}
	return ts.checkIdle(m.ID)
}

func commitDeleteMedia(s *cloud, t *store.Task) error {
	removeMedia(s, t.Work.Document)
	return nil
}

func removeMedia(s *cloud, id string) {
	sh, m := s.store.Media(id)
	if m == nil {
		return
	}
	delete(s.store.Uploads, m.Upload)
	sh.Catalog.Media = slices.DeleteFunc(slices.Clone(sh.Catalog.Media), func(x store.Media) bool { return x.ID == id })
}

// enableDownload makes the bytes available at a link.
func enableDownload(r *request) (*response, error) {
	_, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	if err := r.cloud.tasks.checkIdle(m.ID); err != nil {
		return nil, err
	}
	u := r.cloud.store.Uploads[m.Upload]
	if u == nil {
		return nil, store.BadRequest("The media %q has no content.", m.Name)
	}
	u.Download = true
	return r.done(m.Entity()), nil
}

// mediaParam reads which media an insert or eject is about.
func mediaParam(r *request) (*store.VM, *store.Media, error) {
	vm, tree, err := parsed(idleVM)(r)
	if err != nil {
		return nil, nil, err
	}
	_, m, err := mediaByID(r, tree.At("Media").Attr("href"))
	return vm, m, err
}

func insertMedia(r *request, vm *store.VM, m *store.Media) (*response, error) {
	if m.Status != store.Resolved {
		return nil, store.BadRequest("The media %q is not resolved.", m.Name)
	}
	if vm.MediaID != "" {
		return nil, store.BadRequest("The VM %q has a media inserted already.", vm.Name)
	}
	return startVM(r, vm, store.Work{Op: opInsertMedia, Document: m.ID})
}

// ejectMedia empties the drive; that it was empty is no error.
func ejectMedia(r *request, vm *store.VM, _ *store.Media) (*response, error) {
	return startVM(r, vm, store.Work{Op: opEjectMedia})
}

// commitMedia inserts a media into the drive of a VM, or ejects it.
func commitMedia(s *cloud, t *store.Task) error {
	vm := s.store.VMs[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	if id := t.Work.Document; id != "" {
		if _, m := s.store.Media(id); m == nil {
			return gone("media", id)
		}
	}
	vm.MediaID = t.Work.Document
	return nil
}

// getQuestion answers as VCD does that no VM waits for an answer.
func getQuestion(_ *request, vm *store.VM) (*response, error) {
	return nil, store.Forbidden("VAPP_VM_QUESTION_VIEW", vm.ID)
}

func mediaRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		for i := range sh.Catalog.Media {
			m := &sh.Catalog.Media[i]
			v := sh.VDCOf(&store.Template{VDC: m.VDC})
			out = append(out, &record{
				metadata: r.cloud.store.Metadata[m.ID],
				links:    recordLinks(r.site, "media", m.ID),
				attrs: []xmltree.Attr{
					A("ownerName", "system"),
					A("catalogName", sh.Catalog.Name),
					A("catalog", r.site.Href("catalog", sh.Catalog.ID)),
					A("catalogItem", r.site.Href("catalogitem", m.ItemID)),
					A("isPublished", false),
					A("name", m.Name),
					A("vdc", r.site.Href("vdc", v.ID)),
					A("vdcName", v.Name),
					A("org", r.site.Href("org", sh.Org.ID)),
					A("creationDate", m.CreatedAt()),
					A("isBusy", r.cloud.tasks.busy(m.ID)),
					A("storageB", m.Size),
					A("owner", r.site.Base()+"/api/admin/user/"),
					A("status", store.MediaStatus(m)),
					A("storageProfileName", r.cloud.store.ProfileName(v.DefaultProfile())),
					A("isInCatalog", true),
					A("isIso", orElse(m.ImageType, "iso") == "iso"),
					A("isVdcEnabled", true),
					A("href", r.site.Href("media", m.ID)),
					A("type", wire.Mime("media")),
				},
			})
		}
	}
	return out
}

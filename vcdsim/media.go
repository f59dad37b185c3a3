// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A Media is an image in a catalog, mostly an ISO.
type Media struct {
	ID          string
	ItemID      string
	Name        string
	Description string
	VDC         string // name of the VDC that stores it; empty is the first
	ImageType   string // iso or floppy; empty is iso
	Size        int64  // bytes
	Status      Status // 0 while it is uploaded; in a model given to New it means 1, resolved
	Created     time.Time
	Upload      string // id of the transfer with its bytes
}

func mediaRoutes(add addRoute) {
	add("POST", "/api/catalog/{id}/action/upload", with2(parsed(ownCatalog), uploadItem), latencyWrite)
	add("GET", "/api/media/{media}", getMedia, latencyLegacy)
	add("DELETE", "/api/media/{media}", deleteMedia, latencyWrite)
	add("POST", "/api/media/{media}/action/enableDownload", enableDownload, latencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/insertMedia", with2(mediaParam, insertMedia), latencyWrite)
	add("POST", "/api/vApp/vm-{vm}/media/action/ejectMedia", with2(mediaParam, ejectMedia), latencyWrite)
	add("GET", "/api/vApp/vm-{vm}/question", with(ownVM, getQuestion), latencyLegacy)
}

func (m *Media) entity() Entity { return Entity{Kind: "media", ID: m.ID, Name: m.Name} }

// media finds a media by its id or its catalog item's.
func (s *store) media(id string) (orgCatalog, *Media) {
	for _, sh := range s.catalogs() {
		for i := range sh.catalog.Media {
			if m := &sh.catalog.Media[i]; m.ID == id || m.ItemID == id {
				return sh, m
			}
		}
	}
	return orgCatalog{}, nil
}

func mediaByID(r *request, id string) (orgCatalog, *Media, error) {
	sh, m := r.sim.store.media(bare(id))
	if m == nil || !r.reads(sh) || r.Method != http.MethodGet && r.vars["vm"] == "" && !r.sees(sh.org.ID) {
		return orgCatalog{}, nil, forbidden("MEDIA_VIEW", id)
	}
	return sh, m, nil
}

// freeItemName refuses a name that a template or media of the catalog has.
func (c *Catalog) freeItemName(name string) error {
	if err := checkName("catalog item", name); err != nil {
		return err
	}
	if slices.ContainsFunc(c.Media, func(m Media) bool { return m.Name == name }) ||
		slices.ContainsFunc(c.Templates, func(t Template) bool { return t.Name == name }) {
		return duplicateName(name)
	}
	return nil
}

// uploadItem creates a catalog item, whose bytes the client then sends to the item's transfer links.
func uploadItem(r *request, sh orgCatalog, tree *xmltree.Node) (*response, error) {
	if err := sh.catalog.freeItemName(tree.Attr("name")); err != nil {
		return nil, err
	}
	switch tree.Name {
	case "Media":
		return uploadMedia(r, sh, tree)
	case "UploadVAppTemplateParams":
		return uploadTemplate(r, sh, tree)
	default:
		return nil, badRequest("Bad request - %q cannot be uploaded.", tree.Name)
	}
}

func uploadMedia(r *request, sh orgCatalog, tree *xmltree.Node) (*response, error) {
	size, err := strconv.ParseInt(tree.Attr("size"), 10, 64)
	if err != nil || size < 0 {
		return nil, badRequest("The size %q of the media is invalid.", tree.Attr("size"))
	}
	kind := orElse(tree.Attr("imageType"), "iso")
	if kind != "iso" && kind != "floppy" {
		return nil, badRequest("The image type %q is invalid.", kind)
	}
	m := Media{
		ID:          r.sim.ids.next("media"),
		ItemID:      r.sim.ids.next("catalogitem"),
		Name:        tree.Attr("name"),
		Description: tree.Str("Description"),
		ImageType:   kind,
		Size:        size,
		Created:     r.sim.clock.Now(),
	}
	u := newUpload(r, m.entity(), UploadFile{Name: "file", Size: size})
	m.Upload = u.ID
	sh.catalog.Media = append(sh.catalog.Media, m)
	return createdItem(r, m.ItemID)
}

func createdItem(r *request, id string) (*response, error) {
	n, err := catalogItemNode(r, id)
	if err != nil {
		return nil, err
	}
	return xmlOK(n).createdAt(r.href("catalogitem", id)), nil
}

func getMedia(r *request) (*response, error) {
	sh, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	path := "/api/media/" + m.ID
	n := r.entity("Media", "media", m.ID, m.Name, xmltree.A("imageType", orElse(m.ImageType, "iso")),
		xmltree.A("size", m.Size),
		xmltree.A("status", int(m.Status)))
	vdc := sh.vdcOf(&Template{VDC: m.VDC})
	n.Add([]*xmltree.Node{
		r.link("up", "/api/vdc/"+vdc.ID, mime("vdc")),
		r.link("catalogItem", "/api/catalogItem/"+m.ItemID, mime("catalogitem")),
		r.link("remove", path, ""),
		r.link("edit", path, mime("media")),
		r.link("enable", path+"/action/enableDownload", ""),
		r.link("down", path+"/metadata", mime("metadata")),
		xmltree.T("Description", m.Description),
		tasksNode(r, m.ID),
		filesNode(r, m.Upload),
		ownerAmong(r, sh.org.Users),
		profileRef(r, "VdcStorageProfile", vdc.defaultProfile()),
	})
	return xmlOK(n), nil
}

// deleteMedia removes a media, unless a VM has it in its drive.
func deleteMedia(r *request) (*response, error) {
	_, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	if err := removableMedia(r, m); err != nil {
		return nil, err
	}
	return r.start(Work{Op: opDeleteMedia, Document: m.ID}, m.entity(), []string{m.ID}), nil
}

func removableMedia(r *request, m *Media) error {
	for _, vm := range r.sim.store.order {
		if vm.MediaID == m.ID {
			return badRequest("The media %q cannot be deleted: it is inserted in VM %q.", m.Name, vm.Name)
		}
	}
	return r.sim.tasks.checkIdle(m.ID)
}

func commitDeleteMedia(s *Simulator, t *Task) error {
	removeMedia(s, t.Work.Document)
	return nil
}

func removeMedia(s *Simulator, id string) {
	sh, m := s.store.media(id)
	if m == nil {
		return
	}
	delete(s.store.Uploads, m.Upload)
	sh.catalog.Media = slices.DeleteFunc(slices.Clone(sh.catalog.Media), func(x Media) bool { return x.ID == id })
}

// enableDownload makes the bytes available at a link.
func enableDownload(r *request) (*response, error) {
	_, m, err := mediaByID(r, r.vars["media"])
	if err != nil {
		return nil, err
	}
	if err := r.sim.tasks.checkIdle(m.ID); err != nil {
		return nil, err
	}
	u := r.sim.store.Uploads[m.Upload]
	if u == nil {
		return nil, badRequest("The media %q has no content.", m.Name)
	}
	u.Download = true
	return r.done(m.entity()), nil
}

// mediaParam reads which media an insert or eject is about.
func mediaParam(r *request) (*VM, *Media, error) {
	vm, tree, err := parsed(idleVM)(r)
	if err != nil {
		return nil, nil, err
	}
	_, m, err := mediaByID(r, tree.At("Media").Attr("href"))
	return vm, m, err
}

func insertMedia(r *request, vm *VM, m *Media) (*response, error) {
	if m.Status != Resolved {
		return nil, badRequest("The media %q is not resolved.", m.Name)
	}
	if vm.MediaID != "" {
		return nil, badRequest("The VM %q has a media inserted already.", vm.Name)
	}
	return startVM(r, vm, Work{Op: opInsertMedia, Document: m.ID})
}

// ejectMedia empties the drive; that it was empty is no error.
func ejectMedia(r *request, vm *VM, _ *Media) (*response, error) {
	return startVM(r, vm, Work{Op: opEjectMedia})
}

// commitMedia inserts a media into the drive of a VM, or ejects it.
func commitMedia(s *Simulator, t *Task) error {
	vm := s.store.VMs[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	if id := t.Work.Document; id != "" {
		if _, m := s.store.media(id); m == nil {
			return gone("media", id)
		}
	}
	vm.MediaID = t.Work.Document
	return nil
}

// getQuestion answers as VCD does that no VM waits for an answer.
func getQuestion(_ *request, vm *VM) (*response, error) {
	return nil, forbidden("VAPP_VM_QUESTION_VIEW", vm.ID)
}

func mediaStatus(m *Media) string {
	if m.Status == Resolved {
		return "RESOLVED"
	}
	return m.Status.text()
}

func mediaRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		for i := range sh.catalog.Media {
			m := &sh.catalog.Media[i]
			v := sh.vdcOf(&Template{VDC: m.VDC})
			out = append(out, &record{
				metadata: r.sim.store.Metadata[m.ID],
				links:    recordLinks(r, "media", m.ID),
				attrs: []xmltree.Attr{
					A("ownerName", "system"),
					A("catalogName", sh.catalog.Name),
					A("catalog", r.href("catalog", sh.catalog.ID)),
					A("catalogItem", r.href("catalogitem", m.ItemID)),
					A("isPublished", false),
					A("name", m.Name),
					A("vdc", r.href("vdc", v.ID)),
					A("vdcName", v.Name),
					A("org", r.href("org", sh.org.ID)),
					A("creationDate", m.created()),
					A("isBusy", r.sim.tasks.busy(m.ID)),
					A("storageB", m.Size),
					A("owner", r.base()+"/api/admin/user/"),
					A("status", mediaStatus(m)),
					A("storageProfileName", r.sim.store.profileName(v.defaultProfile())),
					A("isInCatalog", true),
					A("isIso", orElse(m.ImageType, "iso") == "iso"),
					A("isVdcEnabled", true),
					A("href", r.href("media", m.ID)),
					A("type", mime("media")),
				},
			})
		}
	}
	return out
}

// created is when the media came into being.
func (m *Media) created() time.Time {
	if m.Created.IsZero() {
		return created()
	}
	return m.Created
}

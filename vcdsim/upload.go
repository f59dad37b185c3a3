// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// maxContent is how much of a file is kept.
const maxContent = 64 << 20

// uploadRoutes need no session: a transfer link is its own permission.
func uploadRoutes(add addRoute) {
	add("PUT", "/transfer/{upload}/{file}", with2(transferFile, putFile), latencyWrite)
	add("GET", "/transfer/{upload}/{file}", with2(transferFile, getFile), latencyLegacy)
}

// newUpload begins a transfer with a task that ends when the bytes are there.
func newUpload(r *request, e store.Entity, files ...store.UploadFile) *store.Upload {
	u := &store.Upload{ID: r.cloud.ids.Next("transfer"), Entity: e, Files: files}
	r.cloud.store.Uploads[u.ID] = u
	u.Task = r.startTask(store.Work{Op: opUpload, Document: u.ID}, e, []string{e.ID}).ID
	return u
}

func fileReceived(f *store.UploadFile) bool { return f.Size >= 0 && f.Received >= f.Size }

// filesNode shows the files of a transfer with their links, nil when there is nothing to transfer.
func filesNode(r *request, id string) *xmltree.Node {
	u := r.cloud.store.Uploads[id]
	if u == nil || !r.cloud.tasks.busy(u.Entity.ID) && !u.Download {
		return nil
	}
	rel := "upload:default"
	if u.Download {
		rel = "download:default"
	}
	n := xmltree.New("Files")
	for _, f := range u.Files {
		n.Add(xmltree.New("File", xmltree.A("size", f.Size), xmltree.A("bytesTransferred", f.Received),
			xmltree.A("name", f.Name),
			r.site.Link(rel, "/transfer/"+u.ID+"/"+f.Name, "")))
	}
	return n
}

func transferFile(r *request) (*store.Upload, *store.UploadFile, error) {
	if u := r.cloud.store.Uploads[r.vars["upload"]]; u != nil {
		for i := range u.Files {
			if u.Files[i].Name == r.vars["file"] {
				return u, &u.Files[i], nil
			}
		}
	}
	return nil, nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
}

// putFile takes a file, or the part of it that Content-Range names. A part may come again; none may be left out.
func putFile(r *request, u *store.Upload, f *store.UploadFile) (*response, error) {
	if !r.cloud.tasks.busy(u.Entity.ID) {
		return nil, store.BadRequest("The transfer of %q has ended.", u.Entity.Name)
	}
	from := int64(0)
	total := r.size
	if h := r.Header.Get("Content-Range"); h != "" {
		var to int64
		if _, err := fmt.Sscanf(h, "bytes %d-%d/%d", &from, &to, &total); err != nil || to-from+1 != r.size {
			return nil, store.BadRequest("The range %q is invalid.", h)
		}
	}
	if from < 0 || from > f.Received {
		return nil, store.Refuse(http.StatusRequestedRangeNotSatisfiable, "BAD_REQUEST",
			"The file %q lacks the bytes before %d.", f.Name, from)
	}
	takeBytes(f, from, total, r)
	if err := describeUpload(u); err != nil {
		return nil, err
	}
	finishUpload(r.cloud, u)
	return &response{status: http.StatusOK}, nil
}

func takeBytes(f *store.UploadFile, from, total int64, in *request) {
	if f.Size < 0 {
		f.Size = total
	}
	end := from + in.size
	switch {
	case end > maxContent:
		f.Content = nil
	case from <= int64(len(f.Content)):
		f.Content = append(f.Content[:from:from], in.body...)
	}
	f.Received = max(f.Received, end)
}

// finishUpload lets the task of a transfer end when all files are there.
func finishUpload(s *cloud, u *store.Upload) {
	for i := range u.Files {
		if !fileReceived(&u.Files[i]) {
			return
		}
	}
	if t := s.store.Tasks[u.Task]; t != nil && !t.Done() {
		d := s.profile.scaled(durationImport)
		t.Due = s.clock.Now().Add(d)
		s.tasks.finishIn(t, d)
	}
}

// commitUpload makes what was uploaded usable.
func commitUpload(s *cloud, t *store.Task) error {
	u := s.store.Uploads[t.Work.Document]
	if u == nil {
		return gone("transfer", t.Work.Document)
	}
	if _, m := s.store.Media(u.Entity.ID); m != nil {
		m.Status = store.Resolved
	}
	if _, tpl := s.store.Template(u.Entity.ID); tpl != nil {
		ovf, err := xmltree.Parse(u.Files[0].Content)
		if err != nil {
			return store.BadRequest("The OVF descriptor is invalid.")
		}
		tpl.VMs = ovfVMs(ovf, s.ids.Next)
		tpl.Status = int(store.PoweredOff)
	}
	return nil
}

// undoUpload removes the item.
func undoUpload(s *cloud, t *store.Task) {
	removeMedia(s, t.Owner.ID)
	removeTemplate(s, t.Owner.ID)
}

// getFile is a download.
func getFile(r *request, u *store.Upload, f *store.UploadFile) (*response, error) {
	if !u.Download || int64(len(f.Content)) != f.Size {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
	return &response{status: http.StatusOK, raw: f.Content, contentType: "application/octet-stream"}, nil
}

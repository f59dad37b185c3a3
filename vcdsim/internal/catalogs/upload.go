// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// UploadRoutes adds the routes of transfers. They need no session: a transfer link grants access by itself.
func UploadRoutes(add api.AddRoute) {
	add("PUT", "/transfer/{upload}/{file}", api.With2(transferFile, putFile), cloud.LatencyWrite)
	add("GET", "/transfer/{upload}/{file}", api.With2(transferFile, getFile), cloud.LatencyLegacy)
}

// newUpload starts a transfer, and a task that ends once all files are received.
func newUpload(r *api.Request, e store.Entity, files ...store.UploadFile) *store.Upload {
	u := &store.Upload{ID: r.Cloud.IDs.Next("transfer"), Entity: e, Files: files}
	r.Cloud.Store.Uploads[u.ID] = u
	u.Task = r.StartTask(store.Work{Op: cloud.OpUpload, Document: u.ID}, e, []string{e.ID}).ID
	return u
}

func fileReceived(f *store.UploadFile) bool { return f.Size >= 0 && f.Received >= f.Size }

// filesNode returns the files of a transfer with their links. It returns nil if there is no transfer, or if the
// transfer has ended and offers no download.
func filesNode(r *api.Request, id string) *xmltree.Node {
	u := r.Cloud.Store.Uploads[id]
	if u == nil || !r.Cloud.Tasks.Busy(u.Entity.ID) && !u.Download {
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
			r.Site.Link(rel, "/transfer/"+u.ID+"/"+f.Name, "")))
	}
	return n
}

func transferFile(r *api.Request) (*store.Upload, *store.UploadFile, error) {
	if u := r.Cloud.Store.Uploads[r.Vars["upload"]]; u != nil {
		for i := range u.Files {
			if u.Files[i].Name == r.Vars["file"] {
				return u, &u.Files[i], nil
			}
		}
	}
	return nil, nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
}

// putFile receives a file, or the part that Content-Range specifies. A client may send a part again but must not leave
// a gap.
func putFile(r *api.Request, u *store.Upload, f *store.UploadFile) (*api.Response, error) {
	if !r.Cloud.Tasks.Busy(u.Entity.ID) {
		return nil, store.BadRequest("The transfer of %q has ended.", u.Entity.Name)
	}
	from := int64(0)
	total := r.Size
	if h := r.Header.Get("Content-Range"); h != "" {
		var to int64
		if _, err := fmt.Sscanf(h, "bytes %d-%d/%d", &from, &to, &total); err != nil || to-from+1 != r.Size {
			return nil, store.BadRequest("The range %q is invalid.", h)
		}
	}
	if from < 0 || from > f.Received {
		return nil, store.Refuse(http.StatusRequestedRangeNotSatisfiable, "BAD_REQUEST",
			"The file %q lacks the bytes before %d.", f.Name, from)
	}
	storeBytes(f, from, total, r)
	if err := addReferencedFiles(u); err != nil {
		return nil, err
	}
	finishUpload(r.Cloud, u)
	return &api.Response{Status: http.StatusOK}, nil
}

func storeBytes(f *store.UploadFile, from, total int64, in *api.Request) {
	if f.Size < 0 {
		f.Size = total
	}
	end := from + in.Size
	switch {
	case end > api.MaxContent:
		f.Content = nil
	case from <= int64(len(f.Content)):
		f.Content = append(f.Content[:from:from], in.Content...)
	}
	f.Received = max(f.Received, end)
}

// finishUpload schedules the end of the task of a transfer once all files are received.
func finishUpload(s *cloud.Cloud, u *store.Upload) {
	for i := range u.Files {
		if !fileReceived(&u.Files[i]) {
			return
		}
	}
	if t := s.Store.Tasks[u.Task]; t != nil && !t.Done() {
		d := s.Profile.Scaled(cloud.DurationImport)
		t.Due = s.Clock.Now().Add(d)
		s.Tasks.FinishIn(t, d)
	}
}

// commitUpload makes the uploaded media item or template available.
func commitUpload(s *cloud.Cloud, t *store.Task) error {
	u := s.Store.Uploads[t.Work.Document]
	if u == nil {
		return cloud.Gone("transfer", t.Work.Document)
	}
	if _, m := s.Store.Media(u.Entity.ID); m != nil {
		m.Status = store.Resolved
	}
	if _, tpl := s.Store.Template(u.Entity.ID); tpl != nil {
		ovf, err := xmltree.Parse(u.Files[0].Content)
		if err != nil {
			return store.BadRequest("The OVF descriptor is invalid.")
		}
		tpl.VMs = templateVMs(ovf, s.IDs.Next)
		tpl.Status = int(store.PoweredOff)
	}
	return nil
}

// undoUpload removes the media item or template of a transfer.
func undoUpload(s *cloud.Cloud, t *store.Task) {
	removeMedia(s, t.Owner.ID)
	removeTemplate(s, t.Owner.ID)
}

// getFile returns a file of a transfer whose download is enabled.
func getFile(r *api.Request, u *store.Upload, f *store.UploadFile) (*api.Response, error) {
	if !u.Download || int64(len(f.Content)) != f.Size {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "There is no resource at %s.", r.URL.Path)
	}
	return &api.Response{Status: http.StatusOK, Raw: f.Content, ContentType: "application/octet-stream"}, nil
}

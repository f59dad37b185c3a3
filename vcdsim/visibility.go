// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A level is what a caller may do with a vApp and its VMs.
type level int

const (
	levelNone level = iota
	levelRead
	levelChange
	levelFull
)

// levels are the access levels by VCD's names.
var levels = map[string]level{"ReadOnly": levelRead, "Change": levelChange, "FullControl": levelFull}

func (l level) String() string {
	for name, x := range levels {
		if x == l {
			return name
		}
	}
	return ""
}

// A vappViewer answers what the caller of one request may do with vApps.
type vappViewer struct {
	r           *request
	all         bool // vApps are not checked, or the caller administrates the organization
	administers bool // the caller sees all vApps of the organization
}

// viewerOf looks the caller's rights up once, for requests that show many vApps.
func viewerOf(r *request) vappViewer {
	w := vappViewer{r: r, all: !r.cloud.assume.VAppsArePrivate || r.session.Provider() || r.hasRight(rightAdminControl)}
	w.administers = w.all || r.hasRight(rightAdminView)
	return w
}

// level is what the caller may do with a vApp: everything if it is his own or he administrates the organization, else
// what it is shared for. Who has the view of administrators sees all.
func (w vappViewer) level(v *store.VApp) level {
	switch {
	case v == nil || !w.r.session.Sees(v.OrgID):
		return levelNone
	case w.all || v.OwnerID == w.r.session.UserID:
		return levelFull
	case w.administers:
		return max(levelRead, accessLevel(w.r.cloud.store.Access[v.ID], w.r.session))
	}
	return accessLevel(w.r.cloud.store.Access[v.ID], w.r.session)
}

// seesDisk reports whether an independent disk is shown to the caller.
func (w vappViewer) seesDisk(d *store.Disk) bool {
	return w.r.session.Sees(d.OrgID) && (w.hasDisk(d) || w.r.hasRight(rightAdminView))
}

// hasDisk reports whether the caller may change an independent disk that is shown.
func (w vappViewer) hasDisk(d *store.Disk) bool {
	return !w.r.cloud.assume.DisksArePrivate || d.OwnerID == w.r.session.UserID || w.r.session.Provider() ||
		w.r.hasRight(rightAdminControl)
}

func (w vappViewer) sees(v *store.VApp) bool { return w.level(v) >= levelRead }

// accessLevel is the highest of those that a user has by himself, by the organization and with everyone.
func accessLevel(a store.Access, s *store.Session) level {
	out := levels[a.Everyone]
	for _, g := range a.Grants {
		if g.Kind == "user" && g.ID == s.UserID || g.Kind == "org" && g.ID == s.OrgID {
			out = max(out, levels[g.Level])
		}
	}
	return out
}

// neededLevel is what a request needs of the vApp it is about.
func neededLevel(r *request) level {
	_, path, _ := strings.Cut(r.op, " ")
	switch {
	case r.Method == http.MethodGet || strings.HasSuffix(path, "/captureVApp"):
		return levelRead
	case r.Method == http.MethodDelete && path == "/api/vApp/vapp",
		strings.HasSuffix(path, "/controlAccess"), strings.HasSuffix(path, "/owner"):
		return levelFull
	}
	return levelChange
}

// checkVApp refuses a request to an entity in a vApp that the caller may not see, or not use like that. VCD answers
// both as it does for what does not exist.
func checkVApp(r *request, v *store.VApp, operation, id string) error {
	has := viewerOf(r).level(v)
	needs := neededLevel(r)
	switch {
	case has >= needs:
		return nil
	case has == levelNone:
		return store.Forbidden(operation, id)
	}
	return store.Refuse(http.StatusForbidden, store.CodeForbidden,
		"Either you need some or all of the following rights [%s] to perform operations [%s] for %s or the target "+
			"entity is invalid.", needs, r.op, id)
}

// seesTask reports whether the caller may know of a task: it is his own, or he sees what it works on. Tasks of what is
// deleted are shown to its owner.
func (w vappViewer) seesTask(t *store.Task) bool {
	if !w.r.session.Sees(t.OrgID) {
		return false
	}
	if w.administers || t.UserID == w.r.session.UserID || t.OfUser == w.r.session.UserID {
		return true
	}
	return t.OfUser == "" || w.sees(w.r.cloud.store.VAppOf(t.Owner))
}

// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Level is the access of a caller to a vApp and its VMs.
type Level int

// Levels. Each includes the previous ones.
const (
	LevelNone Level = iota
	LevelRead
	LevelChange
	LevelFull
)

// levels maps VCD's names to access levels.
var levels = map[string]Level{"ReadOnly": LevelRead, "Change": LevelChange, "FullControl": LevelFull}

// String returns VCD's name of the level.
func (l Level) String() string {
	for name, x := range levels {
		if x == l {
			return name
		}
	}
	return ""
}

// A VAppViewer decides which vApps the caller of a request may see and change.
type VAppViewer struct {
	r           *api.Request
	all         bool // vApps are not checked, or the caller is an organization administrator
	administers bool // the caller sees all vApps of the organization
}

// ViewerOf looks up the caller's rights once, for requests that list many vApps.
func ViewerOf(r *api.Request) VAppViewer {
	w := VAppViewer{r: r, all: !r.Cloud.Assume.VAppsArePrivate || r.Session.Provider() || HasRight(r, rightAdminControl)}
	w.administers = w.all || HasRight(r, rightAdminView)
	return w
}

// level returns the access of the caller to a vApp. Owners and organization administrators have full access, and other
// users the level of its access settings. Callers with the right to view as an administrator can read every vApp.
func (w VAppViewer) level(v *store.VApp) Level {
	switch {
	case v == nil || !w.r.Session.Sees(v.OrgID):
		return LevelNone
	case w.all || v.OwnerID == w.r.Session.UserID:
		return LevelFull
	case w.administers:
		return max(LevelRead, accessLevel(w.r.Cloud.Store.Access[v.ID], w.r.Session))
	}
	return accessLevel(w.r.Cloud.Store.Access[v.ID], w.r.Session)
}

// SeesDisk reports whether an independent disk is visible to the caller.
func (w VAppViewer) SeesDisk(d *store.Disk) bool {
	return w.r.Session.Sees(d.OrgID) && (w.HasDisk(d) || HasRight(w.r, rightAdminView))
}

// HasDisk reports whether the caller may change a visible independent disk.
func (w VAppViewer) HasDisk(d *store.Disk) bool {
	return !w.r.Cloud.Assume.DisksArePrivate || d.OwnerID == w.r.Session.UserID || w.r.Session.Provider() ||
		HasRight(w.r, rightAdminControl)
}

// Sees reports whether a vApp is visible to the caller.
func (w VAppViewer) Sees(v *store.VApp) bool { return w.level(v) >= LevelRead }

// accessLevel returns the highest level that a user is granted directly, through the organization or through everyone.
func accessLevel(a store.Access, s *store.Session) Level {
	out := levels[a.Everyone]
	for _, g := range a.Grants {
		if g.Kind == "user" && g.ID == s.UserID || g.Kind == "org" && g.ID == s.OrgID {
			out = max(out, levels[g.Level])
		}
	}
	return out
}

// requiredLevel returns the level that a request requires for its vApp.
func requiredLevel(r *api.Request) Level {
	_, path, _ := strings.Cut(r.Operation, " ")
	switch {
	case r.Method == http.MethodGet || strings.HasSuffix(path, "/captureVApp"):
		return LevelRead
	case r.Method == http.MethodDelete && path == "/api/vApp/vapp",
		strings.HasSuffix(path, "/controlAccess"), strings.HasSuffix(path, "/owner"):
		return LevelFull
	}
	return LevelChange
}

// CheckVApp returns an error if the caller may not see the vApp of an entity, or may not use it for this request. In
// both cases it is the error that VCD returns for entities that do not exist.
func CheckVApp(r *api.Request, v *store.VApp, operation, id string) error {
	has := ViewerOf(r).level(v)
	needs := requiredLevel(r)
	switch {
	case has >= needs:
		return nil
	case has == LevelNone:
		return store.Forbidden(operation, id)
	}
	return store.Refuse(http.StatusForbidden, store.CodeForbidden,
		"Either you need some or all of the following rights [%s] to perform operations [%s] for %s or the target entity is invalid.", needs, r.Operation, id)
}

// SeesTask reports whether a task is visible to the caller: the caller started it, or can see its entity. The tasks of
// a deleted entity are visible to its owner.
func (w VAppViewer) SeesTask(t *store.Task) bool {
	if !w.r.Session.Sees(t.OrgID) {
		return false
	}
	if w.administers || t.UserID == w.r.Session.UserID || t.OfUser == w.r.Session.UserID {
		return true
	}
	return t.OfUser == "" || w.Sees(w.r.Cloud.Store.VAppOf(t.Owner))
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// An Absence is the evidence that a VM or vApp is gone: the results of the requests for it. VCD responds in the same
// way to a request for a deleted object and for one that the user may not see, and it grants access per vApp. Therefore
// no single result is proof.
type Absence struct {
	Shown          bool // reading it by its URN succeeded; no further requests were sent
	Listed         bool // a query of the organization by its ID found it; no further requests were sent
	ScopeShown     bool // its VDC is visible
	ScopeGone      bool // its VDC is not visible to a user who can see all VDCs
	HomeShown      bool // the vApp of the VM is visible
	HomeHolds      bool // its vApp lists the VM
	SiblingsHidden bool // other VMs of the cluster are known, and none of those read is visible
	SeesAll        bool // the user can see the vApps of all owners, and sees one in the VDC
	Logged         bool // VCD's task log contains tasks of the VM
	Deleted        bool // according to the log, it or its vApp was deleted
}

// A Lost is a VM that may be gone.
type Lost struct {
	ID       string   // URN; empty: its creation was requested, and the response is unknown
	VDCs     []string // names or URNs of VDCs that may contain it
	VApp     string   // URN of its vApp; empty: unknown
	VAppName string   // name of its vApp in the first VDC if VApp is empty; empty: unknown
	Cluster  string   // cluster ID in the marker of that vApp
	Siblings []string // URNs of other VMs of the cluster
}

// maxSiblings is the largest number of siblings that are read until one is visible.
const maxSiblings = 3

// FindLost reads a VM. If the VM is not visible, the Absence contains the evidence.
func (s *Session) FindLost(ctx context.Context, lost Lost) (VM, Absence, error) {
	var a Absence
	if lost.ID != "" {
		vm, err := s.VMs.VM(ctx, lost.ID)
		if a.Shown, err = shown(err); a.Shown || err != nil {
			return vm, a, failure.Wrap(err, "reading", lost.ID)
		}
		_, err = s.Inventory.QueryVM(ctx, lost.ID)
		if a.Listed = err == nil; a.Listed || !errors.Is(err, ErrNotFound) {
			return VM{}, a, failure.Wrap(err, "searching the organization for", lost.ID)
		}
	}
	for _, observe := range []func(context.Context, Lost, *Absence) error{
		s.observeScope, s.observeHome, s.observeLog,
		s.observeSiblings, s.observeRights,
	} {
		if err := observe(ctx, lost, &a); err != nil {
			return VM{}, a, err
		}
	}
	return VM{}, a, nil
}

// LostVApp gathers the evidence that all vApps with the given URNs in a VDC are gone. Without URNs, it only checks
// whether the VDC is visible.
func (s *Session) LostVApp(ctx context.Context, vdc VDC, ids ...string) (Absence, error) {
	var a Absence
	for _, id := range ids {
		var err error
		if _, err = s.VApps.VApp(ctx, id); err == nil {
			return Absence{Shown: true}, nil
		}
		if _, err = shown(err); err != nil {
			return a, failure.Wrap(err, "reading", id)
		}
	}
	for _, chunk := range fiql.AnyOfChunks("id", ids, api.MaxFilter) {
		var found types.QueryResultRecordsType
		if err := s.client.QueryPage(ctx, "vApp", fiql.AnyOf(chunk...), 1, "", &found); err != nil {
			return a, fmt.Errorf("looking for vApps in the organization: %w", err)
		}
		if len(api.Both(found.VAppRecord, found.AdminVAppRecord)) > 0 {
			return Absence{Listed: true}, nil
		}
	}
	if err := s.observeScope(ctx, Lost{VDCs: []string{vdc.ID}}, &a); err != nil {
		return a, err
	}
	var err error
	if a.Deleted, err = s.allDeleted(ctx, ids); err != nil {
		return a, err
	}
	return a, s.observeRights(ctx, Lost{VDCs: []string{vdc.ID}}, &a)
}

// LostGateway gathers the evidence that an edge gateway is gone. HomeShown then means that another edge gateway is
// visible, or that the user has the rights to see all of them.
func (s *Session) LostGateway(ctx context.Context, vdc VDC, id string) (Absence, error) {
	var a Absence
	var err error
	_, err = s.Gateways.Gateway(ctx, id)
	if a.Shown, err = shown(err); a.Shown || err != nil {
		return a, failure.Wrap(err, "reading edge gateway", id)
	}
	s.Refresh()
	_, err = s.Gateways.FindGateway(ctx, id)
	if a.Listed = err == nil; a.Listed {
		return a, nil
	}
	if _, unlisted := errors.AsType[*LookupError](err); unlisted {
		a.HomeShown, err = s.seesGateways(ctx, id)
	}
	if _, err = shown(err); err != nil {
		return a, failure.Wrap(err, "listing", "edge gateways")
	}
	err = s.observeScope(ctx, Lost{VDCs: []string{vdc.ID}}, &a)
	a.ScopeShown = a.ScopeShown || a.ScopeGone
	a.ScopeGone = false // a gateway of a VDC group outlives its VDC
	return a, err
}

// seesGateways reports whether an edge gateway other than lost can be read, or whether the user can see all of them.
func (s *Session) seesGateways(ctx context.Context, lost string) (bool, error) {
	var page struct {
		Values []wireGateway `json:"values"`
	}
	if err := s.client.GetJSON(ctx, gatewaysPage, api.Params("page", "1", "pageSize", "2"), &page); err != nil {
		return false, err
	}
	for _, other := range page.Values {
		if other.ID == lost {
			return false, nil
		}
		_, err := s.Gateways.Gateway(ctx, other.ID)
		if seen, err := shown(err); seen || err != nil {
			return seen, err
		}
	}
	return s.user.holds(ctx, rightSeesAll, rightSeesGateways)
}

// allDeleted reports whether the task log shows the deletion of all URNs. It returns false without URNs.
func (s *Session) allDeleted(ctx context.Context, ids []string) (bool, error) {
	all := len(ids) > 0
	for _, id := range ids {
		tasks, err := s.log(ctx, id)
		if err != nil {
			return false, err
		}
		all = all && slices.ContainsFunc(tasks, Task.deletes)
	}
	return all, nil
}

// observeScope reads the VDCs without the cache.
func (s *Session) observeScope(ctx context.Context, lost Lost, a *Absence) error {
	s.Refresh()
	for _, vdc := range lost.VDCs {
		_, err := s.VDCs.FindVDC(ctx, vdc)
		_, unlisted := errors.AsType[*LookupError](err) // a rejected query is no evidence about the VDC
		if a.ScopeShown, err = shown(err); err != nil {
			return failure.Wrap(err, "reading VDC", vdc)
		}
		if !a.ScopeShown {
			a.ScopeGone, err = s.user.holds(ctx, rightSeesAll, rightSeesVDCs, rightSeesUnsharedVDCs)
			a.ScopeGone = a.ScopeGone && unlisted && len(lost.VDCs) == 1
			return failure.Wrap(err, "reading the rights to view VDCs, such as", vdc)
		}
	}
	return nil
}

// observeRights reads the rights of the user, and looks for a visible vApp in the VDCs, if nothing else is conclusive.
func (s *Session) observeRights(ctx context.Context, lost Lost, a *Absence) error {
	if !a.ScopeShown || a.HomeShown || a.Deleted {
		return nil
	}
	all, err := s.user.holds(ctx, rightSeesAll)
	if err != nil || !all {
		return failure.Wrap(err, "reading the rights to view vApps in", lost.VDCs[0])
	}
	var within []fiql.Term
	for _, vdc := range lost.VDCs {
		found, err := s.VDCs.FindVDC(ctx, vdc)
		if err != nil {
			return failure.Wrap(err, "reading VDC", vdc)
		}
		within = append(within, fiql.Is("vdc", found.ID))
	}
	a.SeesAll, err = s.readsAnother(ctx, lost.VApp, within)
	return failure.Wrap(err, "listing vApps in", lost.VDCs[0])
}

// readsAnother reports whether a query lists vApps other than vApp, and the first of them can be read. It returns false
// if vApp is listed.
func (s *Session) readsAnother(ctx context.Context, vApp string, within []fiql.Term) (bool, error) {
	var found types.QueryResultRecordsType
	if err := s.client.QueryPage(ctx, "vApp", fiql.AnyOf(within...), 1, "", &found); err != nil {
		return false, readable(err)
	}
	others := api.Both(found.VAppRecord, found.AdminVAppRecord)
	listed := func(r *types.QueryResultVAppRecordType) bool { return urn.Of(urn.VApp, r.HREF) == vApp }
	if len(others) == 0 || slices.ContainsFunc(others, listed) {
		return false, nil
	}
	_, err := s.VApps.VApp(ctx, urn.Of(urn.VApp, others[0].HREF))
	return shown(err)
}

// observeHome reads the vApp of the VM.
func (s *Session) observeHome(ctx context.Context, lost Lost, a *Absence) error {
	var home VApp
	var err error
	switch {
	case lost.VApp != "":
		home, err = s.VApps.VApp(ctx, lost.VApp)
	case lost.VAppName != "" && a.ScopeShown:
		home, err = s.findMarked(ctx, lost)
		a.ScopeShown = !errors.Is(err, ErrForbidden) // the user may not query vApps, so nothing counts as visible
	default:
		return nil
	}
	if a.HomeShown, err = shown(err); err != nil {
		return failure.Wrap(err, "reading the vApp of", lost.ID)
	}
	a.HomeHolds = slices.ContainsFunc(home.VMs, func(vm Ref) bool { return vm.ID == lost.ID })
	return nil
}

// findMarked finds a vApp by its name, if it has the marker of the cluster.
func (s *Session) findMarked(ctx context.Context, lost Lost) (VApp, error) {
	vdc, err := s.VDCs.FindVDC(ctx, lost.VDCs[0])
	if err != nil {
		return VApp{}, err
	}
	found, err := s.VApps.FindVApp(ctx, vdc, lost.VAppName)
	if err != nil {
		return VApp{}, err
	}
	if marker, ok := ParseMarker(found.Description); !ok || marker.Cluster != lost.Cluster {
		return VApp{}, ErrNotFound
	}
	return found, nil
}

// observeLog reads the tasks of the VM and its vApp from VCD's task log.
func (s *Session) observeLog(ctx context.Context, lost Lost, a *Absence) error {
	for _, id := range []string{lost.ID, lost.VApp} {
		if lost.ID == "" || id == "" {
			continue
		}
		tasks, err := s.log(ctx, id)
		if err != nil {
			return err
		}
		a.Deleted = a.Deleted || slices.ContainsFunc(tasks, Task.deletes)
		a.Logged = a.Logged || slices.ContainsFunc(tasks, func(t Task) bool { return t.Owner == lost.ID })
	}
	return nil
}

// log returns the tasks of an object. It returns none if tasks are not visible to the user.
func (s *Session) log(ctx context.Context, id string) ([]Task, error) {
	tasks, err := s.Tasks.History(ctx, id)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrForbidden) {
		return nil, nil
	}
	return tasks, failure.Wrap(err, "reading the tasks of", id)
}

// observeSiblings reads other VMs of the cluster until one is visible.
func (s *Session) observeSiblings(ctx context.Context, lost Lost, a *Absence) error {
	for _, id := range lost.Siblings[:min(maxSiblings, len(lost.Siblings))] {
		_, err := s.VMs.VM(ctx, id)
		seen, err := shown(err)
		if seen || err != nil {
			a.SiblingsHidden = false
			return failure.Wrap(err, "reading", id)
		}
		a.SiblingsHidden = true
	}
	return nil
}

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

// An Absence is the evidence that a VM or vApp is gone: which requests were made for it, and what each of them showed.
// VCD answers the same to a request for what was deleted as for what the user may not see, and it grants access per
// vApp, so none of them is proof on its own.
type Absence struct {
	Shown          bool // reading it by its URN succeeded; nothing else was asked then
	Listed         bool // a query of the organization by its id found it; nothing else was asked then
	ScopeShown     bool // the VDC that it was in is shown
	ScopeGone      bool // the VDC that it was in is not shown to a user who is shown all VDCs
	HomeShown      bool // the vApp that a VM was in is shown
	HomeHolds      bool // that vApp lists the VM
	SiblingsHidden bool // other VMs of the cluster are known, and none of those that were read is shown
	SeesAll        bool // the user is shown all vApps, of all owners, and some vApp in the VDC
	Logged         bool // VCD's log has tasks that worked on the VM
	Deleted        bool // according to the log it was deleted, or its vApp was
}

// A Lost is a VM that may be gone.
type Lost struct {
	ID       string   // URN; empty: its creation was requested, and the answer is not known
	VDCs     []string // names or URNs of those that it may be in
	VApp     string   // URN of its vApp; empty: not known
	VAppName string   // of its vApp in the first VDC if no URN is known; empty: not known
	Cluster  string   // id of the cluster in the marker of that vApp
	Siblings []string // URNs of other VMs of the cluster
}

// askedSiblings is how many siblings are read until one is shown.
const askedSiblings = 3

// FindLost reads a VM. If VCD does not show it, the absence says what it showed instead.
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

// LostVApp gathers the evidence that the vApps of some URNs in a VDC are gone, all of them. Without URNs it is whether
// the VDC is shown.
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

// LostGateway gathers the evidence that an edge gateway is gone. Its home is the set of all that the user is shown:
// another one, or the rights by which all are.
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
	a.ScopeGone = false // a gateway of a VDC group survives its VDC
	return a, err
}

// seesGateways reports whether another edge gateway than one can be read, or all are shown to the user.
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

// allDeleted reports whether the log shows of each URN that it was deleted; false without URNs.
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

// observeScope asks for the VDCs anew.
func (s *Session) observeScope(ctx context.Context, lost Lost, a *Absence) error {
	s.Refresh()
	for _, vdc := range lost.VDCs {
		_, err := s.VDCs.FindVDC(ctx, vdc)
		_, unlisted := errors.AsType[*LookupError](err) // a refused query shows nothing about the VDC
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

// observeRights asks for the rights of the user, and for a vApp in the VDCs that they show, where nothing else decides.
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

// readsAnother reports whether a query for vApps lists others than one, and the first of them can be read.
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

// observeHome asks for the vApp that the VM was in.
func (s *Session) observeHome(ctx context.Context, lost Lost, a *Absence) error {
	var home VApp
	var err error
	switch {
	case lost.VApp != "":
		home, err = s.VApps.VApp(ctx, lost.VApp)
	case lost.VAppName != "" && a.ScopeShown:
		home, err = s.findMarked(ctx, lost)
		a.ScopeShown = !errors.Is(err, ErrForbidden) // a user who may not ask is shown nothing
	default:
		return nil
	}
	if a.HomeShown, err = shown(err); err != nil {
		return failure.Wrap(err, "reading the vApp of", lost.ID)
	}
	a.HomeHolds = slices.ContainsFunc(home.VMs, func(vm Ref) bool { return vm.ID == lost.ID })
	return nil
}

// findMarked finds a vApp by its name, if it has the cluster's marker.
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

// observeLog asks what VCD's log has of the VM and its vApp.
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

// log returns the tasks of an object; none if VCD does not show tasks to the user.
func (s *Session) log(ctx context.Context, id string) ([]Task, error) {
	tasks, err := s.Tasks.History(ctx, id)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrForbidden) {
		return nil, nil
	}
	return tasks, failure.Wrap(err, "reading the tasks of", id)
}

// observeSiblings asks for other VMs of the cluster until one is shown.
func (s *Session) observeSiblings(ctx context.Context, lost Lost, a *Absence) error {
	for _, id := range lost.Siblings[:min(askedSiblings, len(lost.Siblings))] {
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

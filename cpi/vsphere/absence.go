// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
)

// Get reads one VM, at any place in a vCenter. The absence of a VM is only proved if all vCenters report it.
func (m *Machines) Get(ctx context.Context, providerID string) (cpi.Machine, error) {
	uuids, err := parseProviderID(providerID)
	if err != nil {
		return cpi.Machine{}, err
	}
	all, err := m.Snapshot(ctx, 0)
	for _, machine := range all {
		if slices.Contains(uuids, machine.SystemUUIDs[0]) {
			return machine, nil
		}
	}
	if err != nil {
		return cpi.Machine{}, err
	}
	evidence, err := m.absence(ctx, uuids, all)
	if err != nil {
		return cpi.Machine{}, err
	}
	return cpi.Machine{}, &cpi.AbsenceError{Evidence: evidence}
}

// absence collects evidence about a VM that a complete snapshot does not contain.
func (m *Machines) absence(ctx context.Context, uuids []string, all []cpi.Machine) (gone.Evidence, error) {
	if m.opts.KeepNodes {
		return gone.Evidence{}, errors.New("no Node is deleted while SKIP_NODE_DELETION is set")
	}
	evidence := gone.Evidence{ScopeShown: true, SeesAll: true}
	for i, s := range m.sessions {
		err := s.use(ctx, func(c *connection) error { return m.absenceIn(ctx, i, c, uuids, &evidence) })
		if err != nil {
			return evidence, fmt.Errorf("vCenter %s: %w", s.Name, err)
		}
	}
	evidence.HomeShown = m.showSiblings(uuids, all) || evidence.SeesAll
	evidence.Logged = evidence.Deleted || evidence.SeesAll
	return evidence, nil
}

// absenceIn adds the evidence of one vCenter.
func (m *Machines) absenceIn(
	ctx context.Context, i int, c *connection, uuids []string, evidence *gone.Evidence,
) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, uuid := range uuids {
		if err := m.absenceAt(ctx, i, c, uuid, evidence); err != nil {
			return err
		}
		_, found, err := findUUID(ctx, c, uuid)
		if err != nil {
			return err
		}
		evidence.Listed = evidence.Listed || found
	}
	m.mu.Lock()
	unknown := m.unknown[m.opts.VCenters[i].Name]
	m.mu.Unlock()
	if unknown > 0 && !evidence.Deleted { // it may be a VM whose files vCenter cannot read
		evidence.Listed = true
	}
	if !evidence.SeesAll {
		return nil
	}
	all, err := seesAll(ctx, c)
	evidence.SeesAll = all
	return err
}

// absenceAt adds the evidence of the vCenter where a VM was last seen.
func (m *Machines) absenceAt(ctx context.Context, i int, c *connection, uuid string, evidence *gone.Evidence) error {
	m.mu.Lock()
	home, known := m.homes[uuid]
	m.mu.Unlock()
	if !known || home.vCenter != i {
		return nil
	}
	shown, deleted, err := exists(ctx, c, home.ref)
	if err != nil {
		return err
	}
	if deleted {
		if deleted, err = m.checkNotMigrated(ctx, i, c, home.ref); err != nil {
			return err
		}
	}
	evidence.Deleted = evidence.Deleted || deleted
	evidence.HomeHolds = evidence.HomeHolds || !shown && !deleted
	evidence.Listed = evidence.Listed || shown
	return nil
}

// checkNotMigrated returns true if the event log of a vCenter shows no migration of a VM to another vCenter, where it
// would run on with the same UUID. If it shows one, checkNotMigrated returns an error. It returns false if the user may
// not read the events.
func (m *Machines) checkNotMigrated(
	ctx context.Context, i int, c *connection, ref types.ManagedObjectReference,
) (bool, error) {
	left := types.EventFilterSpec{EventTypeId: []string{"VmEmigratingEvent"}}
	events, err := event.NewManager(c.client).QueryEvents(ctx, left)
	switch {
	case hasFault(err, &types.NoPermission{}):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading events: %w", err)
	}
	for _, e := range events {
		if vm := e.GetEvent().Vm; vm != nil && vm.Vm == ref {
			return false, &cpi.ElsewhereError{Message: fmt.Sprintf("it was migrated from vCenter %s to another one, so its Node is kept: add that vCenter to the configuration, or delete the Node", m.opts.VCenters[i].Name)}
		}
	}
	return true, nil
}

// showSiblings reports whether every vCenter shows the VM of another Node, because the VM may have been in any of them.
func (m *Machines) showSiblings(uuids []string, all []cpi.Machine) bool {
	nodes := map[string]bool{}
	for _, id := range m.opts.NodeIDs() {
		others, _ := parseProviderID(id)
		for _, uuid := range others {
			nodes[uuid] = !slices.Contains(uuids, uuid)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	showing := map[int]bool{}
	for _, machine := range all {
		if uuid := machine.SystemUUIDs[0]; nodes[uuid] {
			showing[m.homes[uuid].vCenter] = true
		}
	}
	return len(showing) == len(m.sessions)
}

// seesAll reports whether the user may see everything in a vCenter. This requires a permission of the user itself on
// the root folder, which overrides those of its groups, allows reading and propagates. Permissions of groups prove
// nothing, because their members are unknown.
func seesAll(ctx context.Context, c *connection) (bool, error) {
	manager := object.NewAuthorizationManager(c.client)
	current, err := c.session.UserSession(ctx)
	if err != nil || current == nil {
		return false, err
	}
	root := c.client.ServiceContent.RootFolder
	permissions, err := manager.RetrieveEntityPermissions(ctx, root, false)
	if hasFault(err, &types.NoPermission{}) {
		return false, nil
	}
	propagates := slices.ContainsFunc(permissions, func(p types.Permission) bool {
		return !p.Group && p.Propagate && strings.EqualFold(p.Principal, current.UserName)
	})
	if err != nil || !propagates {
		return false, err
	}
	return reads(ctx, manager, root, current.UserName)
}

// reads reports whether a user may read an object.
func reads(
	ctx context.Context, manager *object.AuthorizationManager, ref types.ManagedObjectReference, user string,
) (bool, error) {
	result, err := manager.HasUserPrivilegeOnEntities(ctx, []types.ManagedObjectReference{ref}, user,
		[]string{"System.View", "System.Read"})
	if hasFault(err, &types.NoPermission{}) {
		return false, nil
	}
	if err != nil || len(result) == 0 {
		return false, err
	}
	for _, p := range result[0].PrivAvailability {
		if !p.IsGranted {
			return false, nil
		}
	}
	return len(result[0].PrivAvailability) > 0, nil
}

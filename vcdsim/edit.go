// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An Editor changes the simulated state without requests or tasks. It is valid only inside Edit.
type Editor struct {
	// Model is the live model. Callers may change passwords, policies and pools, and delete templates, networks and
	// VDCs.
	Model *store.Model

	cloud *cloud.Cloud
}

// Edit calls f while holding the simulator's lock. f must not call methods of the Simulator.
func (s *Simulator) Edit(f func(*Editor)) {
	s.cloud.Mu.Lock()
	defer s.cloud.Mu.Unlock()
	f(&Editor{Model: &s.cloud.Store.Model, cloud: s.cloud})
	s.cloud.IDs.Fill(&s.cloud.Store.Model)
	s.cloud.Settle()
}

// VM returns the live VM with an ID (bare or URN) or a name, or nil if it does not exist.
func (e *Editor) VM(idOrName string) *store.VM {
	if vm := e.cloud.Store.VMs[store.Bare(idOrName)]; vm != nil {
		return vm
	}
	for _, vm := range store.Sorted(e.cloud.Store.VMs) {
		if vm.Name == idOrName {
			return vm
		}
	}
	return nil
}

// VApp returns the live vApp with an ID or a name, or nil if it does not exist.
func (e *Editor) VApp(idOrName string) *store.VApp {
	if v := e.cloud.Store.VApps[store.Bare(idOrName)]; v != nil {
		return v
	}
	for _, v := range store.Sorted(e.cloud.Store.VApps) {
		if v.Name == idOrName {
			return v
		}
	}
	return nil
}

// VDC returns the live VDC with a name, including its networks, or nil if it does not exist.
func (e *Editor) VDC(name string) *store.VDC {
	for o := range e.cloud.Store.Model.Orgs {
		for v := range e.cloud.Store.Model.Orgs[o].VDCs {
			if vdc := &e.cloud.Store.Model.Orgs[o].VDCs[v]; vdc.Name == name {
				return vdc
			}
		}
	}
	return nil
}

// PowerOff stops a VM at once, as a failing host would.
func (e *Editor) PowerOff(vm *store.VM) {
	machines.VMsOf(e.cloud).SetPower(vm, store.PoweredOff, false)
	vm.Deployed = false
	machines.LeasesOf(e.cloud).DeployedChanged(e.cloud.Store.VApps[vm.VAppID])
}

// PowerOn starts a VM at once.
func (e *Editor) PowerOn(vm *store.VM) {
	machines.VMsOf(e.cloud).SetPower(vm, store.PoweredOn, false)
	machines.LeasesOf(e.cloud).DeployedChanged(e.cloud.Store.VApps[vm.VAppID])
}

// DeleteVM removes a VM without a trace.
func (e *Editor) DeleteVM(vm *store.VM) {
	machines.VMsOf(e.cloud).Remove(vm)
	machines.LeasesOf(e.cloud).DeployedChanged(e.cloud.Store.VApps[vm.VAppID])
}

// MoveVM puts a VM into another vApp.
func (e *Editor) MoveVM(vm *store.VM, to *store.VApp) {
	from := e.cloud.Store.VApps[vm.VAppID]
	e.cloud.Store.RemoveVM(vm)
	vm.VAppID = to.ID
	e.cloud.Store.AddVM(vm)
	machines.LeasesOf(e.cloud).DeployedChanged(from)
	machines.LeasesOf(e.cloud).DeployedChanged(to)
}

// DeleteVApp removes a vApp and its VMs without a trace.
func (e *Editor) DeleteVApp(v *store.VApp) { machines.VAppsOf(e.cloud).Remove(v) }

// SetOwner transfers a vApp to another user of its organization.
func (e *Editor) SetOwner(v *store.VApp, user string) {
	e.user(e.cloud.Store.Org(v.OrgID).Name, user, func(u *store.User) { v.OwnerID = u.ID })
}

// Share shares a vApp with a user of its organization at level ReadOnly, Change or FullControl; "" revokes the
// access.
func (e *Editor) Share(v *store.VApp, user, level string) {
	e.user(e.cloud.Store.Org(v.OrgID).Name, user, func(u *store.User) {
		a := e.cloud.Store.Access[v.ID]
		a.ID = v.ID
		a.Grants = slices.DeleteFunc(slices.Clone(a.Grants), func(g store.Grant) bool { return g.ID == u.ID })
		if level != "" {
			a.Grants = append(a.Grants,
				store.Grant{Kind: "user", ID: u.ID, Name: u.Name, MediaType: api.AdminUserType, Level: level})
		}
		e.cloud.Store.Access[v.ID] = a
	})
}

// ExpireSessions ends every session. The next request of each client fails with 401.
func (e *Editor) ExpireSessions() { clear(e.cloud.Store.Sessions) }

// SetPassword changes the password of a user.
func (e *Editor) SetPassword(org, user, password string) {
	e.user(org, user, func(u *store.User) { u.Password = password })
}

// SetRole gives a user another role. Existing sessions keep their role.
func (e *Editor) SetRole(org, user, role string) {
	e.user(org, user, func(u *store.User) { u.Role = role })
}

// SetAPITokens replaces the API tokens of a user.
func (e *Editor) SetAPITokens(org, user string, tokens ...string) {
	e.user(org, user, func(u *store.User) { u.APITokens = tokens })
}

func (e *Editor) user(org, user string, f func(*store.User)) {
	o := e.cloud.Store.OrgByName(org)
	if o == nil {
		return
	}
	for i := range o.Users {
		if o.Users[i].Name == user {
			f(&o.Users[i])
		}
	}
}

// DeleteTemplate removes a template from every catalog.
func (e *Editor) DeleteTemplate(name string) {
	for _, sh := range e.cloud.Store.Catalogs() {
		sh.Catalog.Templates = slices.DeleteFunc(sh.Catalog.Templates, func(t store.Template) bool { return t.Name == name })
	}
}

// Assumptions returns the live assumptions.
func (e *Editor) Assumptions() *Assumptions { return &e.cloud.Assume }

// CopyVApp adds a copy of a vApp with its VMs, as another client might create it: with new names and IDs, and without
// a description, independent disks or pool addresses. Names of its VMs start with the name of the vApp.
func (e *Editor) CopyVApp(v *store.VApp, name string) *store.VApp {
	c := v.Clone()
	c.ID = e.cloud.IDs.Next("vapp")
	c.Name = name
	c.Description = ""
	for i := range c.Networks {
		c.Networks[i].ID = e.cloud.IDs.Next("network")
	}
	e.cloud.Store.VApps[c.ID] = &c
	for _, vm := range e.cloud.Store.VMsOf(v.ID) {
		d := vm.Clone()
		d.ID = e.cloud.IDs.Next("vm")
		d.Name = name + "-" + vm.Name
		d.Description = ""
		d.VAppID = c.ID
		for i := range d.NICs {
			d.NICs[i].Mode = store.ModeNone
			d.NICs[i].Address = ""
		}
		e.cloud.Store.AddVM(&d)
	}
	return &c
}

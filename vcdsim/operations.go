package vcdsim

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// Work is what a task will do when it ends, as plain data. Op is the key of operations; the other fields are set as
// the operation needs them.
type Work struct {
	Op       string
	VApp     string
	VM       string
	Disk     string
	VMs      []string // to be made, or to be acted on
	Remove   []string // VMs to be deleted
	Networks []VAppNetwork
	Replace  bool // Networks are all networks, not further ones
	PowerOn  bool
	Power    Status // state the VMs go to
	Name     string
	Change   *vmChange
	Lease    *Lease
	Metadata map[string]Metadata
	Forget   []string // metadata keys to remove
	DiskSpec *Disk
	Affinity *AffinityRule // what a rule becomes
	Describe *string       // new description

	Properties map[string]Property

	// Of what cloudapi keeps as JSON.

	Document string         // its id
	Body     map[string]any // what it becomes
	Creates  bool           // the task makes its owner
}

// forget drops what only the work itself needs: tasks are kept for long, and what is written to VMs is large and
// secret.
func (w *Work) forget() {
	w.Networks, w.Change, w.Metadata, w.DiskSpec, w.Affinity, w.Body, w.Properties = nil, nil, nil, nil, nil, nil, nil
}

// Operations by key.
const (
	opCompose     = "compose"
	opRecompose   = "recompose"
	opComposeVMs  = "composeVMs"
	opInstantiate = "instantiate"
	opUpdateVApp  = "updateVApp"
	opNetworks    = "networks"
	opLease       = "lease"
	opProducts    = "products"
	opDeleteVApp  = "deleteVApp"
	opDeploy      = "deploy"
	opUndeploy    = "undeploy"
	opPowerOff    = "powerOff"
	opShutdown    = "shutdown"
	opSuspend     = "suspend"
	opReset       = "reset"
	opReboot      = "reboot"
	opUpdateVM    = "updateVM"
	opDeleteVM    = "deleteVM"
	opGuestWrite  = "guestWrite"
	opAttach      = "attach"
	opDetach      = "detach"
	opCreateDisk  = "createDisk"
	opUpdateDisk  = "updateDisk"
	opDeleteDisk  = "deleteDisk"
	opMetadata    = "metadata"
	// opCreateEntity runs until the entity is resolved.
	opCreateEntity = "createEntity"
	opInvoke       = "invoke"
	// opDone is for changes that are complete when their task begins, mostly administration.
	opDone = "done"
)

const cloneSpread = 0.3

// awaits reports whether an operation has no duration: another event ends it.
func awaits(op string) bool { return op == opCreateEntity || op == opUpload }

// operations describes every operation by its key.
func operations() map[string]operation {
	out := map[string]operation{
		opCompose: {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationCompose, 0, commitCompose, undoCompose},
		// Cloning takes the same time in a compose.
		opComposeVMs:   {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationRecompose, cloneSpread, commitCompose, undoCompose},
		opRecompose:    {"vdcRecomposeVapp", "VDC_RECOMPOSE_VAPP", "Recomposing Virtual Application", durationRecompose, cloneSpread, commitCompose, undoRecompose},
		opInstantiate:  {"vdcInstantiateVapp", "VDC_INSTANTIATE_VAPP", "Creating Virtual Application", durationRecompose, cloneSpread, commitCompose, undoCompose},
		opUpdateVApp:   {"vdcUpdateVapp", "VDC_UPDATE_VAPP", "Updating Virtual Application", durationCompose, 0, commitCompose, nil},
		opNetworks:     {"vdcUpdateVappNetworkSection", "VDC_UPDATE_VAPP_NETWORK_SECTION", "Updating network section of Virtual Application", durationNetworks, 0, commitCompose, nil},
		opLease:        {"vappUpdateLease", "VDC_UPDATE_VAPP", "Updating lease of Virtual Application", durationLease, 0, commitLease, nil},
		opProducts:     {"vappUpdateProductSections", "VDC_UPDATE_VAPP", "Updating product sections of Virtual Application", durationLease, 0, commitProducts, nil},
		opDeleteVApp:   {"vdcDeleteVapp", "VDC_DELETE_VAPP", "Deleting Virtual Application", durationDelete, 0, commitDeleteVApp, nil},
		opDeploy:       {"vappDeploy", "VAPP_DEPLOY", "Starting", durationPowerOn, 0, commitPower, nil},
		opUndeploy:     {"vappUndeployPowerOff", "VAPP_UNDEPLOY_POWER_OFF", "Stopping", durationUndeploy, 0, commitPower, nil},
		opPowerOff:     {"vappPowerOff", "VAPP_POWER_OFF", "Powering off", durationPowerOff, 0, commitPower, nil},
		opShutdown:     {"vappShutdownGuest", "VAPP_SHUTDOWN_GUEST", "Shutting down", durationShutdown, 0, commitPower, nil},
		opSuspend:      {"vappSuspend", "VAPP_SUSPEND", "Suspending", durationPowerOff, 0, commitPower, nil},
		opReset:        {"vappReset", "VAPP_RESET", "Resetting", durationPowerOff, 0, commitRestart, nil},
		opReboot:       {"vappRebootGuest", "VAPP_REBOOT_GUEST", "Rebooting", durationPowerOff, 0, commitRestart, nil},
		opUpdateVM:     {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationReconfig, 0, commitChange, nil},
		opDeleteVM:     {"vappDeleteVm", "VAPP_DELETE_VM", "Deleting Virtual Machine", durationDelete, 0, commitDeleteVM, nil},
		opGuestWrite:   {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationGuestWrite, 0, func(*Simulator, *Task) error { return nil }, nil},
		opAttach:       {"vappAttachDisk", "VAPP_ATTACH_DISK", "Attaching disk to Virtual Machine", durationAttach, 0, commitAttach, nil},
		opDetach:       {"vappDetachDisk", "VAPP_DETACH_DISK", "Detaching disk from Virtual Machine", durationAttach, 0, commitDetach, nil},
		opCreateDisk:   {"vdcCreateDisk", "VDC_CREATE_DISK", "Creating Disk", durationDisk, 0, commitDisk, nil},
		opUpdateDisk:   {"vdcUpdateDisk", "VDC_UPDATE_DISK", "Updating Disk", durationDisk, 0, commitDisk, nil},
		opDeleteDisk:   {"vdcDeleteDisk", "VDC_DELETE_DISK", "Deleting Disk", durationDisk, 0, commitDeleteDisk, nil},
		opMetadata:     {"metadataUpdate", "METADATA_UPDATE", "Updating metadata of", durationMetadata, 0, commitMetadata, nil},
		opCreateEntity: {"createDefinedEntity", "CREATE_DEFINED_ENTITY", "Creating defined entity", 0, 0, func(*Simulator, *Task) error { return nil }, nil},
		opInvoke:       {"invokeDefinedEntityBehavior", "INVOKE_DEFINED_ENTITY_BEHAVIOR", "Invoking behavior on", durationMetadata, 0, commitInvoke, nil},
		opDone:         {"jobEnqueue", "JOB_ENQUEUE", "Updating", 0, 0, func(*Simulator, *Task) error { return nil }, nil},
	}
	maps.Copy(out, documentOperations())
	maps.Copy(out, networkOperations())
	maps.Copy(out, catalogOperations())
	return out
}

func gone(kind, id string) error {
	return refuse(http.StatusInternalServerError, codeInternal, "The VCD entity %s %s no longer exists.", kind, id)
}

// commitCompose ends compose, recompose and every change of a vApp as a whole.
func commitCompose(s *Simulator, t *Task) error {
	w := t.Work
	v := s.store.vapps[w.VApp]
	if v == nil {
		return gone("vApp", w.VApp)
	}
	if w.Name != "" {
		v.Name = w.Name
	}
	if w.Describe != nil {
		v.Description = *w.Describe
	}
	s.vapps.setNetworks(v, w)
	for _, id := range w.Remove {
		if vm := s.store.vms[id]; vm != nil {
			s.vms.remove(vm)
		}
	}
	for _, id := range w.VMs {
		if err := s.vms.materialise(id, w.PowerOn); err != nil {
			return err
		}
	}
	if v.Status == Unresolved {
		v.Status = Resolved
		s.leases.deployedChanged(v)
	}
	if w.PowerOn {
		s.leases.deployedChanged(v)
	}
	return nil
}

// vapps changes vApps for tasks that end.
type vapps struct{ sim *Simulator }

func (va *vapps) setNetworks(v *VApp, w Work) {
	switch {
	case w.Replace:
		v.Networks = w.Networks
		for _, vm := range va.sim.store.vmsOf(v.ID) {
			vm.disconnect(v)
		}
	default:
		for _, n := range w.Networks {
			if v.network(n.Name) == nil {
				v.Networks = append(v.Networks, n)
			}
		}
	}
}

// disconnect takes the NICs of a VM off networks that the vApp no longer has.
func (vm *VM) disconnect(v *VApp) {
	for i := range vm.NICs {
		if nic := &vm.NICs[i]; nic.Network != "none" && v.network(nic.Network) == nil {
			nic.Network, nic.Mode, nic.Address, nic.Lease, nic.Connected = "none", modeNone, "", "", false
		}
	}
}

// vms changes VMs for tasks that end.
type vms struct{ sim *Simulator }

// materialise completes a VM that a compose created: its addresses, then its power state.
func (m *vms) materialise(id string, powerOn bool) error {
	vm := m.sim.store.vms[id]
	if vm == nil {
		return gone("vm", id)
	}
	if err := m.sim.ipam.assign(vm); err != nil {
		for i := range vm.NICs {
			vm.NICs[i].Address = ""
		}
		return err
	}
	vm.Status = PoweredOff
	if powerOn {
		m.setPower(vm, PoweredOn)
	}
	return nil
}

func undoCompose(s *Simulator, t *Task) {
	if v := s.store.vapps[t.Work.VApp]; v != nil && v.Status == Unresolved {
		s.vapps.remove(v)
	}
}

func undoRecompose(s *Simulator, t *Task) {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil && vm.Status == Unresolved {
			s.vms.remove(vm)
		}
	}
}

func commitLease(s *Simulator, t *Task) error {
	v := s.store.vapps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	now := s.clock.Now()
	v.Lease.Runtime, v.Lease.Storage = t.Work.Lease.Runtime, t.Work.Lease.Storage
	// Setting a lease starts it anew.
	if !v.Lease.Deployed.IsZero() {
		v.Lease.Deployed = now
	}
	if !v.Lease.Stopped.IsZero() {
		v.Lease.Stopped = now
	}
	s.leases.watch(v)
	return nil
}

func commitDeleteVApp(s *Simulator, t *Task) error {
	v := s.store.vapps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	s.vapps.remove(v)
	return nil
}

func (va *vapps) remove(v *VApp) {
	for _, vm := range slices.Clone(va.sim.store.vmsOf(v.ID)) {
		va.sim.vms.remove(vm)
	}
	delete(va.sim.store.vapps, v.ID)
	delete(va.sim.store.children, v.ID)
}

// remove removes a VM; an independent disk that is still attached is set free, never deleted.
func (m *vms) remove(vm *VM) {
	for _, d := range vm.Disks {
		if x := m.sim.store.disks[d.DiskID]; x != nil {
			x.release(vm.ID)
		}
	}
	m.sim.store.removeVM(vm)
	m.sim.guests.notify(vm.ID, Guest.Delete)
	delete(m.sim.guests.queues, vm.ID)
}

func commitDeleteVM(s *Simulator, t *Task) error {
	vm := s.store.vms[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	s.vms.remove(vm)
	v := s.store.vapps[vm.VAppID]
	if v != nil && v.AutoNature {
		s.vapps.remove(v)
		return nil
	}
	s.leases.deployedChanged(v)
	return nil
}

// commitPower brings VMs, or a vApp with its VMs, to a power state; undeploying also releases them.
func commitPower(s *Simulator, t *Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil {
			s.vms.powerTo(vm, t.Work)
		}
	}
	v := s.store.vapps[t.Work.VApp]
	if v != nil && t.Owner.Kind == "vapp" && (t.Work.Op == opDeploy || t.Work.Op == opUndeploy) {
		v.Deployed = t.Work.Op == opDeploy
	}
	s.leases.deployedChanged(v)
	return nil
}

func (m *vms) powerTo(vm *VM, w Work) {
	if w.Power != 0 {
		m.setPower(vm, w.Power)
	}
	switch w.Op {
	case opUndeploy:
		vm.Deployed = false
	case opDeploy:
		vm.Deployed = vm.Status != Unresolved && vm.Status != FailedCreation
	}
}

// setPower changes the power state and starts or ends the guest.
func (m *vms) setPower(vm *VM, to Status) {
	if vm.Status == to || vm.Status == Unresolved || vm.Status == FailedCreation {
		return
	}
	was := vm.Status
	vm.Status = to
	switch {
	case to == PoweredOn && was == Suspended:
		vm.Deployed = true
	case to == PoweredOn:
		vm.Deployed = true
		m.sim.guests.boot(vm)
	case to == PoweredOff:
		m.sim.guests.halt(vm)
	}
}

func commitRestart(s *Simulator, t *Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil && vm.Status == PoweredOn {
			s.guests.halt(vm)
			s.guests.boot(vm)
		}
	}
	return nil
}

// locks are the entities a write to a whole vApp holds.
func (va *vapps) locks(v *VApp) []string {
	return append([]string{v.ID}, va.vmIDs(v)...)
}

func (va *vapps) vmIDs(v *VApp) []string {
	var out []string
	for _, vm := range va.sim.store.vmsOf(v.ID) {
		out = append(out, vm.ID)
	}
	return out
}

// checkIdle refuses when a vApp, or, as is assumed, one of its VMs is busy.
func (va *vapps) checkIdle(v *VApp) error {
	if va.sim.assume.VAppWaitsForVM {
		return va.sim.tasks.checkIdle(va.locks(v)...)
	}
	return va.sim.tasks.checkIdle(v.ID)
}

// checkIdle refuses when a VM, or, as is assumed, its vApp is busy.
func (m *vms) checkIdle(vm *VM) error {
	if m.sim.assume.VMWaitsForVApp || m.sim.assume.VMWriteLocksVApp {
		return m.sim.tasks.checkIdle(vm.ID, vm.VAppID)
	}
	return m.sim.tasks.checkIdle(vm.ID)
}

// locks are the entities a write to a VM holds.
func (m *vms) locks(vm *VM) []string {
	if m.sim.assume.VMWriteLocksVApp {
		return []string{vm.ID, vm.VAppID}
	}
	return []string{vm.ID}
}

// seconds reads a lease, which is written in seconds.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (v *VApp) entity() Entity { return Entity{"vapp", v.ID, v.Name} }

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

// forget drops what only doing the work needs: tasks are kept long after, and what is written to VMs is large and secret.
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
	// opDone stands for what is done when its task begins: administration, mostly.
	opDone = "done"
)

const cloneSpread = 0.3

// awaits says whether an operation takes no time of its own: something else ends it.
func awaits(op string) bool { return op == opCreateEntity || op == opUpload }

// operations describes every operation by its key.
func operations() map[string]operation {
	out := map[string]operation{
		opCompose: {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationCompose, 0, (*Simulator).commitCompose, (*Simulator).undoCompose},
		// Cloning takes as long, however it is asked for.
		opComposeVMs:   {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationRecompose, cloneSpread, (*Simulator).commitCompose, (*Simulator).undoCompose},
		opRecompose:    {"vdcRecomposeVapp", "VDC_RECOMPOSE_VAPP", "Recomposing Virtual Application", durationRecompose, cloneSpread, (*Simulator).commitCompose, (*Simulator).undoRecompose},
		opInstantiate:  {"vdcInstantiateVapp", "VDC_INSTANTIATE_VAPP", "Creating Virtual Application", durationRecompose, cloneSpread, (*Simulator).commitCompose, (*Simulator).undoCompose},
		opUpdateVApp:   {"vdcUpdateVapp", "VDC_UPDATE_VAPP", "Updating Virtual Application", durationCompose, 0, (*Simulator).commitCompose, nil},
		opNetworks:     {"vdcUpdateVappNetworkSection", "VDC_UPDATE_VAPP_NETWORK_SECTION", "Updating network section of Virtual Application", durationNetworks, 0, (*Simulator).commitCompose, nil},
		opLease:        {"vappUpdateLease", "VDC_UPDATE_VAPP", "Updating lease of Virtual Application", durationLease, 0, (*Simulator).commitLease, nil},
		opProducts:     {"vappUpdateProductSections", "VDC_UPDATE_VAPP", "Updating product sections of Virtual Application", durationLease, 0, (*Simulator).commitProducts, nil},
		opDeleteVApp:   {"vdcDeleteVapp", "VDC_DELETE_VAPP", "Deleting Virtual Application", durationDelete, 0, (*Simulator).commitDeleteVApp, nil},
		opDeploy:       {"vappDeploy", "VAPP_DEPLOY", "Starting", durationPowerOn, 0, (*Simulator).commitPower, nil},
		opUndeploy:     {"vappUndeployPowerOff", "VAPP_UNDEPLOY_POWER_OFF", "Stopping", durationUndeploy, 0, (*Simulator).commitPower, nil},
		opPowerOff:     {"vappPowerOff", "VAPP_POWER_OFF", "Powering off", durationPowerOff, 0, (*Simulator).commitPower, nil},
		opShutdown:     {"vappShutdownGuest", "VAPP_SHUTDOWN_GUEST", "Shutting down", durationShutdown, 0, (*Simulator).commitPower, nil},
		opSuspend:      {"vappSuspend", "VAPP_SUSPEND", "Suspending", durationPowerOff, 0, (*Simulator).commitPower, nil},
		opReset:        {"vappReset", "VAPP_RESET", "Resetting", durationPowerOff, 0, (*Simulator).commitRestart, nil},
		opReboot:       {"vappRebootGuest", "VAPP_REBOOT_GUEST", "Rebooting", durationPowerOff, 0, (*Simulator).commitRestart, nil},
		opUpdateVM:     {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationReconfig, 0, (*Simulator).commitChange, nil},
		opDeleteVM:     {"vappDeleteVm", "VAPP_DELETE_VM", "Deleting Virtual Machine", durationDelete, 0, (*Simulator).commitDeleteVM, nil},
		opGuestWrite:   {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationGuestWrite, 0, func(*Simulator, *Task) error { return nil }, nil},
		opAttach:       {"vappAttachDisk", "VAPP_ATTACH_DISK", "Attaching disk to Virtual Machine", durationAttach, 0, (*Simulator).commitAttach, nil},
		opDetach:       {"vappDetachDisk", "VAPP_DETACH_DISK", "Detaching disk from Virtual Machine", durationAttach, 0, (*Simulator).commitDetach, nil},
		opCreateDisk:   {"vdcCreateDisk", "VDC_CREATE_DISK", "Creating Disk", durationDisk, 0, (*Simulator).commitDisk, nil},
		opUpdateDisk:   {"vdcUpdateDisk", "VDC_UPDATE_DISK", "Updating Disk", durationDisk, 0, (*Simulator).commitDisk, nil},
		opDeleteDisk:   {"vdcDeleteDisk", "VDC_DELETE_DISK", "Deleting Disk", durationDisk, 0, (*Simulator).commitDeleteDisk, nil},
		opMetadata:     {"metadataUpdate", "METADATA_UPDATE", "Updating metadata of", durationMetadata, 0, (*Simulator).commitMetadata, nil},
		opCreateEntity: {"createDefinedEntity", "CREATE_DEFINED_ENTITY", "Creating defined entity", 0, 0, func(*Simulator, *Task) error { return nil }, nil},
		opInvoke:       {"invokeDefinedEntityBehavior", "INVOKE_DEFINED_ENTITY_BEHAVIOR", "Invoking behavior on", durationMetadata, 0, (*Simulator).commitInvoke, nil},
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
func (s *Simulator) commitCompose(t *Task) error {
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
	s.setNetworks(v, w)
	for _, id := range w.Remove {
		if vm := s.store.vms[id]; vm != nil {
			s.deleteVM(vm)
		}
	}
	for _, id := range w.VMs {
		if err := s.materialise(id, w.PowerOn); err != nil {
			return err
		}
	}
	if v.Status == Unresolved {
		v.Status = Resolved
		s.deployedChanged(v)
	}
	if w.PowerOn {
		s.deployedChanged(v)
	}
	return nil
}

func (s *Simulator) setNetworks(v *VApp, w Work) {
	switch {
	case w.Replace:
		v.Networks = w.Networks
		for _, vm := range s.store.vmsOf(v.ID) {
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

// materialise makes a VM that a compose promised real: addresses, then the power state.
func (s *Simulator) materialise(id string, powerOn bool) error {
	vm := s.store.vms[id]
	if vm == nil {
		return gone("vm", id)
	}
	if err := s.assign(vm); err != nil {
		for i := range vm.NICs {
			vm.NICs[i].Address = ""
		}
		return err
	}
	vm.Status = PoweredOff
	if powerOn {
		s.setPower(vm, PoweredOn)
	}
	return nil
}

func (s *Simulator) undoCompose(t *Task) {
	if v := s.store.vapps[t.Work.VApp]; v != nil && v.Status == Unresolved {
		s.removeVApp(v)
	}
}

func (s *Simulator) undoRecompose(t *Task) {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil && vm.Status == Unresolved {
			s.deleteVM(vm)
		}
	}
}

func (s *Simulator) commitLease(t *Task) error {
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
	s.watchLease(v)
	return nil
}

func (s *Simulator) commitDeleteVApp(t *Task) error {
	v := s.store.vapps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	s.removeVApp(v)
	return nil
}

func (s *Simulator) removeVApp(v *VApp) {
	for _, vm := range slices.Clone(s.store.vmsOf(v.ID)) {
		s.deleteVM(vm)
	}
	delete(s.store.vapps, v.ID)
	delete(s.store.children, v.ID)
}

// deleteVM removes a VM; an independent disk that is still attached is set free, never deleted.
func (s *Simulator) deleteVM(vm *VM) {
	for _, d := range vm.Disks {
		if x := s.store.disks[d.DiskID]; x != nil {
			x.release(vm.ID)
		}
	}
	s.store.removeVM(vm)
	s.tellGuest(vm.ID, Guest.Delete)
	delete(s.queues, vm.ID)
}

func (s *Simulator) commitDeleteVM(t *Task) error {
	vm := s.store.vms[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	s.deleteVM(vm)
	v := s.store.vapps[vm.VAppID]
	if v != nil && v.AutoNature {
		s.removeVApp(v)
		return nil
	}
	s.deployedChanged(v)
	return nil
}

// commitPower brings VMs, or a vApp with its VMs, to a power state; undeploying also releases them.
func (s *Simulator) commitPower(t *Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil {
			s.powerTo(vm, t.Work)
		}
	}
	v := s.store.vapps[t.Work.VApp]
	if v != nil && t.Owner.Kind == "vapp" && (t.Work.Op == opDeploy || t.Work.Op == opUndeploy) {
		v.Deployed = t.Work.Op == opDeploy
	}
	s.deployedChanged(v)
	return nil
}

func (s *Simulator) powerTo(vm *VM, w Work) {
	if w.Power != 0 {
		s.setPower(vm, w.Power)
	}
	switch w.Op {
	case opUndeploy:
		vm.Deployed = false
	case opDeploy:
		vm.Deployed = vm.Status != Unresolved && vm.Status != FailedCreation
	}
}

// setPower changes the power state and starts or ends the guest.
func (s *Simulator) setPower(vm *VM, to Status) {
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
		s.boot(vm)
	case to == PoweredOff:
		s.halt(vm)
	}
}

func (s *Simulator) commitRestart(t *Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.store.vms[id]; vm != nil && vm.Status == PoweredOn {
			s.halt(vm)
			s.boot(vm)
		}
	}
	return nil
}

// vappLocks are the entities a write to a whole vApp holds.
func (s *Simulator) vappLocks(v *VApp) []string {
	return append([]string{v.ID}, s.vmIDs(v)...)
}

func (s *Simulator) vmIDs(v *VApp) []string {
	var out []string
	for _, vm := range s.store.vmsOf(v.ID) {
		out = append(out, vm.ID)
	}
	return out
}

// vappFree refuses when a vApp, or, as is assumed, one of its VMs is busy.
func (s *Simulator) vappFree(v *VApp) error {
	if s.assume.VAppWaitsForVM {
		return s.busyCheck(s.vappLocks(v)...)
	}
	return s.busyCheck(v.ID)
}

// vmFree refuses when a VM, or, as is assumed, its vApp is busy.
func (s *Simulator) vmFree(vm *VM) error {
	if s.assume.VMWaitsForVApp || s.assume.VMWriteLocksVApp {
		return s.busyCheck(vm.ID, vm.VAppID)
	}
	return s.busyCheck(vm.ID)
}

// vmLocks are the entities a write to a VM holds.
func (s *Simulator) vmLocks(vm *VM) []string {
	if s.assume.VMWriteLocksVApp {
		return []string{vm.ID, vm.VAppID}
	}
	return []string{vm.ID}
}

// seconds reads a lease, which is written in seconds.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (v *VApp) entity() Entity { return Entity{"vapp", v.ID, v.Name} }

package vcdsim

import (
	"maps"
	"net/http"
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
		opCompose: {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationCompose, 0,
			commitCompose, undoCompose},
		// Cloning takes the same time in a compose.
		opComposeVMs: {"vdcComposeVapp", "VDC_COMPOSE_VAPP", "Composing Virtual Application", durationRecompose,
			cloneSpread, commitCompose, undoCompose},
		opRecompose: {"vdcRecomposeVapp", "VDC_RECOMPOSE_VAPP", "Recomposing Virtual Application", durationRecompose,
			cloneSpread, commitCompose, undoRecompose},
		opInstantiate: {"vdcInstantiateVapp", "VDC_INSTANTIATE_VAPP", "Creating Virtual Application",
			durationRecompose, cloneSpread, commitCompose, undoCompose},
		opUpdateVApp: {"vdcUpdateVapp", "VDC_UPDATE_VAPP", "Updating Virtual Application", durationCompose, 0,
			commitCompose, nil},
		opNetworks: {"vdcUpdateVappNetworkSection", "VDC_UPDATE_VAPP_NETWORK_SECTION",
			"Updating network section of Virtual Application", durationNetworks, 0, commitCompose, nil},
		opLease: {"vappUpdateLease", "VDC_UPDATE_VAPP", "Updating lease of Virtual Application", durationLease,
			0, commitLease, nil},
		opProducts: {"vappUpdateProductSections", "VDC_UPDATE_VAPP",
			"Updating product sections of Virtual Application", durationLease, 0, commitProducts, nil},
		opDeleteVApp: {"vdcDeleteVapp", "VDC_DELETE_VAPP", "Deleting Virtual Application", durationDelete, 0,
			commitDeleteVApp, nil},
		opDeploy: {"vappDeploy", "VAPP_DEPLOY", "Starting", durationPowerOn, 0, commitPower, nil},
		opUndeploy: {"vappUndeployPowerOff", "VAPP_UNDEPLOY_POWER_OFF", "Stopping", durationUndeploy, 0,
			commitPower, nil},
		opPowerOff: {"vappPowerOff", "VAPP_POWER_OFF", "Powering off", durationPowerOff, 0, commitPower, nil},
		opShutdown: {"vappShutdownGuest", "VAPP_SHUTDOWN_GUEST", "Shutting down", durationShutdown, 0, commitPower,
			nil},
		opSuspend: {"vappSuspend", "VAPP_SUSPEND", "Suspending", durationPowerOff, 0, commitPower, nil},
		opReset:   {"vappReset", "VAPP_RESET", "Resetting", durationPowerOff, 0, commitRestart, nil},
		opReboot:  {"vappRebootGuest", "VAPP_REBOOT_GUEST", "Rebooting", durationPowerOff, 0, commitRestart, nil},
		opUpdateVM: {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationReconfig, 0,
			commitChange, nil},
		opDeleteVM: {"vappDeleteVm", "VAPP_DELETE_VM", "Deleting Virtual Machine", durationDelete, 0,
			commitDeleteVM, nil},
		opGuestWrite: {"vappUpdateVm", "VAPP_UPDATE_VM", "Updating Virtual Machine", durationGuestWrite, 0,
			func(*Simulator, *Task) error { return nil }, nil},
		opAttach: {"vappAttachDisk", "VAPP_ATTACH_DISK", "Attaching disk to Virtual Machine", durationAttach, 0,
			commitAttach, nil},
		opDetach: {"vappDetachDisk", "VAPP_DETACH_DISK", "Detaching disk from Virtual Machine", durationAttach, 0,
			commitDetach, nil},
		opCreateDisk: {"vdcCreateDisk", "VDC_CREATE_DISK", "Creating Disk", durationDisk, 0, commitDisk, nil},
		opUpdateDisk: {"vdcUpdateDisk", "VDC_UPDATE_DISK", "Updating Disk", durationDisk, 0, commitDisk, nil},
		opDeleteDisk: {"vdcDeleteDisk", "VDC_DELETE_DISK", "Deleting Disk", durationDisk, 0, commitDeleteDisk, nil},
		opMetadata: {"metadataUpdate", "METADATA_UPDATE", "Updating metadata of", durationMetadata, 0,
			commitMetadata, nil},
		opCreateEntity: {"createDefinedEntity", "CREATE_DEFINED_ENTITY", "Creating defined entity", 0, 0,
			func(*Simulator, *Task) error { return nil }, nil},
		opInvoke: {"invokeDefinedEntityBehavior", "INVOKE_DEFINED_ENTITY_BEHAVIOR", "Invoking behavior on",
			durationMetadata, 0, commitInvoke, nil},
		opDone: {"jobEnqueue", "JOB_ENQUEUE", "Updating", 0, 0, func(*Simulator, *Task) error { return nil },
			nil},
	}
	maps.Copy(out, documentOperations())
	maps.Copy(out, networkOperations())
	maps.Copy(out, catalogOperations())
	return out
}

func gone(kind, id string) error {
	return refuse(http.StatusInternalServerError, codeInternal, "The VCD entity %s %s no longer exists.", kind, id)
}

// seconds reads a lease, which is written in seconds.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

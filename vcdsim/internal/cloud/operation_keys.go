// SPDX-License-Identifier: Apache-2.0

package cloud

// Keys of operations.
const (
	OpCompose     = "compose"
	OpRecompose   = "recompose"
	OpComposeVMs  = "composeVMs"
	OpInstantiate = "instantiate"
	OpUpdateVApp  = "updateVApp"
	OpNetworks    = "networks"
	OpLease       = "lease"
	OpProducts    = "products"
	OpDeleteVApp  = "deleteVApp"
	OpDeploy      = "deploy"
	OpUndeploy    = "undeploy"
	OpPowerOff    = "powerOff"
	OpShutdown    = "shutdown"
	OpSuspend     = "suspend"
	OpReset       = "reset"
	OpReboot      = "reboot"
	OpUpdateVM    = "updateVM"
	OpDeleteVM    = "deleteVM"
	OpGuestWrite  = "guestWrite"
	OpAttach      = "attach"
	OpDetach      = "detach"
	OpCreateDisk  = "createDisk"
	OpUpdateDisk  = "updateDisk"
	OpDeleteDisk  = "deleteDisk"
	OpMetadata    = "metadata"
	// OpCreateEntity runs until the entity is resolved.
	OpCreateEntity = "createEntity"
	OpInvoke       = "invoke"
	// OpDone is for changes that are complete when their task starts, mostly of administrators.
	OpDone = "done"
)

// Operations on catalog items, copies, affinity rules, snapshots and linked clones.
const (
	OpInsertMedia    = "insertMedia"
	OpEjectMedia     = "ejectMedia"
	OpDeleteMedia    = "deleteMedia"
	OpUpload         = "upload" // runs until the file is uploaded
	OpDeleteTemplate = "deleteTemplate"
	OpCapture        = "capture"
	OpClone          = "clone"
	OpCreateAffinity = "createAffinity"
	OpUpdateAffinity = "updateAffinity"
	OpDeleteAffinity = "deleteAffinity"
	OpCreateSnapshot = "createSnapshot"
	OpRevertSnapshot = "revertSnapshot"
	OpRemoveSnapshot = "removeSnapshot"
	OpConsolidate    = "consolidate" // copies the disks of a linked clone
)

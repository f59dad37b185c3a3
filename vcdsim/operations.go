// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "maps"

// operations describes every operation by its key.
func operations() map[string]operation {
	out := map[string]operation{
		opCompose: newOperation("vdcComposeVapp", "Composing Virtual Application", durationCompose,
			commitCompose).undoneBy(undoCompose),
		// Cloning takes the same time in a compose.
		opComposeVMs: newOperation("vdcComposeVapp", "Composing Virtual Application", durationRecompose,
			commitCompose).cloning(undoCompose),
		opRecompose: newOperation("vdcRecomposeVapp", "Recomposing Virtual Application", durationRecompose,
			commitCompose).cloning(undoRecompose),
		opInstantiate: newOperation("vdcInstantiateVapp", "Creating Virtual Application", durationRecompose,
			commitCompose).cloning(undoCompose),
		opUpdateVApp: newOperation("vdcUpdateVapp", "Updating Virtual Application", durationCompose, commitCompose),
		opNetworks: newOperation("vdcUpdateVappNetworkSection", "Updating network section of Virtual Application",
			durationNetworks, commitCompose),
		opLease: newOperation("vappUpdateLease", "Updating lease of Virtual Application", durationLease,
			commitLease).busyAs("VDC_UPDATE_VAPP"),
		opProducts: newOperation("vappUpdateProductSections", "Updating product sections of Virtual Application",
			durationLease, commitProducts).busyAs("VDC_UPDATE_VAPP"),
		opDeleteVApp: newOperation("vdcDeleteVapp", "Deleting Virtual Application", durationDelete, commitDeleteVApp),
		opDeploy:     newOperation("vappDeploy", "Starting", durationPowerOn, commitPower),
		opUndeploy:   newOperation("vappUndeployPowerOff", "Stopping", durationUndeploy, commitPower),
		opPowerOff:   newOperation("vappPowerOff", "Powering off", durationPowerOff, commitPower),
		opShutdown:   newOperation("vappShutdownGuest", "Shutting down", durationShutdown, commitPower),
		opSuspend:    newOperation("vappSuspend", "Suspending", durationPowerOff, commitPower),
		opReset:      newOperation("vappReset", "Resetting", durationPowerOff, commitRestart),
		opReboot:     newOperation("vappRebootGuest", "Rebooting", durationPowerOff, commitRestart),
		opUpdateVM:   newOperation("vappUpdateVm", "Updating Virtual Machine", durationReconfig, commitChange),
		opDeleteVM:   newOperation("vappDeleteVm", "Deleting Virtual Machine", durationDelete, commitDeleteVM),
		opGuestWrite: newOperation("vappUpdateVm", "Updating Virtual Machine", durationGuestWrite, nothing),
		opAttach: newOperation("vappAttachDisk", "Attaching disk to Virtual Machine", durationAttach,
			commitAttach),
		opDetach: newOperation("vappDetachDisk", "Detaching disk from Virtual Machine", durationAttach,
			commitDetach),
		opCreateDisk:   newOperation("vdcCreateDisk", "Creating Disk", durationDisk, commitDisk),
		opUpdateDisk:   newOperation("vdcUpdateDisk", "Updating Disk", durationDisk, commitDisk),
		opDeleteDisk:   newOperation("vdcDeleteDisk", "Deleting Disk", durationDisk, commitDeleteDisk),
		opMetadata:     newOperation("metadataUpdate", "Updating metadata of", durationMetadata, commitMetadata),
		opCreateEntity: newOperation("createDefinedEntity", "Creating defined entity", 0, nothing),
		opInvoke: newOperation("invokeDefinedEntityBehavior", "Invoking behavior on", durationMetadata,
			commitInvoke),
		opDone: newOperation("jobEnqueue", "Updating", 0, nothing),
	}
	maps.Copy(out, documentOperations())
	maps.Copy(out, networkOperations())
	maps.Copy(out, catalogOperations())
	return out
}

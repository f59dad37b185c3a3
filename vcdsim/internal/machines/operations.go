// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
)

// Operations returns the operations on vApps, VMs, disks, metadata and affinity rules.
func Operations() map[string]cloud.Operation {
	return map[string]cloud.Operation{
		cloud.OpCompose: cloud.NewOperation("vdcComposeVapp", "Composing Virtual Application", cloud.DurationCompose,
			CommitCompose).UndoneBy(UndoCompose),
		// Cloning takes as long in a compose as in a recompose.
		cloud.OpComposeVMs: cloud.NewOperation("vdcComposeVapp", "Composing Virtual Application", cloud.DurationRecompose,
			CommitCompose).Cloning(UndoCompose),
		cloud.OpRecompose: cloud.NewOperation("vdcRecomposeVapp", "Recomposing Virtual Application", cloud.DurationRecompose,
			CommitCompose).Cloning(undoRecompose),
		cloud.OpInstantiate: cloud.NewOperation("vdcInstantiateVapp", "Creating Virtual Application", cloud.DurationRecompose,
			CommitCompose).Cloning(UndoCompose),
		cloud.OpUpdateVApp: cloud.NewOperation("vdcUpdateVapp", "Updating Virtual Application", cloud.DurationCompose, CommitCompose),
		cloud.OpNetworks: cloud.NewOperation("vdcUpdateVappNetworkSection", "Updating network section of Virtual Application",
			cloud.DurationNetworks, CommitCompose),
		cloud.OpLease: cloud.NewOperation("vappUpdateLease", "Updating lease of Virtual Application", cloud.DurationLease,
			commitLease).BusyAs("VDC_UPDATE_VAPP"),
		cloud.OpProducts: cloud.NewOperation("vappUpdateProductSections", "Updating product sections of Virtual Application",
			cloud.DurationLease, commitProducts).BusyAs("VDC_UPDATE_VAPP"),
		cloud.OpDeleteVApp: cloud.NewOperation("vdcDeleteVapp", "Deleting Virtual Application", cloud.DurationDelete, commitDeleteVApp),
		cloud.OpDeploy:     cloud.NewOperation("vappDeploy", "Starting", cloud.DurationPowerOn, commitPower),
		cloud.OpUndeploy:   cloud.NewOperation("vappUndeployPowerOff", "Stopping", cloud.DurationUndeploy, commitPower),
		cloud.OpPowerOff:   cloud.NewOperation("vappPowerOff", "Powering off", cloud.DurationPowerOff, commitPower),
		cloud.OpShutdown:   cloud.NewOperation("vappShutdownGuest", "Shutting down", cloud.DurationShutdown, commitPower),
		cloud.OpSuspend:    cloud.NewOperation("vappSuspend", "Suspending", cloud.DurationPowerOff, commitPower),
		cloud.OpReset:      cloud.NewOperation("vappReset", "Resetting", cloud.DurationPowerOff, commitRestart),
		cloud.OpReboot:     cloud.NewOperation("vappRebootGuest", "Rebooting", cloud.DurationPowerOff, commitRestart),
		cloud.OpUpdateVM:   cloud.NewOperation("vappUpdateVm", "Updating Virtual Machine", cloud.DurationReconfig, commitChange),
		cloud.OpDeleteVM:   cloud.NewOperation("vappDeleteVm", "Deleting Virtual Machine", cloud.DurationDelete, commitDeleteVM),
		cloud.OpGuestWrite: cloud.NewOperation("vappUpdateVm", "Updating Virtual Machine", cloud.DurationGuestWrite, cloud.Nothing),
		cloud.OpAttach: cloud.NewOperation("vappAttachDisk", "Attaching disk to Virtual Machine", cloud.DurationAttach,
			commitAttach),
		cloud.OpDetach: cloud.NewOperation("vappDetachDisk", "Detaching disk from Virtual Machine", cloud.DurationAttach,
			commitDetach),
		cloud.OpCreateDisk: cloud.NewOperation("vdcCreateDisk", "Creating Disk", cloud.DurationDisk, commitDisk),
		cloud.OpUpdateDisk: cloud.NewOperation("vdcUpdateDisk", "Updating Disk", cloud.DurationDisk, commitDisk),
		cloud.OpDeleteDisk: cloud.NewOperation("vdcDeleteDisk", "Deleting Disk", cloud.DurationDisk, commitDeleteDisk),
		cloud.OpMetadata:   cloud.NewOperation("metadataUpdate", "Updating metadata of", cloud.DurationMetadata, commitMetadata),
		cloud.OpCreateAffinity: cloud.NewOperation("vdcCreateVmAffinityRule", "Creating affinity rule", cloud.DurationReconfig,
			commitAffinity),
		cloud.OpUpdateAffinity: cloud.NewOperation("vdcUpdateVmAffinityRule", "Updating affinity rule", cloud.DurationReconfig,
			commitAffinity),
		cloud.OpDeleteAffinity: cloud.NewOperation("vdcDeleteVmAffinityRule", "Deleting affinity rule", cloud.DurationReconfig,
			commitAffinity),
		cloud.OpConsolidate: cloud.NewOperation("vappConsolidateVm", "Consolidating Virtual Machine", cloud.DurationConsolidate,
			commitConsolidate),
		cloud.OpCreateSnapshot: cloud.NewOperation("vappCreateSnapshot", "Creating snapshot of", cloud.DurationReconfig, commitSnapshot),
		cloud.OpRevertSnapshot: cloud.NewOperation("vappRevertToCurrentSnapshot", "Reverting to snapshot of", cloud.DurationReconfig,
			commitSnapshot).BusyAs("VAPP_REVERT_SNAPSHOT"),
		cloud.OpRemoveSnapshot: cloud.NewOperation("vappRemoveAllSnapshots", "Removing snapshot of", cloud.DurationReconfig,
			commitSnapshot).BusyAs("VAPP_REMOVE_SNAPSHOT"),
	}
}

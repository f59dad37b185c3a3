package vcdsim

// Operations on catalog items, copies, affinity rules and snapshots.
const (
	opInsertMedia    = "insertMedia"
	opEjectMedia     = "ejectMedia"
	opDeleteMedia    = "deleteMedia"
	opUpload         = "upload" // runs until the bytes are there
	opDeleteTemplate = "deleteTemplate"
	opCapture        = "capture"
	opClone          = "clone"
	opCreateAffinity = "createAffinity"
	opUpdateAffinity = "updateAffinity"
	opDeleteAffinity = "deleteAffinity"
	opCreateSnapshot = "createSnapshot"
	opRevertSnapshot = "revertSnapshot"
	opRemoveSnapshot = "removeSnapshot"
)

// catalogOperations are those on catalog items, the drives they are inserted in, copies, affinity rules and snapshots.
func catalogOperations() map[string]operation {
	return map[string]operation{
		opInsertMedia: {"vappInsertCdFloppy", "VAPP_INSERT_CD_FLOPPY", "Inserting media into Virtual Machine",
			durationReconfig, 0, commitMedia, nil},
		opEjectMedia: {"vappEjectCdFloppy", "VAPP_EJECT_CD_FLOPPY", "Ejecting media from Virtual Machine",
			durationReconfig, 0, commitMedia, nil},
		opDeleteMedia: {"vdcDeleteMedia", "VDC_DELETE_MEDIA", "Deleting Media", durationDelete, 0, commitDeleteMedia,
			nil},
		opUpload: {"vdcUploadOvfContents", "VDC_UPLOAD_OVF_CONTENTS", "Importing", 0, 0, commitUpload,
			undoUpload},
		opDeleteTemplate: {"vdcDeleteTemplate", "VDC_DELETE_TEMPLATE", "Deleting Virtual Application Template",
			durationDelete, 0, commitDeleteTemplate, nil},
		opCapture: {"vdcCaptureTemplate", "VDC_CAPTURE_TEMPLATE", "Capturing Virtual Application Template",
			durationRecompose, cloneSpread, commitCapture, undoCapture},
		opClone: {"vdcCopyVapp", "VDC_COPY_VAPP", "Copying Virtual Application", durationRecompose,
			cloneSpread, commitClone, undoCompose},
		opCreateAffinity: {"vdcCreateVmAffinityRule", "VDC_CREATE_VM_AFFINITY_RULE", "Creating affinity rule",
			durationReconfig, 0, commitAffinity, nil},
		opUpdateAffinity: {"vdcUpdateVmAffinityRule", "VDC_UPDATE_VM_AFFINITY_RULE", "Updating affinity rule",
			durationReconfig, 0, commitAffinity, nil},
		opDeleteAffinity: {"vdcDeleteVmAffinityRule", "VDC_DELETE_VM_AFFINITY_RULE", "Deleting affinity rule",
			durationReconfig, 0, commitAffinity, nil},
		opCreateSnapshot: {"vappCreateSnapshot", "VAPP_CREATE_SNAPSHOT", "Creating snapshot of", durationReconfig, 0,
			commitSnapshot, nil},
		opRevertSnapshot: {"vappRevertToCurrentSnapshot", "VAPP_REVERT_SNAPSHOT", "Reverting to snapshot of",
			durationReconfig, 0, commitSnapshot, nil},
		opRemoveSnapshot: {"vappRemoveAllSnapshots", "VAPP_REMOVE_SNAPSHOT", "Removing snapshot of", durationReconfig,
			0, commitSnapshot, nil},
	}
}

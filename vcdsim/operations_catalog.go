// SPDX-License-Identifier: Apache-2.0

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

// catalogOperations are the operations on catalog items, the drives they are inserted in, and copies.
func catalogOperations() map[string]operation {
	return map[string]operation{
		opInsertMedia: newOperation("vappInsertCdFloppy", "Inserting media into Virtual Machine", durationReconfig,
			commitMedia),
		opEjectMedia: newOperation("vappEjectCdFloppy", "Ejecting media from Virtual Machine", durationReconfig,
			commitMedia),
		opDeleteMedia: newOperation("vdcDeleteMedia", "Deleting Media", durationDelete, commitDeleteMedia),
		opUpload:      newOperation("vdcUploadOvfContents", "Importing", 0, commitUpload).undoneBy(undoUpload),
		opDeleteTemplate: newOperation("vdcDeleteTemplate", "Deleting Virtual Application Template", durationDelete,
			commitDeleteTemplate),
		opCapture: newOperation("vdcCaptureTemplate", "Capturing Virtual Application Template",
			durationRecompose, commitCapture).cloning(undoCapture),
		opClone: newOperation("vdcCopyVapp", "Copying Virtual Application", durationRecompose,
			commitClone).cloning(undoCompose),
	}
}

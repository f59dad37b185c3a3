package vcdsim

// Operations on catalog items and copies.
const (
	opInsertMedia    = "insertMedia"
	opEjectMedia     = "ejectMedia"
	opDeleteMedia    = "deleteMedia"
	opUpload         = "upload" // runs until the bytes are there
	opDeleteTemplate = "deleteTemplate"
	opCapture        = "capture"
	opClone          = "clone"
)

// catalogOperations are those on catalog items, the drives they are inserted in and copies.
func catalogOperations() map[string]operation {
	return map[string]operation{
		opInsertMedia:    {"vappInsertCdFloppy", "VAPP_INSERT_CD_FLOPPY", "Inserting media into Virtual Machine", durationReconfig, 0, (*Simulator).commitMedia, nil},
		opEjectMedia:     {"vappEjectCdFloppy", "VAPP_EJECT_CD_FLOPPY", "Ejecting media from Virtual Machine", durationReconfig, 0, (*Simulator).commitMedia, nil},
		opDeleteMedia:    {"vdcDeleteMedia", "VDC_DELETE_MEDIA", "Deleting Media", durationDelete, 0, (*Simulator).commitDeleteMedia, nil},
		opUpload:         {"vdcUploadOvfContents", "VDC_UPLOAD_OVF_CONTENTS", "Importing", 0, 0, (*Simulator).commitUpload, (*Simulator).undoUpload},
		opDeleteTemplate: {"vdcDeleteTemplate", "VDC_DELETE_TEMPLATE", "Deleting Virtual Application Template", durationDelete, 0, (*Simulator).commitDeleteTemplate, nil},
		opCapture:        {"vdcCaptureTemplate", "VDC_CAPTURE_TEMPLATE", "Capturing Virtual Application Template", durationRecompose, cloneSpread, (*Simulator).commitCapture, (*Simulator).undoCapture},
		opClone:          {"vdcCopyVapp", "VDC_COPY_VAPP", "Copying Virtual Application", durationRecompose, cloneSpread, (*Simulator).commitClone, (*Simulator).undoCompose},
	}
}

// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
)

// Operations returns the operations on catalog items: deletion, upload, copies, and insertion into the drives of VMs.
func Operations() map[string]cloud.Operation {
	return map[string]cloud.Operation{
		cloud.OpInsertMedia: cloud.NewOperation("vappInsertCdFloppy", "Inserting media into Virtual Machine", cloud.DurationReconfig,
			commitMedia),
		cloud.OpEjectMedia: cloud.NewOperation("vappEjectCdFloppy", "Ejecting media from Virtual Machine", cloud.DurationReconfig,
			commitMedia),
		cloud.OpDeleteMedia: cloud.NewOperation("vdcDeleteMedia", "Deleting Media", cloud.DurationDelete, commitDeleteMedia),
		cloud.OpUpload:      cloud.NewOperation("vdcUploadOvfContents", "Importing", 0, commitUpload).UndoneBy(undoUpload),
		cloud.OpDeleteTemplate: cloud.NewOperation("vdcDeleteTemplate", "Deleting Virtual Application Template", cloud.DurationDelete,
			commitDeleteTemplate),
		cloud.OpCapture: cloud.NewOperation("vdcCaptureTemplate", "Capturing Virtual Application Template",
			cloud.DurationRecompose, commitCapture).Cloning(undoCapture),
		cloud.OpClone: cloud.NewOperation("vdcCopyVapp", "Copying Virtual Application", cloud.DurationRecompose,
			commitClone).Cloning(machines.UndoCompose),
	}
}

// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// replacementRequested records that the replacement of a Machine was requested from its owner.
func replacementRequested(r events.EventRecorder, remediation *infrav1.VCDRemediation, machine string) {
	phases.Happened(r, remediation, "ReplacementRequested", "Asked the owner of Machine "+machine+" to replace it")
}

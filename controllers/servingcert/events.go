// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// approved records that the serving certificate of a kubelet was approved.
func approved(r events.EventRecorder, c *infrav1.VCDCluster, node string) {
	phases.Happened(r, c, "ServingCertificateApproved", "Approved the serving certificate of the kubelet of Node "+node)
}

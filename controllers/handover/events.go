// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"fmt"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// handedOver records that the virtual IP was moved away from a node that is about to be removed.
func handedOver(r events.EventRecorder, c *infrav1.VCDCluster, from, to string) {
	phases.Happened(r, c, "VirtualIPHandedOver",
		fmt.Sprintf("Moved the virtual IP from Node %s, whose Machine is being deleted, to Node %s", from, to))
}

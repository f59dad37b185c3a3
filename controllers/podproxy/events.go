// SPDX-License-Identifier: Apache-2.0

package podproxy

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// installing records that the policies are on their way into the workload cluster of c.
func installing(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "PodProxyAdded", "Installing the policies of pods' HTTP proxy in the workload cluster")
}

// repaired records that policies of c were changed or deleted, and that they are applied again.
func repaired(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "PodProxyRepaired",
		"Changed or missing in the workload cluster, and applied anew: "+phases.Few(what))
}

// uninstalled records what was removed from the workload cluster of c.
func uninstalled(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "PodProxyRemoved", "Removed from the workload cluster: "+phases.Few(what))
}

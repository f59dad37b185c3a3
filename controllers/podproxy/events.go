// SPDX-License-Identifier: Apache-2.0

package podproxy

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// installing records that the installation of the policies of c was started.
func installing(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "PodProxyAdded", "Started to install the policies for the HTTP proxy of pods in the workload cluster")
}

// repaired records that Cluster API has to reapply changed or missing policies of c.
func repaired(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "PodProxyRepaired",
		"Requested Cluster API to reapply objects that were changed or missing in the workload cluster: "+phases.Few(what))
}

// uninstalled records that policies were removed from the workload cluster of c.
func uninstalled(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "PodProxyRemoved", "Removed objects from the workload cluster: "+phases.Few(what))
}

// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// installing records that the cloud controller manager is on its way into the workload cluster of c.
func installing(r events.EventRecorder, c *infrav1.VCDCluster, image string) {
	phases.Happened(r, c, "CloudProviderAdded",
		"Installing cloud controller manager "+image+" in the workload cluster")
}

// takenOver records what the cloud controller manager of c does because the one before did.
func takenOver(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderConfigInherited", "Taken over from the configuration in the workload cluster; "+
		"set it in spec.loadBalancer to have it there: "+phases.Few(what))
}

// repaired records that objects were changed or deleted that belong to the cloud controller manager of c, and that it
// is applied again.
func repaired(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderRepaired",
		"Changed or missing in the workload cluster, and applied anew: "+phases.Few(what))
}

// uninstalled records what was removed from the workload cluster of c.
func uninstalled(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderRemoved", "Removed from the workload cluster: "+phases.Few(what))
}

// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// installing records that the installation of the cloud controller manager of c was started.
func installing(r events.EventRecorder, c *infrav1.VCDCluster, image string) {
	phases.Happened(r, c, "CloudProviderAdded",
		"Started to install cloud controller manager "+image+" in the workload cluster")
}

// takenOver records that the cloud controller manager of c inherited values from the previous one.
func takenOver(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderConfigInherited", "Inherited values from the configuration in the workload cluster. To make them explicit, set them in spec.loadBalancer: "+phases.Few(what))
}

// repaired records that Cluster API has to reapply changed or missing objects of the cloud controller manager of c.
func repaired(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderRepaired",
		"Requested Cluster API to reapply objects that were changed or missing in the workload cluster: "+phases.Few(what))
}

// uninstalled records that objects were removed from the workload cluster of c.
func uninstalled(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	phases.Happened(r, c, "CloudProviderRemoved", "Removed objects from the workload cluster: "+phases.Few(what))
}

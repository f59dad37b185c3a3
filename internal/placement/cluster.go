// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// VDCName returns the URN of the VDC that was recorded for a cluster, else the name or URN in its spec, which is looked
// up afresh until something depends on what was found. A rename in VCD does no harm then.
func VDCName(c *infrav1.VCDCluster) string {
	return cmp.Or(RecordedVDC(c), c.Spec.OVDC)
}

// NetworkName is [VDCName] for the network of a cluster.
func NetworkName(c *infrav1.VCDCluster) string {
	return cmp.Or(recorded(c).OVDCNetworkID, c.Spec.OVDCNetwork)
}

// RecordedVDC returns the URN of the VDC that was recorded for a cluster, empty if none was.
func RecordedVDC(c *infrav1.VCDCluster) string { return recorded(c).OVDCID }

// EndpointGateway returns the URN of the edge gateway that was recorded for the endpoint of a cluster, empty if none
// was.
func EndpointGateway(c *infrav1.VCDCluster) string { return recorded(c).EndpointGatewayID }

// EndpointAddresses returns the addresses that were recorded for the endpoint of a cluster.
func EndpointAddresses(c *infrav1.VCDCluster) []string { return recorded(c).EndpointAddresses }

// recorded returns what was recorded with the id of a cluster. Without an id it is the copy of another cluster's.
func recorded(c *infrav1.VCDCluster) infrav1.VCDClusterRecordedState {
	if c.Spec.InfraID == "" {
		return infrav1.VCDClusterRecordedState{}
	}
	return c.Spec.RecordedState
}

// Select returns those of the zones in the namespace of a cluster that its failureDomainSelector selects, sorted by
// name; none without a selector.
func Select(c *infrav1.VCDCluster, zones []infrav1.VCDDeploymentZone) ([]infrav1.VCDDeploymentZone, error) {
	if c.Spec.FailureDomainSelector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.FailureDomainSelector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.failureDomainSelector: %w", err)
	}
	var selected []infrav1.VCDDeploymentZone
	for _, z := range zones {
		if z.Namespace == c.Namespace && selector.Matches(labels.Set(z.Labels)) {
			selected = append(selected, z)
		}
	}
	slices.SortFunc(selected, func(a, b infrav1.VCDDeploymentZone) int { return strings.Compare(a.Name, b.Name) })
	return selected, nil
}

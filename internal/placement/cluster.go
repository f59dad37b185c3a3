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

// VDCName returns the recorded URN of a cluster's VDC. If none is recorded, it returns the name or URN in the spec,
// which is looked up again until another object depends on the VDC. Once the URN is recorded, a rename in VCD does no
// harm.
func VDCName(c *infrav1.VCDCluster) string {
	return cmp.Or(RecordedVDC(c), c.Spec.OVDC)
}

// NetworkName returns the recorded URN of a cluster's network, or else the name or URN in its spec, as [VDCName] does.
func NetworkName(c *infrav1.VCDCluster) string {
	return cmp.Or(recorded(c).OVDCNetworkID, c.Spec.OVDCNetwork)
}

// RecordedVDC returns the recorded URN of a cluster's VDC; empty if none is recorded.
func RecordedVDC(c *infrav1.VCDCluster) string { return recorded(c).OVDCID }

// EndpointGateway returns the recorded URN of the edge gateway of a cluster's endpoint; empty if none is recorded.
func EndpointGateway(c *infrav1.VCDCluster) string { return recorded(c).EndpointGatewayID }

// EndpointAddresses returns the recorded addresses of a cluster's endpoint.
func EndpointAddresses(c *infrav1.VCDCluster) []string { return recorded(c).EndpointAddresses }

// recorded returns the recorded state of a cluster. Without an infrastructure ID, the state was copied from another
// cluster and is ignored.
func recorded(c *infrav1.VCDCluster) infrav1.VCDClusterRecordedState {
	if c.Spec.InfraID == "" {
		return infrav1.VCDClusterRecordedState{}
	}
	return c.Spec.RecordedState
}

// Select returns the zones in the namespace of a cluster that its failureDomainSelector selects, sorted by name.
// Without a selector it returns none.
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

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// OfCluster returns the labels that select the objects of the named Cluster.
func OfCluster(name string) client.MatchingLabels {
	return client.MatchingLabels{clusterv1.ClusterNameLabel: name}
}

// VDCOf returns the VDC of a cluster. It uses the recorded URN if there is one.
func VDCOf(ctx context.Context, s *Session, c *infrav1.VCDCluster) (vcd.VDC, phases.Result, error) {
	if id := placement.RecordedVDC(c); id != "" {
		return vcd.VDC{Ref: vcd.Ref{ID: id, Name: c.Spec.OVDC}}, phases.Done, nil
	}
	if found := c.Status.OVDC; found != nil {
		return vcd.VDC{Ref: vcd.Ref{ID: found.ID, Name: found.Name}}, phases.Done, nil
	}
	vdc, err := s.FindVDC(ctx, c.Spec.OVDC)
	if err != nil {
		out, err := LookupProblem(err, checks.VDC.Reason, "without it, no deletion can be verified; "+
			checks.VDC.Remedy("spec.ovdc of the VCDCluster"))
		return vcd.VDC{}, out.NoAccess(), err
	}
	return vdc, phases.Done, nil
}

// NameFor returns the name of a VCDCluster for messages on obj. It hides the names of other namespaces.
func NameFor(obj client.Object, c *infrav1.VCDCluster) string {
	if c.Namespace == obj.GetNamespace() {
		return "VCDCluster " + c.Name
	}
	return "another VCDCluster"
}

// ClusterName returns the name of the Cluster of c, even after the Cluster is gone.
func ClusterName(c *infrav1.VCDCluster, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}
	if name := c.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, owner := range c.OwnerReferences {
		if owner.Kind == "Cluster" {
			return owner.Name
		}
	}
	return ""
}

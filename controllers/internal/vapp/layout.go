// Package vapp knows how machines are laid out in vApps, and which drivers in workload clusters depend on that.
package vapp

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// PerMachine reports whether each machine of a cluster has a vApp of its own.
func PerMachine(c *infrav1.VCDCluster) bool {
	return c.Spec.VApp.Layout == infrav1.VAppPerMachine
}

// Name returns the name of the vApp that all machines of the cluster share.
func Name(c *infrav1.VCDCluster, clusterName string) string {
	if c.Spec.VApp.Name != "" {
		return c.Spec.VApp.Name
	}
	return clusterName
}

// LegacyDrivers is the message of a problem; its argument lists what runs in the workload cluster.
const LegacyDrivers = "Layout PerMachine does not work with what runs in the workload cluster and looks for nodes in " +
	"one vApp: %s. " +
	"Replace or remove it, or make the cluster anew with layout PerFailureDomain"

// IsKept reports whether an annotation keeps a vApp that holds what is not ours.
func IsKept(obj client.Object) bool {
	return obj.GetAnnotations()[infrav1.KeepVAppAnnotation] == "true"
}

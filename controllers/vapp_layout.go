package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// perMachine says whether each machine of a cluster has a vApp of its own.
func perMachine(c *infrav1.VCDCluster) bool {
	return c.Spec.VApp.Layout == infrav1.VAppPerMachine
}

// vAppName returns the name of the vApp that all machines of the cluster share.
func vAppName(c *infrav1.VCDCluster, clusterName string) string {
	if c.Spec.VApp.Name != "" {
		return c.Spec.VApp.Name
	}
	return clusterName
}

// vAppName returns the name of the machine's vApp.
func (s *machineScope) vAppName() string {
	if perMachine(s.vcdCluster) {
		return s.vcdMachine.Annotations[infrav1.VMNameAnnotation]
	}
	return vAppName(s.vcdCluster, clusterName(s.vcdCluster, s.cluster))
}

// layoutProblem says why the machine must not get a vApp of its own: drivers that look for nodes in one vApp run in the
// cluster, or nobody knows whether they do. Before the control plane is initialized there is nothing that could run them.
func (s *machineScope) layoutProblem(ctx context.Context) outcome {
	if !perMachine(s.vcdCluster) {
		return done
	}
	found, known := s.Drivers.in(ctx, s.cluster, s.now())
	switch {
	case !known:
		return unsure(driversRetry, infrav1.WorkloadClusterUnreachableReason,
			"Layout PerMachine needs a look at what runs in the workload cluster, and its API server cannot be asked: see the Cluster")
	case len(found) > 0:
		return fail(driversRetry, infrav1.LegacyDriverInstalledReason, legacyDrivers, few(found))
	}
	return done
}

const legacyDrivers = "Layout PerMachine does not work with what runs in the workload cluster and looks for nodes in one vApp: %s. " +
	"Replace or remove it, or make the cluster anew with layout PerFailureDomain"

// reconcileVAppLayout tells when what runs in the workload cluster does not get along with the layout. A cluster that
// cannot be asked is no less ready for it; its machines wait.
func reconcileVAppLayout(ctx context.Context, s *clusterScope) (outcome, error) {
	if found, _ := s.Drivers.in(ctx, s.cluster, s.now()); len(found) > 0 {
		return fail(driversRetry, infrav1.LegacyDriverInstalledReason, legacyDrivers, few(found)), nil
	}
	return done, nil
}

// keepsVApp says whether a person wants a vApp to stay that holds what is not ours.
func keepsVApp(obj client.Object) bool {
	return obj.GetAnnotations()[infrav1.KeepVAppAnnotation] == "true"
}

// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// OrLeave adds to a problem how a user can end the removal.
func OrLeave(out phases.Result) phases.Result {
	if out.IsProblem() {
		out.Message += fmt.Sprintf(". Load balancers of the cluster may remain. To keep them in VCD, annotate the VCDCluster with %s=true", infrav1.KeepLoadBalancersAnnotation)
	}
	return out
}

// retryAfter returns the delay before the next attempt.
func retryAfter(err error) time.Duration {
	switch {
	case err == nil:
		return Afterlife
	case errors.Is(err, loadbalancer.ErrBusy):
		return intervals.Task
	case errors.Is(err, loadbalancer.ErrRefused):
		return intervals.Remedy
	}
	return intervals.Unreachable
}

// problem returns why the removal is not complete, given the error of the last attempt.
func problem(err error, on Gateways, after time.Duration) phases.Result {
	switch {
	case err == nil:
		return phases.Wait(after, infrav1.WaitingForFinalCheckReason,
			"Removed the load balancers of the cluster from %s; a final check follows once its cloud controller manager has stopped", on.Name)
	case errors.Is(err, loadbalancer.ErrBusy):
		return phases.Wait(after, infrav1.EntityBusyReason,
			"Waiting for VCD to remove load balancers of the cluster from %s", on.Name)
	case errors.Is(err, loadbalancer.ErrRefused):
		return phases.Fail(after, infrav1.LoadBalancersNotDeletedReason,
			"Load balancers of the cluster may remain on %s (%v): grant the right. To keep them in VCD instead, annotate the VCDCluster with %s=true", on.Name, err, infrav1.KeepLoadBalancersAnnotation)
	}
	return phases.Unsure(after, infrav1.LoadBalancersNotDeletedReason,
		"Load balancers of the cluster may remain on %s, which cannot be queried (%v): the deletion waits for VCD. To keep them, annotate the VCDCluster with %s=true", on.Name, err, infrav1.KeepLoadBalancersAnnotation)
}

// deleted records that load balancers of c were removed.
func deleted(r events.EventRecorder, c *infrav1.VCDCluster, where string, what []string) {
	phases.Happened(r, c, "LoadBalancersDeleted", "Removed from "+where+": "+phases.Few(what))
}

// left records that load balancers of c may remain.
func left(r events.EventRecorder, c *infrav1.VCDCluster, why string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.LoadBalancersNotDeletedReason, infrav1.LoadBalancersNotDeletedReason,
		"%s",
		phases.Shorten("Load balancers of the cluster may remain in VCD, marked with its ID "+c.Spec.InfraID+
			": "+why))
}

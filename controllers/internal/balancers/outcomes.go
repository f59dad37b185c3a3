// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// OrLeave adds to a problem how a person ends the waiting.
func OrLeave(out phases.Result) phases.Result {
	if out.IsProblem() {
		out.Message += fmt.Sprintf(". Load balancers of the cluster may be left: to leave them in VCD, annotate the "+
			"VCDCluster with %s=true", infrav1.KeepLoadBalancersAnnotation)
	}
	return out
}

// retryAfter is how long the next attempt waits.
func retryAfter(err error) time.Duration {
	switch {
	case err == nil:
		return Afterlife
	case errors.Is(err, loadbalancer.ErrBusy):
		return session.TaskPoll
	case errors.Is(err, loadbalancer.ErrRefused):
		return session.RemedyPoll
	}
	return session.UnreachablePoll
}

// problem says why the removal is not complete, by the error of the last attempt.
func problem(err error, on Gateways, after time.Duration) phases.Result {
	switch {
	case err == nil:
		return phases.Wait(after, infrav1.WaitingForFinalCheckReason,
			"Load balancers of the cluster are removed from %s, which is checked once more when no cloud controller "+
				"manager can run any more", on.Name)
	case errors.Is(err, loadbalancer.ErrBusy):
		return phases.Wait(after, infrav1.EntityBusyReason,
			"Waiting for VCD, to remove load balancers of the cluster from %s", on.Name)
	case errors.Is(err, loadbalancer.ErrRefused):
		return phases.Fail(after, infrav1.LoadBalancersNotDeletedReason,
			"Load balancers of the cluster may be left on %s (%v): grant the right, or to leave them in VCD, annotate "+
				"the VCDCluster with %s=true", on.Name, err, infrav1.KeepLoadBalancersAnnotation)
	}
	return phases.Unsure(after, infrav1.LoadBalancersNotDeletedReason,
		"Load balancers of the cluster may be left on %s, which cannot be asked (%v): the deletion waits for VCD. To "+
			"leave them there, annotate the VCDCluster with %s=true", on.Name, err, infrav1.KeepLoadBalancersAnnotation)
}

// deleted records what of the load balancers of c was removed.
func deleted(r events.EventRecorder, c *infrav1.VCDCluster, where string, what []string) {
	phases.Happened(r, c, "LoadBalancersDeleted", "Removed from "+where+": "+phases.Few(what))
}

// left records that load balancers of c may be left.
func left(r events.EventRecorder, c *infrav1.VCDCluster, why string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.LoadBalancersNotDeletedReason, infrav1.LoadBalancersNotDeletedReason,
		"%s",
		phases.Shorten("Load balancers of the cluster may be left in VCD, marked with its id "+c.Spec.InfraID+": "+why))
}

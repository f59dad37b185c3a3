// SPDX-License-Identifier: Apache-2.0

package edgeendpoint

import (
	"errors"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// longestPause is the longest pause after a failure. Pauses double with each failure.
const longestPause = 10 * time.Minute

// refusals maps the reasons of plans to reasons of conditions, and to fields for messages.
var refusals = map[string]struct{ reason, field string }{
	lb.AddressInUse:      {infrav1.EndpointAddressInvalidReason, "spec.controlPlaneEndpoint"},
	lb.AddressOutOfRange: {infrav1.EndpointAddressInvalidReason, "spec.controlPlaneEndpoint"},
	lb.NoFreeAddress:     {infrav1.EndpointAddressInvalidReason, "spec.controlPlaneLoadBalancer.edgeGateway"},
	lb.InvalidFamilies:   {infrav1.EndpointAddressInvalidReason, "spec.controlPlaneEndpoint"},
	lb.InvalidRange:      {infrav1.EndpointAddressInvalidReason, "spec.controlPlaneLoadBalancer.edgeGateway.oneArm.internalRange"},
	lb.PortInUse: {
		infrav1.EndpointPortInUseReason,
		"spec.controlPlaneEndpoint.port or spec.controlPlaneLoadBalancer.edgeGateway.extraPorts",
	},
	lb.InvalidPort:            {infrav1.EndpointPortInUseReason, "spec.controlPlaneLoadBalancer.edgeGateway.extraPorts"},
	lb.EngineGroupUnavailable: {infrav1.EngineGroupUnavailableReason, "spec.controlPlaneLoadBalancer.edgeGateway.serviceEngineGroup"},
}

// refusal returns the result for a plan that was refused.
func refusal(f loadbalancer.Finding) phases.Result {
	known, ok := refusals[f.Reason]
	if !ok {
		known.reason = infrav1.LoadBalancerUnavailableReason
		known.field = "spec.controlPlaneLoadBalancer.edgeGateway"
	}
	return phases.Fail(intervals.Remedy, known.reason, "%s: %s", known.field, f.Message)
}

// unrecorded returns the result for a machine while its cluster has not recorded the gateway.
func unrecorded() phases.Result {
	return phases.Wait(intervals.Task, infrav1.EndpointPendingReason,
		"Waiting for the VCDCluster to record the edge gateway of its endpoint")
}

// unread returns the result of a failed observation.
func unread(err error, gateway string) (phases.Result, error) {
	if errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden) {
		return phases.Fail(intervals.Remedy, infrav1.EdgeGatewayNotFoundReason, "%v: correct spec.controlPlaneLoadBalancer.edgeGateway.name, or grant the user of the identity the rights to view gateways and their load balancers", err).NoAccess(), nil
	}
	return problems.OfRead(err, "Reading edge gateway "+gateway)
}

// after returns the failure state after an attempt that ended with err.
func (f failure) after(err error, of settings.Version, now time.Time) failure {
	if err == nil {
		return failure{}
	}
	next := failure{settings: of}
	if f.settings == of {
		next.count = f.count + 1
	}
	next.out = refused(err)
	pause := min(intervals.FirstRetry<<min(next.count, 10), longestPause)
	if errors.Is(err, loadbalancer.ErrBusy) {
		pause = intervals.Busy
		next.count = 0
	}
	next.until = now.Add(pause)
	return next
}

// refused returns the result of a failed step.
func refused(err error) phases.Result {
	const doing = "Setting up the endpoint"
	if errors.Is(err, loadbalancer.ErrBusy) {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "%s: waiting for VCD: %v", doing, err)
	}
	out, other := problems.OfWrite(err, doing)
	if other != nil {
		return phases.Fail(intervals.Remedy, infrav1.TaskFailedReason, "%v", other)
	}
	return out
}

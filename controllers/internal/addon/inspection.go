// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// StartPoll is the interval at which something that will exist soon is checked again.
const StartPoll = 15 * time.Second

// An Inspection is the result of the last inspection of a workload cluster.
type Inspection struct {
	At time.Time

	hash string // of the desired objects
	out  phases.Result
}

// current reports whether the inspection is still valid: it is recent, and the desired objects are the same. The result
// requeues when the inspection expires.
func (i *Inspection) current(hash string, every time.Duration, now time.Time) (phases.Result, bool) {
	if i.out != phases.Done {
		every = min(every, i.out.After)
	}
	left := i.At.Add(every).Sub(now)
	if i.At.IsZero() || i.hash != hash || left <= 0 {
		return phases.Done, false
	}
	out := i.out
	if out != phases.Done {
		out.After = left
	}
	return out, true
}

// An inspector sends requests to a workload cluster.
type inspector func(ctx context.Context, w *Guest) (phases.Result, error)

// Inspect inspects the workload cluster, unless the last inspection is still valid.
func (s *Set) Inspect(ctx context.Context, last *Inspection, every time.Duration, run inspector) (phases.Result, error) {
	hash := s.Hash()
	if out, ok := last.current(hash, every, s.Now()); ok {
		return out, nil
	}
	return s.Ask(ctx, func(ctx context.Context, w *Guest) (phases.Result, error) {
		out, err := run(ctx, w)
		if err == nil && s.Hash() == hash { // Otherwise an object was changed, and its state is unknown.
			*last = Inspection{At: s.Now(), hash: hash, out: out}
		}
		return out, err
	})
}

// Ask runs an inspector within [InspectTimeout]. A workload cluster that does not respond yields a result, not an
// error.
func (s *Set) Ask(ctx context.Context, run inspector) (phases.Result, error) {
	c, err := s.Workload(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Cannot reach the workload cluster", "reason", err.Error())
		return phases.Unsure(s.unreachablePoll(), infrav1.WorkloadClusterUnreachableReason,
			"The API server of the workload cluster is unreachable: check the Cluster"), nil
	}
	limited, cancel := context.WithTimeout(ctx, InspectTimeout)
	defer cancel()
	out, err := run(limited, &Guest{Client: c, InfraID: s.VCDCluster.Spec.InfraID})
	failed, ok := errors.AsType[*Error](err)
	if !ok || ctx.Err() != nil {
		return out, err
	}
	return ResultOf(ctx, failed.Err, s.unreachablePoll()), nil
}

// ResultOf returns the result for an error of a request to a workload cluster. The request is repeated after a delay.
func ResultOf(ctx context.Context, err error, after time.Duration) phases.Result {
	if isRejection(err) {
		return phases.Fail(after, infrav1.WorkloadRequestRejectedReason,
			"The API server of the workload cluster rejected a request: %v", err)
	}
	ctrl.LoggerFrom(ctx).V(4).Info("The workload cluster does not respond", "reason", err.Error())
	return phases.Unsure(after, infrav1.WorkloadClusterUnreachableReason,
		"The API server of the workload cluster does not respond: check the Cluster")
}

// isRejection reports whether an API server responded, and a repetition alone does not help.
func isRejection(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// unreachablePoll returns when to try to reach the workload cluster again. It is short while its Nodes wait for the
// manifests.
func (s *Set) unreachablePoll() time.Duration {
	if s.Secret == nil {
		return StartPoll
	}
	return intervals.Unreachable
}

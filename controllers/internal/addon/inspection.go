// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// StartPoll is how long to wait for what is soon there.
const StartPoll = 15 * time.Second

// An Inspection is what was last found in a workload cluster.
type Inspection struct {
	At time.Time

	hash string // of what should be there
	out  phases.Result
}

// current reports whether the inspection still counts: it is recent, and the same should be there. The result is to
// run again when it does not count any more.
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

// An inspector asks a workload cluster.
type inspector func(ctx context.Context, w *Guest) (phases.Result, error)

// Inspect inspects the workload cluster, if the last inspection does not count any more.
func (s *Set) Inspect(ctx context.Context, last *Inspection, every time.Duration, run inspector) (phases.Result,
	error,
) {
	hash := s.Hash()
	if out, ok := last.current(hash, every, s.Now()); ok {
		return out, nil
	}
	return s.Ask(ctx, func(ctx context.Context, w *Guest) (phases.Result, error) {
		out, err := run(ctx, w)
		if err == nil && s.Hash() == hash { // Otherwise something was changed, and its state is not known.
			*last = Inspection{At: s.Now(), hash: hash, out: out}
		}
		return out, err
	})
}

// Ask runs what asks the workload cluster, within [InspectTimeout]. That it does not answer is no error.
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
	if lost := (*Error)(nil); !errors.As(err, &lost) || ctx.Err() != nil {
		return out, err
	}
	ctrl.LoggerFrom(ctx).V(4).Info("The workload cluster does not respond", "reason", err.Error())
	return phases.Unsure(s.unreachablePoll(), infrav1.WorkloadClusterUnreachableReason,
		"The API server of the workload cluster does not respond: check the Cluster"), nil
}

// unreachablePoll is when to try again to reach the workload cluster: soon while its Nodes wait.
func (s *Set) unreachablePoll() time.Duration {
	if s.Secret == nil {
		return StartPoll
	}
	return session.UnreachablePoll
}

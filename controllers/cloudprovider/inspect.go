package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// inspectTimeout bounds one inspection of a workload cluster, and requestTimeout each request of it: a cluster that
// does not answer holds up no worker, and one with many objects may take its time.
const inspectTimeout, requestTimeout = 30 * time.Second, 5 * time.Second

// An inspection is what was last found in a workload cluster.
type inspection struct {
	at   time.Time
	hash string // of what should be there
	out  phases.Outcome
}

// current reports whether the inspection still counts: it is recent, and the same should be there. The outcome is to
// run again when it does not count any more.
func (i *inspection) current(hash string, every time.Duration, now time.Time) (phases.Outcome, bool) {
	if i.out != phases.Done {
		every = min(every, i.out.After)
	}
	left := i.at.Add(every).Sub(now)
	if i.at.IsZero() || i.hash != hash || left <= 0 {
		return phases.Done, false
	}
	out := i.out
	if out != phases.Done {
		out.After = left
	}
	return out, true
}

// inspect inspects the workload cluster, if an inspection is due.
func (s *scope) inspect(ctx context.Context) (phases.Outcome, error) {
	last, hash := s.inspections.Of(s.vcdCluster.UID), s.hash()
	if out, ok := last.current(hash, s.LookEvery, s.now()); ok {
		return out, nil
	}
	w, out := s.connect(ctx)
	if out != phases.Done {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	out, err := s.converge(limited, w)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	if s.hash() == hash { // Otherwise something was changed, and its state is not known.
		*last = inspection{at: s.now(), hash: hash, out: out}
	}
	return out, nil
}

// unanswered returns the outcome of a failure of the workload cluster; other errors are returned.
func (s *scope) unanswered(ctx context.Context, err error) (phases.Outcome, error) {
	if lost := (*guestError)(nil); !errors.As(err, &lost) || ctx.Err() != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).V(4).Info("The workload cluster does not answer", "reason", err.Error())
	return phases.Unsure(s.unreachablePoll(), infrav1.WorkloadClusterUnreachableReason,
		"The API server of the workload cluster does not answer: see the Cluster"), nil
}

// converge compares the workload cluster with what should be there, and repairs what is not.
func (s *scope) converge(ctx context.Context, w *guest) (phases.Outcome, error) {
	if out, err := w.foreign(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if err := s.removeDropped(ctx, w); err != nil {
		return phases.Done, err
	}
	deployment, wrong, err := w.compare(ctx, s.secret.Data[manifestsKey])
	switch {
	case err != nil:
		return phases.Done, err
	case len(wrong) > 0:
		return s.repair(ctx, itemNames(wrong))
	}
	return available(deployment)
}

// repair has everything applied again, unless Cluster API may not have had the time to do it yet.
func (s *scope) repair(ctx context.Context, wrong []string) (phases.Outcome, error) {
	if at, err := time.Parse(time.RFC3339, s.annotation(infrav1.CloudProviderWrittenAnnotation)); err == nil &&
		s.now().Sub(at) < min(applyTime, s.LookEvery) {
		return s.applying(wrong), nil
	}
	now := s.now().UTC().Format(time.RFC3339)
	objects, err := s.render(now)
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	metav1.SetMetaDataAnnotation(&s.secret.ObjectMeta, infrav1.CloudProviderAppliedAnnotation, now)
	if _, err := s.writeSet(ctx, objects); err != nil {
		return phases.Done, err
	}
	repaired(s.Recorder, s.vcdCluster, wrong)
	return s.applying(wrong), nil
}

// removeDropped removes from the workload cluster what is not in the Secret any more.
func (s *scope) removeDropped(ctx context.Context, w *guest) error {
	dropped := readItems(s.annotation(infrav1.CloudProviderDroppedAnnotation))
	if len(dropped) == 0 {
		return nil
	}
	removed, err := w.remove(ctx, dropped)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		uninstalled(s.Recorder, s.vcdCluster, removed)
	}
	secret := s.secret.DeepCopy()
	delete(secret.Annotations, infrav1.CloudProviderDroppedAnnotation)
	return s.store(ctx, secret)
}

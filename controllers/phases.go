package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// object is what phases report on.
type object interface {
	client.Object
	conditions.Setter
}

// A phase is one step towards a ready object. It owns one condition.
type phase[S any] struct {
	condition string
	run       func(context.Context, S) (outcome, error)
}

// An outcome says why a phase is not complete yet. The zero value means it is.
type outcome struct {
	reason, message string
	after           time.Duration // when to look again; zero if a watch wakes us
	problem         bool          // worth a warning: somebody may have to act
	unknown         bool          // VCD could not be asked: nothing is said about the object itself
}

// done is the outcome of a complete phase.
var done outcome

// wait is the outcome of a phase that makes progress and must look again.
func wait(after time.Duration, reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// fail is the outcome of a phase that somebody may have to help. It looks again all the same: most remedies are
// applied in VCD, where no watch sees them.
func fail(after time.Duration, reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: fmt.Sprintf(format, args...), after: after, problem: true}
}

// stop is the outcome of a phase that only a change to some Kubernetes object can help.
func stop(reason, format string, args ...any) outcome {
	return fail(0, reason, format, args...)
}

// unsure is the outcome of a phase that could not find out.
func unsure(after time.Duration, reason, format string, args ...any) outcome {
	out := fail(after, reason, format, args...)
	out.unknown = true
	return out
}

func (o outcome) status() metav1.ConditionStatus {
	if o.unknown {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// runPhases runs phases in order up to the first that is not complete, and reports all of them as conditions
// of obj. An error keeps the last known condition of its phase: conditions do not flap when VCD hiccups. A problem
// that was not reported yet is also reported as an event.
func runPhases[S any](ctx context.Context, obj object, scope S, phases []phase[S], recorder events.EventRecorder) (ctrl.Result, error) {
	for i, p := range phases {
		out, err := p.run(ctx, scope)
		if err == nil && out == done {
			set(obj, p.condition, metav1.ConditionTrue, infrav1.ReadyReason, "")
			continue
		}
		for _, later := range phases[i+1:] {
			setIfMissing(obj, later.condition, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+p.condition)
		}
		if err != nil {
			return broken(obj, p.condition, err)
		}
		if t, ok := any(scope).(tolerant); ok && out.unanswered() && conditions.IsTrue(obj, p.condition) && t.hiccup() {
			passed(obj, p.condition, out.pass())
			return ctrl.Result{RequeueAfter: jitter(min(out.after, hiccupRetry), string(obj.GetUID()))}, nil
		}
		return settle(obj, p.condition, out, recorder), nil
	}
	passed(obj, clusterv1.ReadyCondition, passComplete)
	return ctrl.Result{}, nil
}

// hiccupRetry is when it is asked again what VCD did not answer for the first time.
const hiccupRetry = 10 * time.Second

// A tolerant scope is of an object that stays as it was said to be when VCD gives no answer for once: a cell is restarted, a
// connection is lost, and nothing has become of the object.
type tolerant interface {
	// hiccup notes that VCD gave no answer in this pass, and says whether it did in the one before.
	hiccup() bool
}

// unanswered says whether an outcome is that VCD could not be asked.
func (o outcome) unanswered() bool {
	return o.unknown && (o.reason == infrav1.SiteUnreachableReason || o.reason == infrav1.ThrottledReason)
}

// settle ends a pass in which the phase of a condition is not complete.
func settle(obj object, condition string, out outcome, recorder events.EventRecorder) ctrl.Result {
	if out.problem && !reported(obj, condition, out) {
		problemFound(recorder, obj, condition, out)
	}
	passed(obj, condition, out.pass())
	set(obj, condition, out.status(), out.reason, out.message)
	if out.unknown {
		out.after = jitter(out.after, string(obj.GetUID()))
	}
	return ctrl.Result{RequeueAfter: out.after}
}

// broken ends a pass in which the phase of a condition failed. That others come first is no failure.
func broken(obj object, condition string, err error) (ctrl.Result, error) {
	if errors.Is(err, vcd.ErrLater) {
		passed(obj, condition, passWaiting)
		setIfMissing(obj, condition, infrav1.ThrottledReason, "Waiting for a turn to call VCD")
		return ctrl.Result{RequeueAfter: vcd.RetryAfter(err)}, nil
	}
	passed(obj, condition, passError)
	setIfMissing(obj, condition, infrav1.InternalErrorReason, "Please check controller logs for errors")
	return ctrl.Result{}, fmt.Errorf("reconciling %s: %w", condition, err)
}

// admit adds the finalizer and the Paused condition. The helper it returns patches what comes after; it is nil when the
// pass ends here: obj was just changed, or is paused.
func admit(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, obj object, finalizer string) (*patch.Helper, error) {
	if added, err := finalizers.EnsureFinalizer(ctx, c, obj, finalizer); added || err != nil {
		return nil, err
	}
	helper, err := patch.NewHelper(obj, c) // before the paused check, which may edit obj
	if err != nil {
		return nil, err
	}
	if isPaused, again, err := paused.EnsurePausedCondition(ctx, c, cluster, obj); isPaused || again || err != nil {
		return nil, err
	}
	return helper, nil
}

// caller names the cluster of obj among those that call VCD: they take turns.
func caller(obj client.Object) string {
	return obj.GetNamespace() + "/" + obj.GetLabels()[clusterv1.ClusterNameLabel]
}

// store writes what changed in obj now rather than at the end, and returns the helper for what comes after.
func store(ctx context.Context, c client.Client, obj client.Object, helper *patch.Helper) (*patch.Helper, error) {
	if err := helper.Patch(ctx, obj); err != nil {
		return nil, fmt.Errorf("storing %s: %w", klog.KObj(obj), err)
	}
	return patch.NewHelper(obj, c)
}

// reported says whether the condition holds the outcome already.
func reported(obj object, condition string, out outcome) bool {
	was := conditions.Get(obj, condition)
	return was != nil && was.Status == out.status() && was.Reason == out.reason && was.Message == out.message
}

// setReady sums up the conditions of phases: the first that is not true says why the object is not ready.
func setReady[S any](obj object, phases []phase[S]) {
	for _, p := range phases {
		c := conditions.Get(obj, p.condition)
		if c == nil {
			set(obj, clusterv1.ReadyCondition, metav1.ConditionUnknown, infrav1.WaitingForEarlierPhaseReason, p.condition+" is not known yet")
			return
		}
		if c.Status != metav1.ConditionTrue {
			message := strings.TrimSuffix(p.condition+": "+c.Message, ": ")
			set(obj, clusterv1.ReadyCondition, c.Status, c.Reason, message)
			return
		}
	}
	set(obj, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
}

// complete says whether all phases are.
func complete[S any](obj object, phases []phase[S]) bool {
	for _, p := range phases {
		if !conditions.IsTrue(obj, p.condition) {
			return false
		}
	}
	return true
}

// owned says which conditions the patch helper may overwrite.
func owned[S any](phases []phase[S]) patch.Option {
	return patch.WithOwnedConditions{Conditions: append(conditionTypes(phases), clusterv1.ReadyCondition, clusterv1.PausedCondition)}
}

func conditionTypes[S any](phases []phase[S]) []string {
	var ts []string
	for _, p := range phases {
		ts = append(ts, p.condition)
	}
	return ts
}

func set(obj conditions.Setter, condition string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(obj, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}

func setIfMissing(obj conditions.Setter, condition, reason, message string) {
	if !conditions.Has(obj, condition) {
		set(obj, condition, metav1.ConditionUnknown, reason, message)
	}
}

// jitter spreads d over a fifth more, so that what was woken together does not stay together.
func jitter(d time.Duration, seed string) time.Duration {
	var sum uint32
	for _, b := range []byte(seed) {
		sum = sum*31 + uint32(b)
	}
	return d + d/5*time.Duration(sum%100)/100
}

// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// IsKept reports whether an annotation keeps the vApp of obj unless the vApp is empty and can be deleted.
func IsKept(obj client.Object) bool {
	return obj.GetAnnotations()[infrav1.KeepVAppAnnotation] == "true"
}

// hangTimeout is how long a task may run before the deletion of a kept vApp no longer waits for it. VCD may never end
// it.
const hangTimeout = 10 * time.Minute

// Hangs reports whether the vApp of obj is kept and one of the tasks that lock it has been running for too long.
func Hangs(obj client.Object, now time.Time, tasks ...vcd.Task) bool {
	return IsKept(obj) && slices.ContainsFunc(tasks, func(t vcd.Task) bool {
		return t.State == vcd.TaskRunning && !t.Started.IsZero() && now.Sub(t.Started) > hangTimeout
	})
}

// StillHeld returns the result for a kept vApp that a task has locked for too long.
func StillHeld(name string) phases.Result {
	return phases.Fail(intervals.Remedy, infrav1.EntityBusyReason, "a VCD task has locked vApp %s for more than %s", name, hangTimeout)
}

// OrKeep handles a result or error that prevents the deletion of the vApp of obj. If the vApp is kept, it records an
// event and returns Done. Otherwise it adds to the message how a user can keep the vApp in VCD. It does not change
// results that report progress.
func OrKeep(ctx context.Context, r events.EventRecorder, obj client.Object, kind, name string, out phases.Result,
	err error,
) (phases.Result, error) {
	later := errors.Is(err, vcd.ErrLater) || out.Reason == infrav1.ThrottledReason // temporary
	switch {
	case later, ctx.Err() != nil, err == nil && !out.IsProblem() && !out.IsUnknown():
		return out, err
	case IsKept(obj):
		why := out.Message
		if err != nil {
			why = err.Error()
		}
		retained(r, obj, name, why)
		return phases.Done, nil
	case err == nil:
		out.Message += fmt.Sprintf(". To keep the vApp in VCD, annotate the %s with %s=true", kind,
			infrav1.KeepVAppAnnotation)
	}
	return out, err
}

// Names returns the sorted names of the VMs in a vApp.
func Names(vms []vcd.Ref) []string {
	names := make([]string, 0, len(vms))
	for _, vm := range vms {
		names = append(names, vm.Name)
	}
	slices.Sort(names)
	return names
}

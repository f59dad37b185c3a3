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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// IsKept reports whether an annotation keeps the vApp of obj, unless the vApp is empty and can be deleted.
func IsKept(obj client.Object) bool {
	return obj.GetAnnotations()[infrav1.KeepVAppAnnotation] == "true"
}

// hanging is how long a task may run before a person who keeps a vApp need not wait for it: VCD may never end it.
const hanging = 10 * time.Minute

// Hangs reports whether one of the tasks that hold the vApp of obj, which a person keeps, runs for long.
func Hangs(obj client.Object, now time.Time, tasks ...vcd.Task) bool {
	return IsKept(obj) && slices.ContainsFunc(tasks, func(t vcd.Task) bool {
		return t.State == vcd.TaskRunning && !t.Started.IsZero() && now.Sub(t.Started) > hanging
	})
}

// StillHeld returns why a vApp stays that a person keeps, and that a task holds for long.
func StillHeld(name string) phases.Result {
	return phases.Fail(session.RemedyPoll, infrav1.EntityBusyReason, "a VCD task has locked vApp %s for more "+
		"than %s",
		name, hanging)
}

// OrKeep adds to what keeps the vApp of obj from being deleted how a person leaves the vApp in VCD. If a person does,
// an event says so, and there is nothing left to do. Progress is not affected.
func OrKeep(ctx context.Context, r events.EventRecorder, obj client.Object, kind, name string, out phases.Result,
	err error,
) (phases.Result, error) {
	later := errors.Is(err, vcd.ErrLater) || out.Reason == infrav1.ThrottledReason // ends by itself
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

package vapp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// IsKept reports whether an annotation keeps the vApp of obj, unless the vApp is empty and can be deleted.
func IsKept(obj client.Object) bool {
	return obj.GetAnnotations()[infrav1.KeepVAppAnnotation] == "true"
}

// OrKeep adds to what keeps the vApp of obj from being deleted how a person leaves the vApp in VCD. If a person does,
// an event says so, and there is nothing left to do. Progress is not affected.
func OrKeep(ctx context.Context, r events.EventRecorder, obj client.Object, kind, name string, out phases.Outcome,
	err error,
) (phases.Outcome, error) {
	later := errors.Is(err, vcd.ErrLater) || out.Reason == infrav1.ThrottledReason // ends by itself
	switch {
	case later, ctx.Err() != nil, err == nil && !out.Problem && !out.Unknown:
		return out, err
	case IsKept(obj):
		why := out.Message
		if err != nil {
			why = err.Error()
		}
		kept(r, obj, name, why)
		return phases.Done, nil
	case err == nil:
		out.Message += fmt.Sprintf(". To leave the vApp in VCD, annotate the %s with %s=true", kind,
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

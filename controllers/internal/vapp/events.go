package vapp

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// Left records that a vApp has the name of ours but is not ours, and stays.
func Left(r events.EventRecorder, obj runtime.Object, name string) {
	phases.Happened(r, obj, "VAppLeft", "vApp "+name+" is not this cluster's and is left alone")
}

// Kept records that a vApp of ours stays, with VMs that are not ours if there are any, because an annotation says so.
func Kept(r events.EventRecorder, obj runtime.Object, name string, foreign []string) {
	if len(foreign) > 0 {
		name += " with " + phases.Few(foreign)
	}
	phases.Happened(r, obj, "VAppKept", "vApp "+name+" is left in VCD")
}

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

// kept records that a vApp of ours stays because an annotation says so; why is what keeps it from being deleted.
func kept(r events.EventRecorder, obj runtime.Object, name, why string) {
	phases.Happened(r, obj, "VAppKept", "vApp "+name+" is left in VCD: "+why)
}

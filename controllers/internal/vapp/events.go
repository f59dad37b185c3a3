// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// Left records that a vApp with the cluster's name is not the cluster's, and stays.
func Left(r events.EventRecorder, obj runtime.Object, name string) {
	phases.Happened(r, obj, "VAppNotOwned", "vApp "+name+" is not this cluster's and is left alone")
}

// kept records that a vApp of the cluster stays because an annotation asks for it; why is what keeps it from being
// deleted.
func kept(r events.EventRecorder, obj runtime.Object, name, why string) {
	phases.Happened(r, obj, "VAppRetained", "vApp "+name+" is left in VCD: "+why)
}

// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// NotOwned records that a vApp with the cluster's name does not belong to the cluster and was not deleted.
func NotOwned(r events.EventRecorder, obj runtime.Object, name string) {
	phases.Happened(r, obj, "VAppNotOwned", "vApp "+name+" does not belong to this cluster and was not deleted")
}

// retained records that a vApp of the cluster was retained because of an annotation.
func retained(r events.EventRecorder, obj runtime.Object, name, why string) {
	phases.Happened(r, obj, "VAppRetained", "vApp "+name+" was retained in VCD: "+why)
}

// SPDX-License-Identifier: Apache-2.0

package rde

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// entityCreated records that an entity of c was created.
func entityCreated(r events.EventRecorder, c *infrav1.VCDCluster, id string) {
	phases.Happened(r, c, "RDECreated", "Created runtime defined entity "+id)
}

// entityDeleted records that the entity of c was deleted.
func entityDeleted(r events.EventRecorder, c *infrav1.VCDCluster, id string) {
	phases.Happened(r, c, "RDEDeleted", "Deleted runtime defined entity "+id)
}

// entityRetained records that an entity of c was retained in VCD.
func entityRetained(r events.EventRecorder, c *infrav1.VCDCluster, id, why string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, "RDERetained", "RDERetained", "%s",
		phases.Shorten("Runtime defined entity "+id+" was retained in VCD unchanged: "+why))
}

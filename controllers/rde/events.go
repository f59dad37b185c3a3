// SPDX-License-Identifier: Apache-2.0

package rde

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// entityMade records that an entity was made for c.
func entityMade(r events.EventRecorder, c *infrav1.VCDCluster, id string) {
	phases.Happened(r, c, "RDECreated", "Created runtime defined entity "+id)
}

// entityDeleted records that the entity of c was deleted.
func entityDeleted(r events.EventRecorder, c *infrav1.VCDCluster, id string) {
	phases.Happened(r, c, "RDEDeleted", "Deleted runtime defined entity "+id)
}

// entityLeft records that an entity of c stays in VCD.
func entityLeft(r events.EventRecorder, c *infrav1.VCDCluster, id, why string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, "RDERetained", "RDERetained", "%s",
		phases.Shorten("Runtime defined entity "+id+" stays in VCD as it is: "+why))
}

// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"fmt"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// ruleChanged records that a change of an affinity or anti-affinity rule of c was requested.
func ruleChanged(r events.EventRecorder, c *infrav1.VCDCluster, step affinity.Step) {
	phases.Happened(r, c, "AffinityRuleChanged", fmt.Sprintf("%s, with %d VMs", step.Text(), len(step.Rule.VMs)))
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"flag"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const pagePath = "../../docs/reference/annotations.md"

var update = flag.Bool("update", false, "write docs/reference/annotations.md")

// TestPage compares the reference page with the table of annotations.
func TestPage(t *testing.T) {
	servicetest.HoldPage(t, servicetest.Page{
		Path:    pagePath,
		Command: "go test ./cpi/vcd -run Page -update",
		Update:  *update,
		Head: `# Annotations of Services

These annotations configure the load balancer of a Service of type LoadBalancer. All names begin with ` + "`" + prefix + "`" + `.
Those that continue with ` + "`avi`" + ` come from VMware's cloud provider and have the same effect. Spaces around values and in lists are ignored.

If a value is invalid or not supported, a Warning event on the Service reports it once. The load balancer is then not created. An existing
load balancer is not changed until you correct the value. This page is generated from the table of annotations: ` + "`go test ./cpi/vcd -run Page -update`" + `.
`,
		Foot: `These fields of the spec have an effect: ` + "`ports`" + ` with ` + "`appProtocol`" + ` (` + "`http`, `https`" + `; other values mean plain TCP or UDP), ` + "`loadBalancerIP`, `loadBalancerClass`, `ipFamilies`, `externalTrafficPolicy`, `sessionAffinity`, `loadBalancerSourceRanges`" + ` (if enabled in the configuration; also as the annotation
` + "`" + service.RangesAnnotation + "`" + `). Ports need node ports. SCTP is not supported.

Annotations of clusters and machines are on [a separate page](object-annotations.md).
`,
	}, annotations)
}

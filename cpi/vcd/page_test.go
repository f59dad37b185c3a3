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

What the cloud controller manager understands on Services of type LoadBalancer, besides their spec. All names begin with
` + "`" + prefix + "`" + `; those that go on with ` + "`avi`" + ` are VMware's and work as they did. Spaces around values and in lists do not matter. What
cannot be done is reported once, in an event of type Warning on the Service, and then nothing is built; what stands stays until it is corrected.
This page is made from the table that reads the annotations: ` + "`go test ./cpi/vcd -run Page -update`" + ` writes it.
`,
		Foot: `Of the spec these count: ` + "`ports`" + ` with ` + "`appProtocol`" + ` (` + "`http`, `https`" + `; all else is plain TCP or UDP), ` + "`loadBalancerIP`, `loadBalancerClass`, `ipFamilies`, " +
			"`externalTrafficPolicy`, `sessionAffinity`, `loadBalancerSourceRanges`" + ` (switched on in the configuration; also as the annotation
` + "`" + service.RangesAnnotation + "`" + `). Ports need node ports. SCTP cannot be balanced.

Annotations of clusters and machines are on [a page of their own](object-annotations.md).
`,
	}, annotations)
}

// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"flag"
	"os"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const (
	pagePath  = "../../docs/reference/cloudstack-annotations.md"
	guidePath = "../../docs/networking/cloudstack.md"
)

var update = flag.Bool("update", false, "write docs/reference/cloudstack-annotations.md")

// TestPage compares the reference page with the table of annotations.
func TestPage(t *testing.T) {
	servicetest.HoldPage(t, servicetest.Page{
		Path:    pagePath,
		Command: "go test ./cpi/cloudstack -run Page -update",
		Update:  *update,
		Head: `# Annotations of Services on CloudStack

These annotations configure the load balancer of a Service of type LoadBalancer [on CloudStack](../networking/cloudstack.md). All names begin with
` + "`" + prefix + "`" + `. Spaces around values and in lists are ignored.

If a value is invalid or not supported, a Warning event on the Service reports it once. The load balancer is then not created. An existing
load balancer is not changed until you correct the value. This page is generated from the table of annotations: ` + "`go test ./cpi/cloudstack -run Page -update`" + `.
`,
		Foot: `These fields of the spec have an effect: ` + "`ports`, `loadBalancerIP`, `loadBalancerClass`, `ipFamilies`, `ipFamilyPolicy`, `sessionAffinity`, `loadBalancerSourceRanges`" + ` (also as the
annotation ` + "`" + service.RangesAnnotation + "`" + `). Ports need node ports.
`,
	}, annotations)
}

// TestTheGuideHasEveryCommandAndReason checks the list of permissions and the troubleshooting tables.
func TestTheGuideHasEveryCommandAndReason(t *testing.T) {
	g := NewWithT(t)
	guide, err := os.ReadFile(guidePath)
	g.Expect(err).NotTo(HaveOccurred())
	words := []string{
		ReasonUnavailable, ReasonRejected, ReasonUntrusted, ReasonForbidden, ReasonProject, reasonNoLoadBalancing, reasonAddressUnusable,
		reasonAddressAdopted, reasonAddressNotReleased, reasonPortInUse, reasonConflictingFirewallRule, reasonNodeInOtherNetwork,
		reasonMachineNotVisible, reasonUnsupported,
	}
	for _, file := range []string{"client.go", "read.go", "write.go"} {
		source, err := os.ReadFile("../../internal/cloudstack/" + file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, m := range regexp.MustCompile(`"((?:list|create|delete|update|assign|remove|associate|disassociate|query)[A-Z]\w+)"`).FindAllStringSubmatch(string(source), -1) {
			words = append(words, m[1])
		}
	}
	g.Expect(len(words)).To(BeNumerically(">", 30))
	for _, word := range words {
		g.Expect(string(guide)).To(ContainSubstring("`"+word+"`"), word)
	}
}

// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// overflowing lists elements that extend beyond the viewport, or that scroll horizontally.
const overflowing = `[...document.querySelectorAll("body, body *")].filter((e) => e.checkVisibility() && !e.classList.contains("skip"))
	.filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 || e.getBoundingClientRect().left < -0.5 || (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1))
	.map((e) => e.outerHTML.slice(0, 120))`

// brokenWords lists words that are split over two lines. A line may end after a hyphen, a slash or a dot, and inside a
// string of more than 24 characters.
const brokenWords = `(() => {
	const all = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const node = texts.currentNode;
		if (!node.parentElement.checkVisibility()) continue;
		for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
			if (word[0].length > 24) continue;
			const range = document.createRange();
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) all.push(word[0] + " in " + node.data);
		}
	}
	return all;
})()`

// useLongNames sets names of realistic length: those of the machines of a cluster in the first vApp, and that of the
// edge gateway. It also adds a load balancer.
func (v *browser) useLongNames() {
	state := v.sim.State()
	names := []string{
		"production-control-plane-7xk2p",
		"production-control-plane-9zq4d",
		"production-workers-6f9b8d7c5-x2klm",
	}
	v.sim.Edit(func(e *vcdsim.Editor) {
		e.VApp(state.VApps[0].ID).Name = "production-7d1f0c52"
		vms := 0
		for _, vm := range state.VMs {
			if vm.VAppID == state.VApps[0].ID {
				e.VM(vm.ID).Name = names[vms%len(names)]
				vms++
			}
		}
		e.Model.Orgs[1].VDCs[0].EdgeGateways[0].Name = "edge-gateway-frankfurt-01"
	})
	v.addLoadBalancer("ingress-nginx-controller-https")
}

func TestPageFitsPhonesAndWideScreens(t *testing.T) {
	v := newBrowser(t)
	v.useLongNames()
	v.open("/_sim/")
	call := v.client()
	for _, vm := range v.sim.State().VMs {
		call(http.MethodPost, "/api/vApp/vm-"+vm.ID+"/power/action/powerOff", "")
	}
	call(http.MethodGet, "/api/nothing/of-the-kind/that-is-simulated?filter=a-long-condition==yes", "")
	v.Eventually(v.text("#unknown-section")).Should(ContainSubstring("GET /api/nothing"))
	for name, width := range map[string]int64{"phone": 390, "narrow": 320, "tablet": 820, "wide": 1440} {
		t.Run(name, func(t *testing.T) {
			v := v.with(t)
			v.do(chromedp.EmulateViewport(width, 844))
			v.screenshot(name)
			v.Expect(eval[[]string](v, overflowing)()).To(BeEmpty(), "wider than the page")
			v.Expect(eval[[]string](v, brokenWords)()).To(BeEmpty(), "broken words")
		})
	}
}

func TestAllSectionsOfThePageUpdate(t *testing.T) {
	v := newBrowser(t)
	v.useLongNames()
	v.open("/_sim/")
	v.Eventually(v.text("#gateways")).Should(ContainSubstring("ingress-nginx-controller-https-pool"))
	v.Expect(v.text("#networks")()).To(ContainSubstring("6 of 90"))
	call := v.client()

	vm := v.sim.State().VMs[0]
	call(http.MethodPost, "/api/vApp/vm-"+vm.ID+"/power/action/powerOff", "")
	v.Eventually(v.text("#tasks")).Should(ContainSubstring("Powering off " + vm.Name))
	v.Eventually(v.text("#vapps")).Should(ContainSubstring("busy"))
	v.Eventually(v.text("#requests")).Should(ContainSubstring("powerOff"))
	v.Eventually(v.text("#counts")).Should(ContainSubstring("tasks running\n1"))

	v.addLoadBalancer("live")
	v.Eventually(v.text("#gateways")).Should(And(ContainSubstring("live-pool"), ContainSubstring("2 virtual services")))
	v.Eventually(v.text("#networks")).Should(And(ContainSubstring("live-entity"), ContainSubstring("live-space")))
	v.sim.Edit(func(e *vcdsim.Editor) {
		e.VM(vm.ID).Name = "production-workers-6f9b8d7c5-q8w2n"
		e.Model.Orgs[1].VDCs[0].EdgeGateways[0].Name = "edge-gateway-berlin-01"
		e.Model.Orgs[1].VDCs[0].Networks[0].Name = "nodes-of-production"
	})
	v.Eventually(v.text("#vapps")).Should(ContainSubstring("production-workers-6f9b8d7c5-q8w2n"))
	v.Eventually(v.text("#gateways")).Should(ContainSubstring("edge-gateway-berlin-01"))
	v.Eventually(v.text("#networks")).Should(ContainSubstring("nodes-of-production"))

	clock, ok := v.sim.Clock().(*vcdsim.SimClock)
	v.Expect(ok).To(BeTrue())
	clock.Advance(time.Minute)
	v.Eventually(v.text("#clock")).Should(Equal("2026-03-01 12:01:00"))
	v.Eventually(v.text("#tasks")).Should(ContainSubstring("success"))

	gateway := "urn:vcloud:gateway:" + v.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID
	v.Expect(call(http.MethodPost, "/cloudapi/1.0.0/loadBalancer/pools",
		`{"name":"made-by-a-client","gatewayRef":{"id":"`+gateway+`"}}`)).To(Equal(http.StatusAccepted))
	v.Eventually(v.text("#gateways")).Should(ContainSubstring("busy"))
	clock.Advance(time.Minute)
	v.Eventually(v.text("#gateways")).Should(And(ContainSubstring("made-by-a-client"), Not(ContainSubstring("busy"))))
	v.Expect(v.errors()).To(BeEmpty())
}

// with returns the browser for a subtest.
func (v *browser) with(t *testing.T) *browser {
	t.Helper()
	part := *v
	part.WithT = NewWithT(t)
	return &part
}

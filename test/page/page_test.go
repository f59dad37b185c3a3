// SPDX-License-Identifier: Apache-2.0

// Package page_test tests the web page of vcdsim in a real browser.
package page_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// hostile is a name that runs a script if the page interprets it as markup.
const hostile = `<img src=x onerror="document.title='owned'"><b id=owned>`

func TestMain(m *testing.M) {
	testtime.Main(m)
}

// A browser shows the page of a simulator.
type browser struct {
	*WithT

	sim    *vcdsim.Simulator
	ctx    context.Context //nolint:containedctx // of the browser
	errors func() []string // exceptions and console errors of the page
}

// newBrowser starts a simulator with two vApps, and prepares a browser. It skips the test if Chromium is not installed.
func newBrowser(t *testing.T, mods ...func(*vcdsim.Config)) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (on Debian: apt-get install --no-install-recommends chromium); the page is not tested")
	}
	cfg := vcdsim.Config{
		Model:         vcdsim.K8sTenant(),
		Seed:          1,
		Profile:       vcdsim.Recorded,
		TokenLifetime: 1000 * time.Hour,
		Clock:         vcdsim.NewManualClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)),
	}
	cfg.Model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 2, VMsPerVApp: 3, Owner: "capvcd"}
	for _, m := range mods {
		m(&cfg)
	}
	v := &browser{WithT: NewWithT(t)}
	v.sim, err = vcdsim.New(cfg)
	v.Expect(err).NotTo(HaveOccurred())
	v.shortenNames()
	v.Expect(v.sim.Start()).To(Succeed())
	t.Cleanup(func() { v.Expect(v.sim.Close()).To(Succeed()) })

	allocated, cancelAllocator := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("ignore-certificate-errors", true),
		chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(testtime.Patience))...)
	t.Cleanup(cancelAllocator)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	v.ctx = ctx
	v.errors = listen(ctx)
	return v
}

// shortenNames sets shorter names for vApps and VMs, unless the site has more than two vApps.
func (v *browser) shortenNames() {
	state := v.sim.State()
	if len(state.VApps) > 2 {
		return
	}
	v.sim.Edit(func(e *vcdsim.Editor) {
		for _, vm := range state.VMs {
			e.VM(vm.ID).Name = short(vm.Name)
		}
		for _, vapp := range state.VApps {
			e.VApp(vapp.ID).Name = short(vapp.Name)
		}
	})
}

func short(name string) string {
	return strings.NewReplacer("acme-vdc-vapp-000", "cluster-a", "acme-vdc-vapp-001", "cluster-b", "-00",
		"-").Replace(name)
}

// listen collects exceptions and console errors, such as violations of the content security policy. The returned
// function returns those since its last call.
func listen(ctx context.Context) func() []string {
	messages := make(chan string, 100)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			messages <- e.ExceptionDetails.Error()
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
				messages <- string(e.Args[0].Value)
			}
		}
	})
	return func() []string {
		var out []string
		for len(messages) > 0 {
			out = append(out, <-messages)
		}
		return out
	}
}

// do runs actions in the browser.
func (v *browser) do(actions ...chromedp.Action) {
	ctx, cancel := context.WithTimeout(v.ctx, testtime.Patience)
	defer cancel()
	v.ExpectWithOffset(1, chromedp.Run(ctx, actions...)).To(Succeed())
}

// open starts the browser, opens an address of the page, and waits until the page shows content.
func (v *browser) open(address string) {
	v.Expect(chromedp.Run(v.ctx)).To(Succeed(), "starting the browser")
	v.do(chromedp.Navigate(v.sim.URL()+address), chromedp.WaitVisible("#vapps details", chromedp.ByQuery))
}

// eval returns a function that evaluates a script in the page.
func eval[T any](v *browser, script string) func() T {
	return func() (out T) {
		v.do(chromedp.Evaluate(script, &out))
		return out
	}
}

// text returns a function that returns the visible text of an element.
func (v *browser) text(selector string) func() string {
	return eval[string](v, `document.querySelector("`+selector+`").innerText`)
}

// screenshot saves a screenshot in the folder SCREENSHOTS, if that variable is set.
func (v *browser) screenshot(name string) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	v.do(chromedp.FullScreenshot(&png, 100))
	v.Expect(os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)).To(Succeed())
}

// client logs in as a tenant user, and returns a function that sends requests and returns their status.
func (v *browser) client() func(method, path, body string) int {
	pool := x509.NewCertPool()
	v.Expect(pool.AppendCertsFromPEM(v.sim.CA())).To(BeTrue())
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:    pool,
		MinVersion: tls.VersionTLS12,
	}}}
	token := ""
	call := func(method, path, body string) int {
		req, err := http.NewRequest(method, v.sim.URL()+path, strings.NewReader(body))
		v.Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Accept", "application/*;version=37.2")
		if token == "" {
			req.SetBasicAuth("capvcd@acme", "password")
		} else {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := c.Do(req)
		v.Expect(err).NotTo(HaveOccurred())
		v.Expect(res.Body.Close()).To(Succeed())
		if token == "" {
			token = res.Header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
		}
		return res.StatusCode
	}
	v.Expect(call(http.MethodPost, "/cloudapi/1.0.0/sessions", "")).To(Equal(http.StatusOK))
	return call
}

func TestPageShowsTasksAndRequests(t *testing.T) {
	v := newBrowser(t)
	v.open("/_sim/")
	v.Eventually(v.text("#vapps")).Should(And(ContainSubstring("cluster-a"), ContainSubstring("cluster-b-2"),
		ContainSubstring("192.168.100.15")))
	v.Expect(v.text("#counts")()).To(ContainSubstring("VMs\n6"))
	v.Expect(v.text("#clock")()).To(Equal("2026-03-01 12:00:00"))

	call := v.client()
	vm := ""
	for _, x := range v.sim.State().VMs {
		if x.Name == "cluster-a-1" {
			vm = x.ID
		}
	}
	v.Expect(call(http.MethodPost, "/api/vApp/vm-"+vm+"/power/action/powerOff", "")).To(Equal(http.StatusAccepted))
	call(http.MethodGet, "/api/nothing?x=%3Cb%3E", "")
	v.Eventually(v.text("#tasks")).Should(And(ContainSubstring("Powering off cluster-a-1"),
		ContainSubstring("running")))
	v.Eventually(v.text("#vapps")).Should(ContainSubstring("busy"))
	v.Eventually(v.text("#requests")).Should(And(ContainSubstring("/power/action/powerOff"), ContainSubstring("404"),
		ContainSubstring("capvcd"), ContainSubstring("x=<b>")))
	v.Eventually(v.text("#unknown-section")).Should(ContainSubstring("GET /api/nothing"))
	v.screenshot("light")
	v.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{
		Name:  "prefers-color-scheme",
		Value: "dark",
	}}))
	v.Expect(eval[string](v, `getComputedStyle(document.body).backgroundColor`)()).To(Equal("rgb(18, 22, 29)"))
	v.screenshot("dark")

	clock, ok := v.sim.Clock().(*vcdsim.SimClock)
	v.Expect(ok).To(BeTrue())
	clock.Advance(time.Minute)
	v.Eventually(v.text("#tasks")).Should(And(ContainSubstring("success"), Not(ContainSubstring("running"))))
	v.Eventually(v.text("#vapps")).Should(ContainSubstring("powered off"))
	v.do(chromedp.SetValue("#show", "errors", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("#show").dispatchEvent(new Event("change"))`, nil))
	v.Eventually(v.text("#requests")).Should(And(ContainSubstring("404"), Not(ContainSubstring("powerOff"))))
	v.do(chromedp.SendKeys("#filter", "cluster-b-1", chromedp.ByQuery))
	v.Eventually(v.text("#vapps")).Should(And(ContainSubstring("cluster-b-1"), Not(ContainSubstring("cluster-a")),
		Not(ContainSubstring("cluster-b-2"))))
	v.Expect(v.errors()).To(BeEmpty())
}

// addLoadBalancer adds a virtual service with a pool of two members, one of which does not respond, an allocated
// address and an entity to the first gateway.
func (v *browser) addLoadBalancer(name string) {
	gateway := ""
	pool := ""
	v.sim.Edit(func(e *vcdsim.Editor) {
		org := &e.Model.Orgs[1]
		gateway = org.VDCs[0].EdgeGateways[0].ID
		pool = e.AddDocument("1.0.0/loadBalancer/pools", "loadBalancerPool", org.ID, gateway, map[string]any{
			"name":        name + "-pool",
			"enabled":     true,
			"defaultPort": 30080.0,
			"members": []any{
				map[string]any{"ipAddress": "192.168.100.11", "port": 30080.0, "enabled": true},
				map[string]any{"ipAddress": "192.168.100.12", "port": 30080.0, "enabled": true},
			},
		})
		e.AddDocument("1.0.0/loadBalancer/virtualServices", "loadBalancerVirtualService", org.ID, gateway, map[string]any{
			"name":                name,
			"enabled":             true,
			"virtualIpAddress":    "203.0.113.20",
			"loadBalancerPoolRef": map[string]any{"id": pool, "name": name + "-pool"},
			"servicePorts":        []any{map[string]any{"portStart": 443.0}},
		})
		e.AddDocument("1.0.0/entities", "entity", org.ID, "", map[string]any{
			"name":       name + "-entity",
			"entityType": "urn:vcloud:type:vmware:capvcdCluster:1.1.0",
			"state":      "RESOLVED",
			"entity":     map[string]any{"status": map[string]any{"capvcd": map[string]any{"phase": "Provisioned"}}},
		})
		e.Model.IPSpaces = append(e.Model.IPSpaces, vcdsim.IPSpace{
			ID:   "space",
			Name: name + "-space",
			Type: vcdsim.SpacePublic,
			Allocations: []vcdsim.IPAllocation{
				{ID: "a", Type: vcdsim.FloatingIP, Value: "198.51.100.10", Description: "for " + name},
			},
		})
	})
	v.sim.ReportMembers(map[string]map[netip.AddrPort]bool{pool: {
		netip.MustParseAddrPort("192.168.100.11:30080"): true,
		netip.MustParseAddrPort("192.168.100.12:30080"): false,
	}})
}

func TestPageShowsNetworksAndLoadBalancers(t *testing.T) {
	v := newBrowser(t)
	v.addLoadBalancer("web")
	v.open("/_sim/")
	v.Eventually(v.text("#gateways")).Should(And(ContainSubstring("acme-vdc-gateway"), ContainSubstring("web-pool"),
		ContainSubstring("203.0.113.20:443"), ContainSubstring("192.168.100.11:30080"), ContainSubstring("load balancer")))
	v.Expect(v.text("#networks")()).To(And(ContainSubstring("192.168.100.1/24"), ContainSubstring("6 of 90"),
		ContainSubstring("web-space"), ContainSubstring("198.51.100.10 for web"), ContainSubstring("web-entity"),
		ContainSubstring("Provisioned")))
	v.screenshot("networks")
	v.do(chromedp.SendKeys("#filter", "web", chromedp.ByQuery))
	v.Eventually(v.text("#networks")).Should(And(ContainSubstring("web-entity"), Not(ContainSubstring("storage"))))
	v.Expect(v.text("#gateways")()).To(ContainSubstring("web-pool"))
	v.Expect(v.errors()).To(BeEmpty())
}

func TestPageEscapesNamesOfLoadBalancers(t *testing.T) {
	v := newBrowser(t)
	v.addLoadBalancer(hostile)
	v.sim.Edit(func(e *vcdsim.Editor) {
		e.Model.Orgs[1].VDCs[0].Networks[0].Name = hostile
		e.Model.Orgs[1].VDCs[0].EdgeGateways[0].Name = hostile
	})
	v.open("/_sim/")
	v.Eventually(v.text("#gateways")).Should(ContainSubstring(hostile + "-pool"))
	v.Expect(strings.Count(v.text("#networks")(), hostile)).To(BeNumerically(">=", 4),
		"network, its gateway, IP Space, allocation, entity")
	v.Expect(eval[int](v, `document.querySelectorAll("img, #owned").length`)()).To(Equal(0))
	v.Expect(eval[string](v, `document.title`)()).To(Equal("vcdsim"))
}

func TestPageEscapesNames(t *testing.T) {
	v := newBrowser(t)
	v.sim.Edit(func(e *vcdsim.Editor) {
		e.VApp("cluster-a").Name = hostile
		e.VM("cluster-b-0").Name = hostile
		e.VM("cluster-b-1").Boot = vcdsim.Boot{Failure: hostile}
		e.Model.Orgs[1].Name = hostile
		e.Model.Orgs[1].VDCs[0].Name = hostile
	})
	v.open("/_sim/")
	v.Eventually(v.text("#vapps")).Should(ContainSubstring(hostile))
	v.Expect(strings.Count(v.text("#vapps")(), hostile)).To(BeNumerically(">=", 6),
		"vApp, VM, failure, organization, VDC")
	v.Expect(eval[int](v, `document.querySelectorAll("img, #owned").length`)()).To(Equal(0))
	v.Expect(eval[string](v, `document.title`)()).To(Equal("vcdsim"))
	v.Expect(eval[bool](v,
		`(() => { const s = document.createElement("script"); s.textContent = "window.owned = true"; document.body.append(s); return window.owned === true })()`)()).
		To(BeFalse(), "the content security policy forbids inline scripts")
}

func TestPageIsAccessible(t *testing.T) {
	v := newBrowser(t)
	v.open("/_sim/")
	v.Expect(eval[[]string](v, `[...document.querySelectorAll("input, select, button, progress")]
		.filter((e) => !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()).map((e) => e.outerHTML)`)()).
		To(BeEmpty(), "controls without a name")
	v.Expect(eval[[]string](v, `[...document.querySelectorAll("section, [role=region]")]
		.filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML)`)()).To(BeEmpty(), "regions without a name")
	for _, scheme := range []string{"light", "dark"} {
		v.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{
			Name:  "prefers-color-scheme",
			Value: scheme,
		}}))
		v.Expect(eval[[]string](v, contrast)()).To(BeEmpty(), "text with too little contrast, "+scheme)
	}
	// The keyboard collapses a vApp, which stays collapsed when the page refreshes.
	v.do(chromedp.Focus("#vapps summary", chromedp.ByQuery), chromedp.KeyEvent(" "))
	v.Eventually(eval[bool](v, `document.querySelector("#vapps details").open`)).Should(BeFalse())
	v.client()
	v.Eventually(v.text("#requests")).Should(ContainSubstring("sessions"))
	v.Expect(eval[bool](v, `document.querySelector("#vapps details").open`)()).To(BeFalse())
	v.Expect(eval[bool](v, `document.activeElement === document.querySelector("#vapps summary")`)()).To(BeTrue(),
		"the focus is kept")
}

// contrast lists texts whose contrast ratio with their background is below 4.5, the minimum of WCAG.
const contrast = `(() => {
	const rgb = (s) => s.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c } return [255, 255, 255] };
	return [...document.querySelectorAll("body *")].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.offsetParent)
		.map((e) => { const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x); return [(a + 0.05) / (b + 0.05), e] })
		.filter(([ratio]) => ratio < 4.5).map(([ratio, e]) => ratio.toFixed(2) + " " + e.outerHTML.slice(0, 80));
})()`

func TestPageReportsALostConnectionUntilItRecovers(t *testing.T) {
	v := newBrowser(t, func(cfg *vcdsim.Config) { cfg.ControlToken = "let-me-in" })
	v.open("/_sim/?token=let-me-in")
	v.Expect(eval[string](v, `location.search`)()).To(BeEmpty(), "the token is removed from the address")
	v.do(chromedp.Click("#pause", chromedp.ByQuery))
	v.Expect(eval[string](v, `document.querySelector("#pause").getAttribute("aria-pressed")`)()).To(Equal("true"))
	v.do(chromedp.Click("#pause", chromedp.ByQuery),
		chromedp.Evaluate(`window.really = window.fetch; window.fetch = () => Promise.reject(new Error("gone"))`, nil))
	v.Eventually(v.text("#problem")).Should(ContainSubstring("does not answer (gone)"))
	v.do(chromedp.Evaluate(`window.fetch = window.really; null`, nil))
	v.Eventually(eval[bool](v, `document.querySelector("#problem").hidden`)).Should(BeTrue())
}

func TestPageStaysSmallForALargeSite(t *testing.T) {
	v := newBrowser(t, func(cfg *vcdsim.Config) { cfg.Model = vcdsim.Large() })
	v.open("/_sim/")
	v.Eventually(v.text("#counts")).Should(ContainSubstring("VMs\n10,000"))
	v.Expect(eval[int](v, `document.querySelectorAll("#vapps details").length`)()).To(Equal(100))
	v.do(chromedp.SendKeys("#filter", "vapp-042-077", chromedp.ByQuery))
	v.Eventually(v.text("#vapps")).Should(And(ContainSubstring("vapp-042-077"), Not(ContainSubstring("vapp-041"))))
	v.screenshot("large")
}

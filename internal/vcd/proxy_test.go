// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// proxiedSite is the environment variable with the site that TestCallsGoThroughTheProxyOfTheEnvironment calls in its
// child process.
const proxiedSite = "PROXIED_SITE"

// TestCallsGoThroughTheProxyOfTheEnvironment runs itself in a child process, because each process reads the proxy
// variables only once.
func TestCallsGoThroughTheProxyOfTheEnvironment(t *testing.T) {
	g := NewWithT(t)
	if site := os.Getenv(proxiedSite); site != "" {
		pool := vcd.NewPool(vcd.PoolOptions{})
		_, err := pool.Session(t.Context(),
			vcd.Config{Site: site, Org: "acme", Credentials: vcd.Credentials{Username: "u", Password: "p"}})
		t.Log(err)
		return
	}
	requests := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- fmt.Sprintf("%s %s", r.Method, r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)

	again := func(site, proxy string) string {
		again := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), proxiedSite+"="+site, "HTTPS_PROXY="+proxy, "NO_PROXY=.direct.example")
		out, err := again.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	g.Expect(again("https://vcd.proxied.example", "http://canary:canary@127.0.0.1:1")).To(And(ContainSubstring(
		"https://vcd.proxied.example cannot be reached: proxy 127.0.0.1:1 cannot be used, so the request did not reach the site: connection refused: check its host and port in HTTPS_PROXY"), Not(ContainSubstring("canary"))))
	for site, direct := range map[string]bool{
		"https://vcd.proxied.example": false,
		"https://vcd.direct.example":  true,
	} {
		out := again(site, proxy.URL)

		if direct {
			g.Expect(out).To(ContainSubstring(site + " cannot be reached: DNS"))
			g.Expect(requests).NotTo(Receive())
			continue
		}
		g.Expect(out).To(ContainSubstring(site + " cannot be reached: proxy " + proxy.Listener.Addr().String() +
			" cannot connect to vcd.proxied.example:443 (HTTP 502)"))
		g.Expect(requests).To(Receive(Equal("CONNECT vcd.proxied.example:443")))
		for len(requests) > 0 {
			<-requests
		}
	}
}

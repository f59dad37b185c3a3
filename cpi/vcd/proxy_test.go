// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/connectproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// Names in the tests of the proxy.
const (
	// ownProcess is set in the processes that TestVCDByAProxy starts, one for each of its cases.
	ownProcess = "OWN_PROCESS_FOR_PROXY"
	// proxiedSite is a host that only the proxy resolves. The certificate of the simulator is for it, too.
	proxiedSite   = "vcdsim"
	proxiedTarget = proxiedSite + ":443"
	proxyUser     = "canary@corp"
	proxyPassword = "canary:/?#%"
)

// newProxy starts a proxy that wants a user name and a password, and that resolves the host of a site.
func newProxy(t *testing.T, site *vcdsim.Simulator, denies bool) *connectproxy.Proxy {
	t.Helper()
	g := NewWithT(t)
	u, err := url.Parse(site.URL())
	g.Expect(err).NotTo(HaveOccurred())
	p, err := connectproxy.Start(t.Context(), connectproxy.Options{
		User:   url.UserPassword(proxyUser, proxyPassword),
		Record: true,
		Resolve: func(target string) (string, error) {
			switch {
			case denies:
				return "", connectproxy.ErrDenied
			case target == proxiedTarget:
				return u.Host, nil
			}
			return target, nil
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(p.Close()).To(Succeed()) })
	return p
}

// useProxy gives the process the environment of a managed cloud controller manager: its Secret for a proxy.
func useProxy(t *testing.T, p *connectproxy.Proxy, password string, exceptions ...string) {
	t.Helper()
	g := NewWithT(t)
	u, err := url.Parse(p.URL())
	g.Expect(err).NotTo(HaveOccurred())
	u.User = url.UserPassword(proxyUser, password)
	secret, err := addons.Proxy(u.String(), nodeproxy.Cluster{
		Endpoint: "api.example.com",
		Networks: []netip.Prefix{netip.MustParsePrefix("192.168.100.0/24")},
		More:     exceptions,
	}.Direct())
	g.Expect(err).NotTo(HaveOccurred())
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range (addons.CCM{}).ProxyVariables() {
		value, err := base64.StdEncoding.DecodeString(data[name])
		g.Expect(err).NotTo(HaveOccurred())
		t.Setenv(name, string(value))
	}
}

// TestVCDByAProxy runs each case in a process of its own: what the environment says of proxies is read once per
// process.
func TestVCDByAProxy(t *testing.T) {
	cases := map[string]func(*testing.T){
		"sessions and load balancers go through it":   loadBalancersGoThroughTheProxy,
		"exceptions do not":                           exceptionsAreReachedWithoutTheProxy,
		"the certificate of the site is checked":      anotherSiteBehindTheProxyIsFoundOut,
		"a wrong password is the proxy's refusal":     aWrongPasswordIsExplained,
		"a target that it denies is its refusal, too": aDeniedTargetIsExplained,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(ownProcess) != "" {
				run(t)
				return
			}
			again := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
			again.Env = append(os.Environ(), ownProcess+"=true")

			out, err := again.CombinedOutput()

			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred(), string(out))
			g.Expect(string(out)).To(ContainSubstring("--- PASS: "+t.Name()), "the case ran")
		})
	}
}

// newProxiedCluster makes a cluster whose load balancers are at a site that is reached by a URL.
func newProxiedCluster(t *testing.T, sim *vcdsim.Simulator, site string) *cluster {
	t.Helper()
	c := &cluster{
		WithT:  NewWithT(t),
		sim:    sim,
		site:   site,
		client: fake.NewClientset(),
		events: record.NewFakeRecorder(100),
	}
	c.configure(t, network("", "nodes"))
	c.node("a", "192.168.100.11")
	return c
}

// life makes a load balancer and deletes it.
func (c *cluster) life(t *testing.T) {
	t.Helper()
	s := c.service("default")
	c.Expect(c.ensured(t, s)).NotTo(BeEmpty())
	c.Eventually(func() error { return c.them.EnsureLoadBalancerDeleted(t.Context(), "", s) }).Should(Succeed())
	c.Expect(c.writes()).To(BeNumerically(">", 0))
}

// problem returns the message about a site that cannot be used.
func (c *cluster) problem(t *testing.T) string {
	t.Helper()
	_, err := c.sessions.Session(t.Context())
	c.Expect(err).To(HaveOccurred())
	trouble, ok := cpivcd.Explain(c.site)(err)
	c.Expect(ok).To(BeTrue())
	c.Expect(trouble.Message).NotTo(ContainSubstring("canary"), "user name and password of the proxy are secret")
	return trouble.Message
}

func loadBalancersGoThroughTheProxy(t *testing.T) {
	t.Helper()
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	proxy := newProxy(t, sim, false)
	useProxy(t, proxy, proxyPassword)
	c := newProxiedCluster(t, sim, "https://"+proxiedSite)

	c.life(t)

	c.Expect(proxy.Targets()).To(Equal([]string{proxiedTarget}))
	c.Expect(proxy.Refused()).To(BeZero())
}

func exceptionsAreReachedWithoutTheProxy(t *testing.T) {
	t.Helper()
	const everywhere = "0.0.0.0" // a host that is this machine, and not one of those that never have a proxy
	sim := vcdsimtest.Start(t, vcdsim.Config{Addr: everywhere + ":0"})
	proxy := newProxy(t, sim, false)
	useProxy(t, proxy, proxyPassword, everywhere)
	u, err := url.Parse(sim.URL())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c := newProxiedCluster(t, sim, "https://"+net.JoinHostPort(everywhere, u.Port()))

	c.life(t)

	c.Expect(proxy.Targets()).To(BeEmpty())
	c.Expect(proxy.Refused()).To(BeZero())
	other := newProxiedCluster(t, sim, "https://"+proxiedSite)
	_, err = other.sessions.Session(t.Context())
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(proxy.Targets()).To(Equal([]string{proxiedTarget}), "other hosts go through the proxy")
}

func anotherSiteBehindTheProxyIsFoundOut(t *testing.T) {
	t.Helper()
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	impostor := vcdsimtest.Start(t, vcdsim.Config{})
	proxy := newProxy(t, impostor, false)
	useProxy(t, proxy, proxyPassword)
	c := newProxiedCluster(t, sim, "https://"+proxiedSite)

	c.Expect(c.problem(t)).To(ContainSubstring("the certificate of https://vcdsim is not trusted"))

	c.Expect(proxy.Targets()).To(Equal([]string{proxiedTarget}))
	c.Expect(impostor.Counters()).To(BeEmpty(), "no credentials reach it")
}

func aWrongPasswordIsExplained(t *testing.T) {
	t.Helper()
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	proxy := newProxy(t, sim, false)
	useProxy(t, proxy, "canary")
	c := newProxiedCluster(t, sim, "https://"+proxiedSite)

	c.Expect(c.problem(t)).To(ContainSubstring("proxy " + proxy.Address() + " rejects the user name and password (HTTP 407), so the request did not reach the site: correct them in the URL in HTTPS_PROXY"))

	c.Expect(proxy.Refused()).To(BeNumerically(">", 0))
	c.Expect(proxy.Targets()).To(BeEmpty())
}

func aDeniedTargetIsExplained(t *testing.T) {
	t.Helper()
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	proxy := newProxy(t, sim, true)
	useProxy(t, proxy, proxyPassword)
	c := newProxiedCluster(t, sim, "https://"+proxiedSite)

	c.Expect(c.problem(t)).To(ContainSubstring("proxy " + proxy.Address() +
		" does not allow connections to vcdsim:443 (HTTP 403), so the request did not reach the site"))
}

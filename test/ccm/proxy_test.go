// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/connectproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	// proxiedSite is a host that only the proxy resolves. The certificate of the simulator is also valid for it.
	proxiedSite   = "vcdsim"
	proxiedTarget = proxiedSite + ":443"
	proxyPassword = "canary:/?#%"
	// apiServerHost is a name of this machine that, unlike those of the loopback interface, is not excluded from
	// proxies.
	apiServerHost = "0.0.0.0"
	// hostVariable names the host of the API server in the environment of pods.
	hostVariable = "KUBERNETES_SERVICE_HOST"
)

// TestVCDByAProxyAlone runs the program behind a proxy in the environment of its pods, as in a managed cluster. VCD is
// reachable only through the proxy, which requires a user name and a password. The API server is reached without it.
func TestVCDByAProxyAlone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	site := newGuardedListener(t)
	proxy := site.behindProxy(t)
	settings := only(twoArm)
	settings["vcd.host"] = "https://" + proxiedSite
	w := newFixture(t, "proxied", fixtureOption{
		settings: settings,
		vcd:      []vcdOption{func(c *vcdsim.Config) { c.Listener = site }},
		prepare: func(c *controller) error {
			variables, err := podEnvironment(proxy)
			c.env = variables
			if err != nil {
				return err
			}
			return c.callAPIServer(apiServerHost)
		},
	})

	s := w.service(t, "web")
	s.served()
	s.delete()

	requests := w.cloud.requests()
	g.Expect(describe(requests, knocking)).NotTo(BeEmpty())
	g.Expect(describe(requests, writing)).NotTo(BeEmpty())
	g.Expect(site.accepted()).NotTo(BeEmpty())
	g.Eventually(func() []string { return site.strangers(proxy) }, patience, poll).Should(BeEmpty(),
		"connections to VCD that are none of the proxy's")
	g.Expect(proxy.Targets()).To(Equal([]string{proxiedTarget}), "the API server is reached without the proxy")
	g.Expect(proxy.Refused()).To(BeZero())
	g.Expect(w.controller.log()).NotTo(ContainSubstring("canary"), "the password is secret")

	t.Log("Without the exception of pods it would be reached by the proxy.")
	w.controller.env = slices.DeleteFunc(w.controller.env,
		func(e string) bool { return strings.HasPrefix(e, hostVariable+"=") })
	g.Expect(w.controller.Restart(t.Context())).To(Succeed())
	g.Eventually(proxy.Targets, patience, poll).Should(ContainElement(HavePrefix(apiServerHost + ":")))
}

// A guardedListener listens for the simulator, and records the source of each connection.
type guardedListener struct {
	net.Listener

	mu   sync.Mutex
	from []string
}

func newGuardedListener(t *testing.T) *guardedListener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &guardedListener{Listener: listener}
}

// Accept implements net.Listener.
func (l *guardedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.from = append(l.from, c.RemoteAddr().String())
		l.mu.Unlock()
	}
	return c, err
}

// accepted returns the sources of all connections.
func (l *guardedListener) accepted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.from)
}

// strangers returns the sources of connections that did not come from a proxy.
func (l *guardedListener) strangers(p *connectproxy.Proxy) []string {
	all := l.accepted()
	for _, tunnel := range p.Tunnels() {
		all = slices.DeleteFunc(all, func(from string) bool { return from == tunnel.From.String() })
	}
	return all
}

// behindProxy starts a proxy that resolves the host of the site to the listener, and requires a user name and a
// password.
func (l *guardedListener) behindProxy(t *testing.T) *connectproxy.Proxy {
	t.Helper()
	g := NewWithT(t)
	p, err := connectproxy.Start(t.Context(), connectproxy.Options{
		User:   url.UserPassword("canary@corp", proxyPassword),
		Record: true,
		Resolve: func(target string) (string, error) {
			if target == proxiedTarget {
				return l.Addr().String(), nil
			}
			return target, nil
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(p.Close()).To(Succeed()) })
	return p
}

// podEnvironment returns the environment variables for the proxy and the API server in pods of a managed cloud
// controller manager.
func podEnvironment(p *connectproxy.Proxy) ([]string, error) {
	content, err := addons.Proxy(p.URL(), nodeproxy.Cluster{
		Endpoint: "api.example.com",
		Networks: []netip.Prefix{netip.MustParsePrefix("10.40.0.0/16")},
	}.Direct())
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, &secret); err != nil {
		return nil, fmt.Errorf("reading the Secret of the proxy: %w", err)
	}
	env := []string{hostVariable + "=" + apiServerHost}
	for _, name := range (addons.CCM{}).ProxyVariables() {
		env = append(env, name+"="+string(secret.Data[name]))
	}
	return env, nil
}

// callAPIServer makes the program call the API server by another name of this machine, for which the certificate is not
// valid.
func (c *controller) callAPIServer(host string) error {
	config, err := clientcmd.LoadFromFile(c.kubeconfig())
	if err != nil {
		return err
	}
	for _, server := range config.Clusters {
		u, err := url.Parse(server.Server)
		if err != nil {
			return err
		}
		server.TLSServerName = u.Hostname()
		u.Host = net.JoinHostPort(host, u.Port())
		server.Server = u.String()
	}
	return clientcmd.WriteToFile(*config, c.kubeconfig())
}

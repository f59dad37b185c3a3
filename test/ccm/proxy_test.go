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
	// apiServerHost is a name of this machine that, unlike those of the loopback interface, clients do not exclude from
	// proxies by default.
	apiServerHost = "0.0.0.0"
	// hostVariable names the host of the API server in the environment of pods.
	hostVariable = "KUBERNETES_SERVICE_HOST"
)

// TestVCDIsReachableOnlyThroughAProxy runs the program with the proxy variables of its pods in a managed cluster. VCD
// is reachable only through the proxy, which requires a user name and a password. The program must connect to the API
// server without the proxy.
func TestVCDIsReachableOnlyThroughAProxy(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	site := newRecordingListener(t)
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
	s.awaitServed()
	s.delete()

	requests := w.cloud.requests()
	g.Expect(describe(requests, loggingIn)).NotTo(BeEmpty())
	g.Expect(describe(requests, writing)).NotTo(BeEmpty())
	g.Expect(site.accepted()).NotTo(BeEmpty())
	g.Eventually(func() []string { return site.bypassing(proxy) }, timeout, poll).Should(BeEmpty(),
		"connections to VCD that bypass the proxy")
	g.Expect(proxy.Targets()).To(Equal([]string{proxiedTarget}), "connections to the API server should bypass the proxy")
	g.Expect(proxy.Refused()).To(BeZero())
	g.Expect(w.controller.log()).NotTo(ContainSubstring("canary"), "passwords are not logged")

	t.Log("Without the exception in the variables of pods, the proxy is used for the API server.")
	w.controller.env = slices.DeleteFunc(w.controller.env,
		func(e string) bool { return strings.HasPrefix(e, hostVariable+"=") })
	g.Expect(w.controller.Restart(t.Context())).To(Succeed())
	g.Eventually(proxy.Targets, timeout, poll).Should(ContainElement(HavePrefix(apiServerHost + ":")))
}

// A recordingListener listens for the simulator, and records the source of each connection.
type recordingListener struct {
	net.Listener

	mu   sync.Mutex
	from []string
}

func newRecordingListener(t *testing.T) *recordingListener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &recordingListener{Listener: listener}
}

// Accept implements net.Listener.
func (l *recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.from = append(l.from, c.RemoteAddr().String())
		l.mu.Unlock()
	}
	return c, err
}

// accepted returns the sources of all connections.
func (l *recordingListener) accepted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.from)
}

// bypassing returns the sources of connections that did not come through the proxy.
func (l *recordingListener) bypassing(p *connectproxy.Proxy) []string {
	all := l.accepted()
	for _, tunnel := range p.Tunnels() {
		all = slices.DeleteFunc(all, func(from string) bool { return from == tunnel.From.String() })
	}
	return all
}

// behindProxy starts a proxy that connects requests for the site to the listener, and requires a user name and a
// password.
func (l *recordingListener) behindProxy(t *testing.T) *connectproxy.Proxy {
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

// callAPIServer configures the program to call the API server by another name of this machine, for which the
// certificate is not valid.
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

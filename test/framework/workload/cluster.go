// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryapi "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	inmemoryetcd "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/etcd"
)

// A cluster is one simulated Kubernetes cluster: a resource group of the in-memory API server, and a listener that is
// up while at least one control plane node is.
type cluster struct {
	name     string
	endpoint string
	version  string
	ca       authority
	etcdCA   authority

	group   string
	client  inmemoryruntime.Client
	api     http.Handler
	etcd    http.Handler
	apiCert *tls.Certificate

	// changes serializes the changes of members.
	changes sync.Mutex
	// lock protects the fields below. Do not hold it during calls of client, whose informers call back.
	lock sync.Mutex
	// members are the control plane nodes, by node name.
	members map[string]*member
	server  *http.Server
	address string
	quorum  bool
}

// A member is a control plane node.
type member struct {
	up   bool
	cert *tls.Certificate
}

func newCluster(manager inmemoryruntime.Manager, group string, p *plan) (*cluster, error) {
	c := &cluster{
		name:     p.clusterName,
		endpoint: p.endpoint,
		version:  p.version,
		ca:       p.ca,
		etcdCA:   p.etcdCA,
		group:    group,
		members:  map[string]*member{},
	}
	host, _, err := net.SplitHostPort(p.endpoint)
	if err != nil {
		return nil, fmt.Errorf("control plane endpoint %s: %w", p.endpoint, err)
	}
	names := append([]string{
		host, "localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", p.node.name,
	}, p.certSANs...)
	if c.apiCert, err = p.ca.issue(pkix.Name{CommonName: "kube-apiserver"}, names...); err != nil {
		return nil, err
	}
	manager.AddResourceGroup(group)
	c.client = manager.GetResourceGroup(group).GetClient()
	always := func(string) (string, error) { return group, nil }
	c.api = inmemoryapi.NewAPIServerHandler(manager, logr.Discard(), always)
	c.etcd = inmemoryetcd.NewEtcdServerHandler(manager, logr.Discard(), always)
	return c, nil
}

// addMember adds a control plane node and lets it serve.
func (c *cluster) addMember(node string) error {
	pod := etcdPodName(node)
	cert, err := c.etcdCA.issue(pkix.Name{CommonName: pod}, pod, "localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	c.lock.Lock()
	c.members[node] = &member{cert: cert}
	c.lock.Unlock()
	return nil
}

// setMember records that a control plane node is up or down, and starts or stops serving.
func (c *cluster) setMember(ctx context.Context, node string, up bool) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	c.lock.Lock()
	m := c.members[node]
	if m == nil {
		c.lock.Unlock()
		return nil
	}
	m.up = up
	alive := c.aliveLocked()
	c.lock.Unlock()

	voters, err := c.settleEtcd(ctx, alive)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.quorum = 2*voters.alive > voters.all
	switch {
	case len(alive) > 0 && c.server == nil:
		return c.serveLocked(ctx)
	case len(alive) == 0 && c.server != nil:
		err := c.server.Close()
		c.server = nil
		c.address = ""
		return err
	default:
		return nil
	}
}

// removeMember removes a control plane node whose VM was deleted, and reports whether it was the last one.
func (c *cluster) removeMember(ctx context.Context, node string) (last bool, _ error) {
	err := c.setMember(ctx, node, false)
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.members, node)
	return len(c.members) == 0, err
}

func (c *cluster) aliveLocked() []string {
	var alive []string
	for name, m := range c.members {
		if m.up {
			alive = append(alive, name)
		}
	}
	slices.Sort(alive)
	return alive
}

// up returns the local address of the API server, or "" if no control plane node is running.
func (c *cluster) up() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.address
}

func (c *cluster) serveLocked(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for cluster %s: %w", c.name, err)
	}
	server := &http.Server{
		Handler:           c,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          silent,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: c.tlsFor},
		Protocols:         new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	c.server = server
	c.address = listener.Addr().String()
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return nil
}

// tlsFor selects the certificate by server name: that of a running etcd member, or otherwise that of the API server.
func (c *cluster) tlsFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	cert := c.apiCert
	trusted := c.ca
	if node, isEtcd := etcdNode(hello.ServerName); isEtcd {
		c.lock.Lock()
		m := c.members[node]
		alive := m != nil && m.up
		c.lock.Unlock()
		if !alive {
			return nil, fmt.Errorf("etcd member %s does not run", node)
		}
		cert = m.cert
		trusted = c.etcdCA
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*cert},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    trusted.pool(),
	}, nil
}

// ServeHTTP serves the API server and, behind port forwards, the etcd members.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ca := c.ca
	handler := c.api
	if _, isEtcd := etcdNode(r.TLS.ServerName); isEtcd {
		ca = c.etcdCA
		handler = c.etcd
	}
	if err := ca.signed(r.TLS); err != nil {
		refuse(w, http.StatusUnauthorized, "Unauthorized", err)
		return
	}
	c.lock.Lock()
	quorum := c.quorum
	local := c.address
	c.lock.Unlock()
	if !quorum {
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable",
			errors.New("etcdserver: no leader, most members are down"))
		return
	}
	if node, ok := c.forwardTarget(r); ok && !c.nodeRuns(node) {
		refuse(w, http.StatusBadGateway, "InternalError",
			fmt.Errorf("dialing kubelet of node %s: no route to host", node))
		return
	}
	if strings.HasPrefix(r.URL.Path, coordination) {
		serveLeases(w, r)
		return
	}
	// A port forward is dialed at the host of the request, which only the proxy can resolve.
	r.Host = local
	handler.ServeHTTP(w, r)
}

// SPDX-License-Identifier: Apache-2.0

// Package workload creates clients of workload clusters. They send requests only for explicit calls, and run no
// watches.
package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// callTimeout bounds one call.
	callTimeout = 5 * time.Second
	// idleTime is how long an unused client is kept. It caches the API resources of its server, and holds no
	// connection.
	idleTime = time.Hour
	// userAgent is sent with each call.
	userAgent = "cluster-api-provider-vcd"
)

// An Opener returns an uncached client of the workload cluster of a Cluster.
type Opener func(ctx context.Context, cluster client.ObjectKey) (client.Client, error)

// Clients holds one client for each workload cluster.
type Clients struct {
	secrets client.Reader
	scheme  *runtime.Scheme
	now     func() time.Time

	mu   sync.Mutex
	open map[client.ObjectKey]opened
}

type opened struct {
	client.Client

	kubeconfig []byte
	used       time.Time
}

// NewClients returns Clients that read kubeconfig Secrets with the given reader.
func NewClients(secrets client.Reader, scheme *runtime.Scheme) *Clients {
	return &Clients{secrets: secrets, scheme: scheme, now: time.Now, open: map[client.ObjectKey]opened{}}
}

// Open returns the client of a workload cluster. It reuses the client until the kubeconfig changes.
func (c *Clients) Open(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	raw, err := kubeconfig.FromSecret(ctx, c.secrets, cluster)
	if err != nil {
		return nil, fmt.Errorf("getting the kubeconfig of Cluster %s: %w", cluster, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.open, func(_ client.ObjectKey, o opened) bool { return now.Sub(o.used) > idleTime })
	found, ok := c.open[cluster]
	if !ok || !bytes.Equal(found.kubeconfig, raw) {
		if found.Client, err = c.connect(raw); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig of Cluster %s: %w", cluster, err)
		}
		found.kubeconfig = raw
	}
	found.used = now
	c.open[cluster] = found
	return found.Client, nil
}

func (c *Clients) connect(raw []byte) (client.Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	if reachesOut(config) {
		return nil, errors.New("it refers to files, programs or other users: embed the certificate, key or token")
	}
	config.UserAgent = userAgent
	config.Timeout = callTimeout
	return client.New(config, client.Options{Scheme: c.scheme})
}

// reachesOut reports whether a kubeconfig refers to anything outside itself. A tenant with write access to the Secret
// could otherwise make the manager send its own token, or run a program.
func reachesOut(c *rest.Config) bool {
	tls := c.TLSClientConfig
	return c.ExecProvider != nil || c.AuthProvider != nil || c.BearerTokenFile != "" ||
		tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" || c.Impersonate.UserName != ""
}

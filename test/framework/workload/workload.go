// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/connectproxy"
)

// Options are the options of the simulated guests. The zero value is suitable for tests.
type Options struct {
	// BootstrapTime is the duration of kubeadm; zero means no delay.
	BootstrapTime time.Duration
	// NotReadyAfter is the time until a stopped node is no longer Ready; zero means one second.
	NotReadyAfter time.Duration
	// JoinTimeout is the time that kubeadm join waits for its cluster; zero means kubeadm's default of five minutes.
	JoinTimeout time.Duration
	// RetryEvery is the interval between the attempts of a joining guest to reach its cluster; zero means 200 ms.
	RetryEvery time.Duration
	// Log receives the events of guests. Nil discards them. User data is never logged.
	Log *slog.Logger
}

// Workloads is the guest of the simulator, and the clusters of its VMs.
type Workloads struct {
	options Options
	manager inmemoryruntime.Manager
	proxy   *connectproxy.Proxy

	//nolint:containedctx // Guests outlive the calls that power them on.
	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup

	lock     sync.Mutex
	clusters map[string]*cluster // by control plane endpoint
	machines map[string]*machine // by VM ID
	groups   int
}

// New starts the in-memory server and the proxy. They stop when ctx ends or with Close.
func New(ctx context.Context, options Options) (*Workloads, error) {
	options = withDefaults(options)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme of workload clusters: %w", err)
	}
	w := &Workloads{
		options:  options,
		manager:  inmemoryruntime.NewManager(scheme),
		clusters: map[string]*cluster{},
		machines: map[string]*machine{},
	}
	ctx, cancel := context.WithCancel(ctx)
	w.ctx = ctx
	w.cancel = cancel
	if err := w.manager.Start(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("starting the in-memory API server: %w", err)
	}
	if err := w.watchNodes(); err != nil {
		cancel()
		return nil, err
	}
	var err error
	if w.proxy, err = connectproxy.Start(ctx, connectproxy.Options{Resolve: w.resolve}); err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = w.proxy.Close() })
	return w, nil
}

func withDefaults(o Options) Options {
	if o.NotReadyAfter == 0 {
		o.NotReadyAfter = time.Second
	}
	if o.JoinTimeout == 0 {
		o.JoinTimeout = 5 * time.Minute
	}
	if o.RetryEvery == 0 {
		o.RetryEvery = 200 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// Close stops all clusters and the proxy.
func (w *Workloads) Close() error {
	w.cancel()
	w.jobs.Wait()
	err := w.proxy.Close()
	w.lock.Lock()
	clusters := w.clusters
	w.clusters = map[string]*cluster{}
	w.lock.Unlock()
	for _, c := range clusters {
		err = errors.Join(err, c.close())
	}
	return err
}

// A Machine is the externally visible state of a guest, for progress displays and assertions.
type Machine struct {
	VMID   string
	VMName string
	// Node and Cluster are empty while the guest does not belong to a cluster.
	Node    string
	Cluster string
	Phase   Phase
	// Message is the prerequisite that the guest waits for, or the reason why it did not start.
	Message string
}

// Machines returns all guests that were powered on and not deleted, sorted by VM name.
func (w *Workloads) Machines() []Machine {
	w.lock.Lock()
	defer w.lock.Unlock()
	var out []Machine
	for _, m := range w.machines {
		out = append(out, m.Machine)
	}
	slices.SortFunc(out, func(a, b Machine) int { return strings.Compare(a.VMName+a.VMID, b.VMName+b.VMID) })
	return out
}

// Machine returns the guest of a VM. The second result reports whether it exists.
func (w *Workloads) Machine(vmID string) (Machine, bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	m, found := w.machines[vmID]
	if !found {
		return Machine{}, false
	}
	return m.Machine, true
}

// Clusters returns the control plane endpoints of all existing clusters.
func (w *Workloads) Clusters() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	var out []string
	for endpoint := range w.clusters {
		out = append(out, endpoint)
	}
	slices.Sort(out)
	return out
}

// Nodes returns the nodes of a cluster, given by its name or its control plane endpoint.
func (w *Workloads) Nodes(cluster string) ([]corev1.Node, error) {
	c, err := w.find(cluster)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	if err := c.client.List(w.ctx, list); err != nil {
		return nil, fmt.Errorf("listing nodes of cluster %s: %w", cluster, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// find returns a cluster by name or endpoint. A name that several clusters have is an error.
func (w *Workloads) find(nameOrEndpoint string) (*cluster, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if c, found := w.clusters[nameOrEndpoint]; found {
		return c, nil
	}
	var hit *cluster
	for _, c := range w.clusters {
		if c.name != nameOrEndpoint {
			continue
		}
		if hit != nil {
			return nil, fmt.Errorf("several clusters are named %s, use the endpoint instead", nameOrEndpoint)
		}
		hit = c
	}
	if hit == nil {
		return nil, fmt.Errorf("no cluster has the name or endpoint %s", nameOrEndpoint)
	}
	return hit, nil
}

// resolve returns the local address of the cluster at a dialed endpoint, for the proxy. It returns loopback addresses
// unchanged.
func (w *Workloads) resolve(target string) (string, error) {
	w.lock.Lock()
	c, found := w.clusters[strings.ToLower(target)]
	w.lock.Unlock()
	if found {
		if address := c.up(); address != "" {
			return address, nil
		}
		return "", fmt.Errorf("no control plane of cluster %s (%s) is running", c.name, target)
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return "", fmt.Errorf("%s is not host:port", target)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return target, nil
	}
	return "", fmt.Errorf("%s is not a control plane endpoint of a simulated cluster", target)
}

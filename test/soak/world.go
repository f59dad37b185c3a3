// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
)

// shards are the values of the watch label of the managers. Each manager reconciles the namespace of the same name.
func shards() []string { return []string{"soak-a", "soak-b"} }

// syncPeriod is the interval in which the managers reconcile unchanged objects. It is shorter than the default, so that
// the calls at rest include it.
const syncPeriod = 2 * time.Minute

// A manager is one of this provider's managers. down is held while it does not run.
type manager struct {
	*stack.Manager

	down sync.Mutex
}

// A world is a management cluster with its managers, and the sites.
type world struct {
	options

	out   io.Writer
	began time.Time // zero until the plan starts

	nodes      *workload.Workloads
	sites      []*site
	management *framework.ManagementCluster
	managers   []*manager
	client     client.Client
	cloudStack *cloudStack
	judge      *judge

	mu     sync.Mutex
	ccms   map[string]*ccm // by name
	living sync.WaitGroup  // cloud controller managers of clusters
}

// start starts everything.
func (w *world) start(ctx context.Context) error {
	var err error
	background := context.WithoutCancel(ctx)
	if w.nodes, err = workload.New(background, workload.Options{}); err != nil {
		return fmt.Errorf("starting the simulated guests: %w", err)
	}
	for i := range sites {
		s, err := startSite(i, w.pace, w.seed, w.nodes)
		if err != nil {
			return err
		}
		w.sites = append(w.sites, s)
	}
	w.management, err = framework.Start(ctx, framework.Options{
		Dir:         w.dir,
		Out:         w.out,
		Env:         w.nodes.Env(),
		ManagerArgs: []string{"--sync-period=" + syncPeriod.String(), "--cloud-provider-sync-period=1m"},
	})
	if err != nil {
		return fmt.Errorf("starting the management cluster: %w", err)
	}
	if err := w.connect(); err != nil {
		return err
	}
	if err := w.startManagers(ctx); err != nil {
		return err
	}
	if err := framework.Build(ctx, w.management.Root, "./cmd/cpi", w.ccmProgram()); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	w.cloudStack, err = w.newCloudStack()
	return err
}

// connect creates the client.
func (w *world) connect() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme),
		infrav1.AddToScheme(scheme)); err != nil {
		return err
	}
	access := w.management.RESTConfig()
	access.QPS = 200
	access.Burst = 400
	var err error
	w.client, err = client.New(access, client.Options{Scheme: scheme})
	return err
}

// startManagers starts one manager for each shard. The manager of the framework only serves webhooks.
func (w *world) startManagers(ctx context.Context) error {
	for _, shard := range shards() {
		m, err := w.management.Manager.Replica(ctx, shard, "--watch-filter="+shard)
		if err != nil {
			return err
		}
		if err := m.Start(ctx); err != nil {
			return fmt.Errorf("starting a manager (its log is %s): %w", m.LogPath(), err)
		}
		w.managers = append(w.managers, &manager{Manager: m})
	}
	return nil
}

// prepare creates the namespaces, their pools of addresses, and the identities that clusters share.
func (w *world) prepare(ctx context.Context) error {
	outside := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cloudStackNamespace}}
	if err := w.client.Create(ctx, outside); err != nil {
		return fmt.Errorf("creating Namespace %s: %w", outside.Name, err)
	}
	for number, shard := range shards() {
		objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shard}}}
		objects = append(objects, pools(shard, number)...)
		for _, s := range w.sites {
			objects = append(objects, w.sharedIdentities(s, shard)...)
		}
		for _, object := range objects {
			if err := w.client.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
			}
		}
	}
	return nil
}

// siteLabel is the label of Secrets with credentials, and userLabel names the user.
const (
	siteLabel = "soak.test/site"
	userLabel = "soak.test/user"
)

// sharedIdentities returns an identity for a namespace and one for all namespaces, with their Secrets.
func (w *world) sharedIdentities(s *site, shard string) []client.Object {
	name := sharedIdentity(s.index, shard)
	spec := infrav1.VCDIdentitySpec{Site: s.URL(), SecretRef: infrav1.LocalSecretReference{Name: name}}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:      name,
			Namespace: namespace,
			Labels: map[string]string{
				clusterv1.WatchLabel: shard,
				siteLabel:            fmt.Sprint(s.index),
				userLabel:            managersUser,
			},
		}
	}
	credentials := func(namespace string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: meta(namespace),
			StringData: map[string]string{
				infrav1.SecretUsername: managersUser,
				infrav1.SecretPassword: s.password(),
				infrav1.SecretCABundle: string(s.CA()),
			},
		}
	}
	return []client.Object{
		credentials(shard),
		&infrav1.VCDIdentity{ObjectMeta: meta(shard), Spec: spec},
		credentials(framework.Namespace),
		&infrav1.VCDClusterIdentity{
			ObjectMeta: meta(""),
			Spec: infrav1.VCDClusterIdentitySpec{
				VCDIdentitySpec:   spec,
				Orgs:              []string{"acme"},
				AllowedNamespaces: &infrav1.AllowedNamespaces{List: []string{shard}},
			},
		},
	}
}

// pools returns the pools of addresses of a namespace. They do not overlap with those of other namespaces.
func pools(namespace string, number int) []client.Object {
	pool := func(name, addresses, gateway string, prefix int64) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
			"kind":       "InClusterIPPool",
			"metadata":   map[string]any{"name": name, "namespace": namespace},
			"spec":       map[string]any{"addresses": []any{addresses}, "prefix": prefix, "gateway": gateway},
		}}
	}
	n := number + 1
	return []client.Object{
		pool("nodes", fmt.Sprintf("10.0.%d.0-10.0.%d.255", 100+10*n, 104+10*n), "10.0.0.1", 16),
		pool("nodes-v6", fmt.Sprintf("fd00:100::%d:0-fd00:100::%d:3ff", n, n), "fd00:100::1", 64),
		pool("virtual-ips", fmt.Sprintf("10.0.%d.0-10.0.%d.255", 105+10*n, 105+10*n), "10.0.0.1", 16),
	}
}

// retryRequest repeats a request that may fail while a webhook is not available.
func retryRequest(ctx context.Context, request func() error) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := request()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// now returns the simulated time since the start of the plan.
func (w *world) now() time.Duration {
	if w.began.IsZero() {
		return 0
	}
	return time.Duration(float64(time.Since(w.began)) * w.pace)
}

// logf prints a line with the simulated time.
func (w *world) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(w.out, "[%s] %s\n", hours(w.now()), fmt.Sprintf(format, args...))
}

// logs returns the folder with the logs of all programs.
func (w *world) logs() string { return filepath.Join(w.dir, "logs") }

// close stops everything.
func (w *world) close() error {
	var errs []error
	if w.management != nil {
		errs = append(errs, w.management.Stop())
	}
	for _, s := range w.sites {
		errs = append(errs, s.Close())
	}
	if w.nodes != nil {
		errs = append(errs, w.nodes.Close())
	}
	return errors.Join(errs...)
}

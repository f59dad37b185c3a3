// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// clusterLabel is the label of the Nodes and Services of a cluster. The simulated clusters do not support Services.
// Therefore, each cloud controller manager works on those in the API server of the management cluster, where it only
// sees the objects of its own cluster.
const clusterLabel = "soak.test/cluster"

// uninitialized is the taint that kubelets set on Nodes until a cloud controller manager removes it.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// A ccm is a cloud controller manager: a program that can be killed and started again.
type ccm struct {
	world  *world
	name   string // of its cluster
	dir    string
	args   []string
	env    []string
	server *httptest.Server // the API server from its point of view
	paused sync.Mutex       // held after a kill, while nothing may start it

	mu      sync.Mutex
	process *process.Process // nil while it does not run
}

// newCCM prepares the program, whose files are in a folder.
func (w *world) newCCM(name string, args ...string) (*ccm, error) {
	c := &ccm{world: w, name: name, dir: filepath.Join(w.dir, "ccm", name)}
	if err := os.MkdirAll(c.dir, 0o750); err != nil {
		return nil, fmt.Errorf("creating the folder of a CCM: %w", err)
	}
	if err := c.serve(); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: c.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type:  "CERTIFICATE",
			Bytes: c.server.Certificate().Raw,
		}),
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of a CCM: %w", err)
	}
	c.args = append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--configure-cloud-routes=false",
		"--secure-port=0",
		"--probe-address=",
		"--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller",
		"--v=2",
	}, args...)
	return c, nil
}

// serve serves the API server with only the Nodes and Services of the cluster.
func (c *ccm) serve() error {
	target, err := url.Parse(c.world.management.RESTConfig().Host)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(c.world.management.RESTConfig())
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	c.server = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			path := r.Out.URL.Path
			if r.Out.Method != http.MethodGet || path != "/api/v1/services" && path != "/api/v1/nodes" {
				return
			}
			query := r.Out.URL.Query()
			query.Set("labelSelector", clusterLabel+"="+c.name)
			r.Out.URL.RawQuery = query.Encode()
		},
		FlushInterval: -1, // Watches are streams.
		Transport:     transport,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	return nil
}

// start starts the program unless it runs.
func (c *ccm) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil && !ended(c.process) {
		return nil
	}
	p, err := process.Start(process.Spec{
		Name: "ccm-" + c.name,
		Path: c.world.ccmProgram(),
		Args: c.args,
		Dir:  c.world.dir,
		Env:  append(withoutProxies(), c.env...),
	})
	if err != nil {
		return err
	}
	c.process = p
	return nil
}

func ended(p *process.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// kill kills the program, like a crash.
func (c *ccm) kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return nil
	}
	return c.process.Kill()
}

// end kills the program and removes its view of the API server.
func (c *ccm) end() error {
	err := c.kill()
	c.server.CloseClientConnections()
	c.server.Close()
	return err
}

// write writes files below the folder of the program, each atomically.
func (c *ccm) write(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(c.dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path+".new", files[name], 0o600))
		if err := errors.Join(err, os.Rename(path+".new", path)); err != nil {
			return fmt.Errorf("writing a file of a CCM: %w", err)
		}
	}
	return nil
}

func withoutProxies() []string {
	return slices.DeleteFunc(os.Environ(),
		func(e string) bool { return strings.Contains(strings.ToUpper(e), "_PROXY=") })
}

func (w *world) ccmProgram() string { return filepath.Join(w.dir, "bin", "cpi") }

// service returns a Service of a cluster with one or two ports.
func service(namespace, cluster string, number int) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      serviceName(cluster, number),
			Labels:    map[string]string{clusterLabel: cluster},
		},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	if number%2 == 1 {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "https", Port: 443})
	}
	return s
}

// maxServices is the maximum number of Services of a cluster.
const maxServices = 4

func serviceName(cluster string, number int) string {
	return fmt.Sprintf("%s-web-%d", cluster, number%maxServices)
}

// createService creates a Service unless it exists, and deleteService deletes it.
func (w *world) createService(ctx context.Context, namespace, cluster string, number int) error {
	return retryRequest(ctx, func() error {
		err := w.client.Create(ctx, service(namespace, cluster, number))
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (w *world) deleteService(ctx context.Context, namespace, cluster string, number int) error {
	s := service(namespace, cluster, number)
	return retryRequest(ctx, func() error { return client.IgnoreNotFound(w.client.Delete(ctx, s)) })
}

// dropServices removes the Services of a cluster that is gone, as they go with its API server.
func (w *world) dropServices(ctx context.Context, cluster string) error {
	list := &corev1.ServiceList{}
	selected := client.MatchingLabels{clusterLabel: cluster}
	if err := retryRequest(ctx, func() error { return w.client.List(ctx, list, selected) }); err != nil {
		return fmt.Errorf("listing the Services of cluster %s: %w", cluster, err)
	}
	var errs []error
	for i := range list.Items {
		s := &list.Items[i]
		before := s.DeepCopy()
		s.Finalizers = nil
		errs = append(errs, client.IgnoreNotFound(w.client.Patch(ctx, s, client.MergeFrom(before))),
			client.IgnoreNotFound(w.client.Delete(ctx, s)))
	}
	return errors.Join(errs...)
}

// mirrorNodes makes the Nodes that the program sees those of the cluster, as its kubelets do.
func (c *ccm) mirrorNodes(ctx context.Context, nodes []corev1.Node) error {
	list := &corev1.NodeList{}
	if err := c.world.client.List(ctx, list, client.MatchingLabels{clusterLabel: c.name}); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	surplus := map[string]*corev1.Node{}
	for i := range list.Items {
		surplus[list.Items[i].Name] = &list.Items[i]
	}
	var errs []error
	for i := range nodes {
		if mirrored, exists := surplus[nodes[i].Name]; exists {
			errs = append(errs, c.heartbeat(ctx, mirrored))
		} else {
			errs = append(errs, c.createNode(ctx, &nodes[i]))
		}
		delete(surplus, nodes[i].Name)
	}
	for _, node := range surplus {
		errs = append(errs, client.IgnoreNotFound(c.world.client.Delete(ctx, node)))
	}
	return errors.Join(errs...)
}

// createNode creates a Node as its kubelet does that waits for a cloud controller manager.
func (c *ccm) createNode(ctx context.Context, known *corev1.Node) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: known.Name, Labels: maps.Clone(known.Labels)},
		Spec: corev1.NodeSpec{
			ProviderID: known.Spec.ProviderID,
			Taints:     []corev1.Taint{{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, clusterLabel, c.name)
	if err := c.world.client.Create(ctx, node); err != nil {
		return fmt.Errorf("creating Node %s: %w", node.Name, err)
	}
	return c.heartbeat(ctx, node)
}

// heartbeat reports that a Node is ready, unless it is known.
func (c *ccm) heartbeat(ctx context.Context, node *corev1.Node) error {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}
	known := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == ready.Type && condition.Status == ready.Status
	})
	if known {
		return nil
	}
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{ready}
	patch := client.StrategicMergeFrom(before)
	if err := client.IgnoreNotFound(c.world.client.Status().Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("reporting Node %s as ready: %w", node.Name, err)
	}
	return nil
}

// kubeletPeriod is the interval in which the work of kubelets is done.
const kubeletPeriod = 2 * time.Second

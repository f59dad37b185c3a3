// SPDX-License-Identifier: Apache-2.0

// Command network is the network plug-in of simulated nodes, in a pod on each of them. It writes the configuration of
// the reference plug-ins from the pod CIDRs of the node, and adds routes to the pod CIDRs of the other nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// resync is the interval in which manual changes are reverted.
const resync = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := plugin{routes: kernel{}, rules: nft}
	var kubelet string
	flag.StringVar(&p.node, "node", os.Getenv("NODE_NAME"), "name of the node")
	flag.StringVar(&p.file, "config", "/etc/cni/net.d/10-node-network.conflist", "file for the container runtime")
	flag.StringVar(&kubelet, "kubelet-kubeconfig", "", "kubelet's kubeconfig: its server is used instead of the Service kubernetes, which no node has before kube-proxy runs")
	flag.Parse()
	if err := run(ctx, &p, kubelet); err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// run watches the nodes until the context ends.
func run(ctx context.Context, p *plugin, kubelet string) error {
	config, err := connection(kubelet)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	nodes := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		list, err := nodes.Lister().List(labels.Everything())
		if err == nil {
			err = p.apply(ctx, list)
		}
		if err != nil {
			slog.ErrorContext(ctx, "Configuring the network", "err", err)
			time.AfterFunc(time.Second, wake)
		}
	}
}

// connection returns a configuration with the pod's service account for the server that the kubelet uses.
func connection(kubelet string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil || kubelet == "" {
		return config, err
	}
	file, err := clientcmd.LoadFromFile(kubelet)
	if err != nil {
		return nil, fmt.Errorf("reading kubelet's kubeconfig: %w", err)
	}
	current, ok := file.Contexts[file.CurrentContext]
	if !ok || file.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("the kubeconfig %s names no server", kubelet)
	}
	config.Host = file.Clusters[current.Cluster].Server
	return config, nil
}

func internalIPs(node *corev1.Node) []string {
	var found []string
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			found = append(found, a.Address)
		}
	}
	return found
}

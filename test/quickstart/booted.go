package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

// booted are VMs that boot, in place of pretended ones.
type booted struct {
	hypervisor *hypervisor.Hypervisor
	image      hypervisor.Image
	images     string
	proxy      *http.Server
	proxyURL   string
	stop       func()
}

// insideAddress is where VMs reach the simulated VCD, and, through the proxy, the manager, too.
var insideAddress = netip.MustParseAddrPort("192.0.2.1:443")

const (
	// nodeImage is the name of an image of make node-image, and of the template that VMs boot it by.
	nodeImage = "debian-12-kube-" + programs.KubernetesVersion
	// bootedDir is short, because sockets are in it.
	bootedDir          = "/var/lib/vcdsim-quickstart"
	proxyHeaderTimeout = 10 * time.Second
	proxyExceptions    = "127.0.0.1,localhost"
)

// openBooted starts what the VMs boot with.
func (q *quickstart) openBooted(ctx context.Context, config *vcdsim.Config) error {
	b := &booted{images: filepath.Join(q.cache, "nodes")}
	found, err := hypervisor.Images(b.images)
	for _, img := range found {
		if img.Name == nodeImage {
			b.image = img
		}
	}
	if err != nil || b.image.Name == "" {
		return errors.Join(
			fmt.Errorf("there is no image %s in %s: run make node-image as root", nodeImage, b.images), err)
	}
	b.hypervisor, err = hypervisor.New(hypervisor.Options{
		Images: b.images, Dir: bootedDir, Log: config.Log,
	})
	if err != nil {
		return err
	}
	q.booted = b
	listener, err := b.hypervisor.Listen(insideAddress) //nolint:contextcheck // It is closed with the simulator.
	if err != nil {
		return err
	}
	config.Guest, config.Further = b.hypervisor, append(config.Further, listener)
	config.Model.Orgs[1].Catalogs[0].Templates[0].Name = nodeImage
	outside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the proxy: %w", err)
	}
	b.proxy = &http.Server{Handler: b.hypervisor.Outside(), ReadHeaderTimeout: proxyHeaderTimeout}
	b.proxyURL = "http://" + outside.Addr().String()
	go func() { _ = b.proxy.Serve(outside) }() // until close
	return nil
}

// managerArgs name the image of the cloud controller manager that is in the VMs' image store.
func (q *quickstart) managerArgs() []string {
	if q.booted == nil {
		return nil
	}
	return []string{"--cloud-provider-version=" + imageVersion}
}

// imageVersion is what make node-image calls this project's images.
const imageVersion = "v2.0.0-dev"

// follow carries the traffic of the edge gateways.
func (b *booted) follow(ctx context.Context, sim *vcdsim.Simulator) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	b.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		b.hypervisor.Follow(ctx, sim)
	}()
}

func (b *booted) close() error {
	if b.stop != nil {
		b.stop()
	}
	var err error
	if b.proxy != nil {
		err = b.proxy.Close()
	}
	return errors.Join(err, b.hypervisor.Close())
}

// env leads programs of this machine to the networks of the VMs, or to the simulated clusters.
func (q *quickstart) env() []string {
	if q.booted == nil {
		return q.site.Workloads.Env()
	}
	return []string{
		"HTTPS_PROXY=" + q.booted.proxyURL, "https_proxy=" + q.booted.proxyURL,
		"NO_PROXY=" + proxyExceptions, "no_proxy=" + proxyExceptions,
	}
}

// variables are what a user writes into clusterctl.yaml.
func (q *quickstart) variables() map[string]string {
	out := q.site.Variables()
	if q.booted != nil {
		out["VCD_SITE"], out["VCD_TEMPLATE_NAME"] = "https://"+insideAddress.Addr().String(), q.booted.image.Name
	}
	return out
}

// writeKubeconfig writes a kubeconfig of the cluster that goes through the proxy.
func (q *quickstart) writeKubeconfig(path string, data []byte) error {
	if q.booted == nil {
		return q.site.Workloads.WriteKubeconfig(path, data)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	for _, c := range config.Clusters {
		c.ProxyURL = q.booted.proxyURL
	}
	return clientcmd.WriteToFile(*config, path)
}

func (q *quickstart) kubeconfig() string { return filepath.Join(q.dir, clusterName+".kubeconfig") }

// installNetwork installs the network plug-in as soon as the cluster answers, as its users do.
func (q *quickstart) installNetwork(ctx context.Context) error {
	if q.booted == nil {
		return nil
	}
	manifest, err := os.ReadFile(q.booted.image.Network)
	if err != nil {
		return fmt.Errorf("reading the manifest of the network plug-in: %w", err)
	}
	q.say("Waiting for the API server of the cluster, to install the network plug-in")
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("it does not answer within %s", q.timeout))
	defer cancel()
	return q.retry(ctx, func() error {
		data, err := q.stack.Clusterctl(ctx, "get", "kubeconfig", clusterName, "--namespace="+clusterNamespace)
		if err != nil {
			return err
		}
		if err := q.writeKubeconfig(q.kubeconfig(), data); err != nil {
			return err
		}
		_, err = q.stack.Kubectl(ctx, bytes.NewReader(manifest), "--kubeconfig="+q.kubeconfig(), "apply", "-f", "-")
		return err
	})
}

const retryEvery = 2 * time.Second

func (q *quickstart) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case err := <-q.stack.Failed():
			return err
		case <-time.After(retryEvery):
		}
	}
}

// agnhost is the image of Kubernetes' own tests, which is in the VMs' image store.
const agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"

const website = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "%s", args: [netexec], ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// serveWebsite shows that a Service of type LoadBalancer answers from outside.
func (q *quickstart) serveWebsite(ctx context.Context) error {
	if q.booted == nil {
		return nil
	}
	kubectl := func(in io.Reader, args ...string) (string, error) {
		out, err := q.stack.Kubectl(ctx, in, append([]string{"--kubeconfig=" + q.kubeconfig()}, args...)...)
		return strings.TrimSpace(string(out)), err
	}
	if _, err := kubectl(strings.NewReader(fmt.Sprintf(website, agnhost)), "apply", "-f", "-"); err != nil {
		return err
	}
	q.say("Waiting for a Service of type LoadBalancer to answer")
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("it does not answer within %s", q.timeout))
	defer cancel()
	var address string
	err := q.retry(ctx, func() error {
		var err error
		address, err = kubectl(nil, "get", "service", "web", "-o=jsonpath={.status.loadBalancer.ingress[0].ip}")
		if err != nil {
			return err
		}
		return q.fetch(ctx, "http://"+address+"/hostname")
	})
	if err != nil {
		return err
	}
	q.say("curl --proxy %s http://%s/hostname answers", q.booted.proxyURL, address)
	return nil
}

// fetch gets a page through the proxy.
func (q *quickstart) fetch(ctx context.Context, page string) error {
	proxy, err := url.Parse(q.booted.proxyURL)
	if err != nil {
		return fmt.Errorf("the proxy: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", page, err)
	}
	res, err := (&http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", page, err)
	}
	_ = res.Body.Close() // only the status counts
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", page, res.Status)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// A bootedImage is the boot image of the VMs.
type bootedImage struct {
	name    string
	network string   // path of the manifest of the network plug-in
	images  []string // references of this project's container images in its image store
}

// insideAddress is the address of the simulated VCD inside the networks of the VMs. The manager reaches it through the
// proxy.
var insideAddress = netip.MustParseAddrPort("192.0.2.1:443")

// nodeImage returns the name of an image from make node-image, which is also the name of its vApp template.
func nodeImage(kubernetes string) string { return "debian-12-kube-" + kubernetes }

const (
	// bootedDir is short because it contains sockets.
	bootedDir       = "/var/lib/vcdsim-quickstart"
	proxyExceptions = "127.0.0.1,localhost"
)

// managerArgs returns the flags that select the image of the cloud controller manager in the image store of the VMs.
func (q *quickstart) managerArgs() []string {
	if q.booted == nil {
		return nil
	}
	return q.booted.managerArgs()
}

func (i bootedImage) managerArgs() []string {
	for _, reference := range i.images {
		if name, version, _ := strings.Cut(path.Base(reference), ":"); name == "cloud-provider-for-cloud-director" {
			return []string{"--cloud-provider-version=" + version}
		}
	}
	return nil
}

// env returns the environment variables with which programs on this machine reach the networks of the VMs or the
// simulated clusters.
func (q *quickstart) env() []string {
	if q.booted == nil {
		return q.site.Workloads.Env()
	}
	return []string{
		"HTTPS_PROXY=" + q.booted.proxyURL,
		"https_proxy=" + q.booted.proxyURL,
		"NO_PROXY=" + proxyExceptions,
		"no_proxy=" + proxyExceptions,
	}
}

// variables returns the variables of a user for clusterctl.yaml.
func (q *quickstart) variables() map[string]string {
	out := q.site.Variables()
	if q.booted != nil {
		out["VCD_SITE"] = "https://" + insideAddress.Addr().String()
		out["VCD_TEMPLATE_NAME"] = q.booted.name
		out["VCD_TEMPLATE_PATTERN"] = nodeImage("VERSION")
	}
	return out
}

// writeKubeconfig writes a kubeconfig of the cluster that uses the proxy.
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

// installNetwork installs the network plug-in as soon as the cluster responds, as users do.
func (q *quickstart) installNetwork(ctx context.Context) error {
	if q.booted == nil {
		return nil
	}
	manifest, err := os.ReadFile(q.booted.network)
	if err != nil {
		return fmt.Errorf("reading the manifest of the network plug-in: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("it does not respond within %s", q.timeout))
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

// busybox is an image of the Kubernetes tests. The image store of each image from make node-image contains it.
const busybox = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"

const website = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: "%s"
          # A container whose first process ignores SIGTERM delays the reboot of its node by 90 s.
          command: [sh, -c, "mkdir /tmp/www && hostname >/tmp/www/hostname && httpd -p 8080 -h /tmp/www &&
            trap exit TERM && { sleep infinity & wait; }"]
          ports: [{containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
          # New connections arrive until all nodes observe that the pod is terminating.
          lifecycle: {preStop: {sleep: {seconds: 5}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// serveWebsite deploys a website, and waits until its Service of type LoadBalancer responds from outside the cluster.
func (q *quickstart) serveWebsite(ctx context.Context) error {
	if q.booted == nil {
		return nil
	}
	if err := q.showNodes(ctx); err != nil {
		return err
	}
	kubectl := func(in io.Reader, args ...string) (string, error) {
		out, err := q.stack.Kubectl(ctx, in, append([]string{"--kubeconfig=" + q.kubeconfig()}, args...)...)
		return strings.TrimSpace(string(out)), err
	}
	if _, err := kubectl(strings.NewReader(fmt.Sprintf(website, busybox)), "apply", "-f", "-"); err != nil {
		return err
	}
	q.printf("Waiting for a Service of type LoadBalancer to answer")
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("it does not respond within %s", q.timeout))
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
	q.website = "http://" + address + "/hostname"
	q.printf("curl --proxy %s %s answers", q.booted.proxyURL, q.website)
	q.printMemory()
	return nil
}

// fetch requests a page through the proxy. A status other than 200 is an error.
func (q *quickstart) fetch(ctx context.Context, page string) error {
	proxy, err := url.Parse(q.booted.proxyURL)
	if err != nil {
		return fmt.Errorf("the proxy: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return fmt.Errorf("requesting %s: %w", page, err)
	}
	res, err := (&http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("requesting %s: %w", page, err)
	}
	_ = res.Body.Close() // only the status matters
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds with %s", page, res.Status)
	}
	return nil
}

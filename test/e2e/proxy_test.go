// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/test/framework"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// First and last host of the range of control plane endpoints, in the network of the nodes but outside its pools.
const (
	firstEndpoint = 200
	lastEndpoint  = 250
)

// A proxy is the ClusterProxy of the management cluster. It assigns a separate endpoint to each cluster, and connects
// to workload clusters through the HTTP proxy of the simulated guests.
type proxy struct {
	framework.ClusterProxy

	guests *url.URL
	used   atomic.Int32
}

func newProxy(s suite) *proxy {
	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	guests, err := url.Parse(s.Workloads.ProxyURL())
	Expect(err).NotTo(HaveOccurred())
	return &proxy{ClusterProxy: framework.NewClusterProxy("management", s.Kubeconfig(), scheme), guests: guests}
}

// Create creates the objects of a cluster.
func (p *proxy) Create(ctx context.Context, resources []byte, options ...framework.CreateOption) error {
	return p.ClusterProxy.Create(ctx, p.withEndpoint(resources), options...)
}

// GetWorkloadCluster returns the ClusterProxy of a workload cluster.
func (p *proxy) GetWorkloadCluster(ctx context.Context, namespace, name string, options ...framework.Option) framework.ClusterProxy {
	options = append(options, framework.WithRESTConfigModifier(func(config *rest.Config) {
		config.Proxy = http.ProxyURL(p.guests)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutSubresource{next} })
	}))
	return p.ClusterProxy.GetWorkloadCluster(ctx, namespace, name, options...)
}

// withEndpoint replaces the placeholder for the endpoint with an unused address.
func (p *proxy) withEndpoint(resources []byte) []byte {
	if !bytes.Contains(resources, []byte(endpoint)) {
		return resources
	}
	next := firstEndpoint + p.used.Add(1) - 1
	Expect(next).To(BeNumerically("<=", lastEndpoint), "no free address for another control plane endpoint")
	return bytes.ReplaceAll(resources, []byte(endpoint), fmt.Appendf(nil, "192.168.100.%d", next))
}

// withoutSubresource patches Nodes instead of their status subresource, because simulated API servers have no
// subresources.
type withoutSubresource struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t withoutSubresource) RoundTrip(request *http.Request) (*http.Response, error) {
	path, found := strings.CutSuffix(request.URL.Path, "/status")
	if found && request.Method == http.MethodPatch && strings.HasPrefix(path, "/api/v1/nodes/") {
		request = request.Clone(request.Context())
		request.URL.Path = path
	}
	return t.RoundTripper.RoundTrip(request)
}

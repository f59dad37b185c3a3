// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// TestManagerAuthorizesRequestsAndElectsALeader runs a manager with the shipped settings: leader election, and metrics
// over HTTPS for authorized clients.
func TestManagerAuthorizesRequestsAndElectsALeader(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	m := newWideReplica(t, "elected", "--leader-elect=true", "--insecure-diagnostics=false")
	site := strings.TrimSuffix(strings.Replace(m.MetricsURL(), "http:", "https:", 1), "/metrics")
	g.Eventually(func() error { // A manager is ready before it serves metrics.
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(site, "https://"))
		if err != nil {
			return err
		}
		return conn.Close()
	}, timeout, "100ms").Should(Succeed())
	roles := applyRoles(t)
	unprivileged := token(t, "unprivileged", "")
	prometheus := token(t, "prometheus", "capvcd-metrics-reader")
	administrator := token(t, "administrator", "capvcd-debugger")

	g.Expect(roles).To(ContainElements("capvcd-metrics-reader", "capvcd-debugger"))
	for _, tt := range []struct {
		who, token, method, path string
		status                   int
	}{
		{"without a token", "", http.MethodGet, "/metrics", 401},
		{"without rights", unprivileged, http.MethodGet, "/metrics", 403},
		{"without rights", unprivileged, http.MethodGet, "/debug/pprof/", 403},
		{"Prometheus", prometheus, http.MethodPut, "/debug/vcd-wire-log", 403},
		{"Prometheus", prometheus, http.MethodGet, "/metrics", 200},
		{"an administrator", administrator, http.MethodPut, "/debug/vcd-wire-log?for=1m", 200},
		{"an administrator", administrator, http.MethodGet, "/debug/vcd-wire-log", 200},
		{"an administrator", administrator, http.MethodDelete, "/debug/vcd-wire-log", 200},
		{"an administrator", administrator, http.MethodGet, "/debug/pprof/cmdline", 200},
	} {
		// The API server observes new roles with a delay, and caches their absence for a while.
		g.Eventually(func() int {
			status, _ := request(t, tt.token, tt.method, site+tt.path)
			return status
		}, timeout, "500ms").Should(Equal(tt.status), "%s: %s %s", tt.who, tt.method, tt.path)
	}
	g.Eventually(func() string {
		_, metrics := request(t, prometheus, http.MethodGet, site+"/metrics")
		return metrics
	}, timeout, "200ms").Should(And(
		ContainSubstring(`leader_election_master_status{name="controller-leader-election-capvcd"} 1`),
		ContainSubstring(`controller_runtime_max_concurrent_reconciles{controller="vcdmachine"} 20`),
		ContainSubstring("capvcd_oldest_deletion_age_seconds{"),
	))

	g.Expect(m.Stop()).To(Succeed())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "capvcd-system",
		Name:      "controller-leader-election-capvcd",
	}}
	g.Expect(shared.client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	g.Expect(ptr.Deref(lease.Spec.HolderIdentity, "")).To(BeEmpty(), "a manager releases its lease when it stops")
}

// applyRoles applies the shipped roles for administrators and Prometheus, and returns their names.
func applyRoles(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(shared.Root, "config", "monitoring", "metrics_reader.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var names []string
	for {
		role := &unstructured.Unstructured{}
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			return names
		}
		g.Expect(shared.Apply(t.Context(), *role)).To(Succeed())
		names = append(names, role.GetName())
	}
}

// token creates a service account with a role, and returns a token for it.
func token(t *testing.T, name, role string) string {
	t.Helper()
	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	g.Expect(shared.client.Create(t.Context(), account)).To(Succeed())
	t.Cleanup(func() { _ = shared.client.Delete(context.Background(), account) })
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: account.Namespace}},
		}
		g.Expect(shared.client.Create(t.Context(), binding)).To(Succeed())
		t.Cleanup(func() { _ = shared.client.Delete(context.Background(), binding) })
	}
	request := &authenticationv1.TokenRequest{}
	g.Expect(shared.client.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
	return request.Status.Token
}

// request sends a request to a server with a self-signed certificate, and returns the status and the body.
func request(t *testing.T, token, method, url string) (int, string) {
	t.Helper()
	g := NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as Prometheus does
	}}
	response, err := c.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(body)
}

func TestVirtualIPFromAPool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(s.inClusterPool("vips", "192.168.100.201"))
	s.create(s.inClusterPool("spare", "192.168.100.205-192.168.100.206"))
	c := s.cluster("pooled", func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint.Host = ""
		c.Spec.ControlPlaneLoadBalancer.KubeVIP.AddressSource = infrav1.VIPSourceIPAM
		c.Spec.ControlPlaneLoadBalancer.KubeVIP.PoolRefs = []infrav1.IPPoolReference{poolRef("vips")}
	})

	s.ready(c)

	s.g.Expect(c.Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.201"))
	next := s.cluster("next", func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint.Host = ""
		c.Spec.ControlPlaneLoadBalancer.KubeVIP.AddressSource = infrav1.VIPSourceIPAM
		c.Spec.ControlPlaneLoadBalancer.KubeVIP.PoolRefs = []infrav1.IPPoolReference{poolRef("vips"), poolRef("spare")}
		c.Spec.ControlPlaneLoadBalancer.KubeVIP.Mode = infrav1.KubeVIPDaemonSet
	})
	s.ready(next)
	s.g.Expect(next.Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.205"), "the first pool is exhausted")
	change := next.DeepCopy()
	change.Spec.ControlPlaneLoadBalancer.KubeVIP.Mode = infrav1.KubeVIPStaticPod
	s.g.Expect(shared.client.Patch(t.Context(), change, client.MergeFrom(next))).To(
		MatchError(ContainSubstring("spec.controlPlaneLoadBalancer")))
	s.g.Eventually(func() error {
		s.g.Expect(shared.client.Get(t.Context(), client.ObjectKeyFromObject(next), next)).To(Succeed())
		next.Spec.ControlPlaneLoadBalancer.KubeVIP.BGP = &infrav1.KubeVIPBGP{
			ASNumber:        65001,
			RouterInterface: "ens192",
			Peers:           []infrav1.KubeVIPPeer{{Address: "192.168.100.1", ASNumber: 65000}},
		}
		return shared.client.Update(t.Context(), next)
	}, timeout).Should(Succeed(), "BGP peers are mutable")
	s.deleteCluster("next")
	s.deleteCluster("pooled")
	claims := &ipamv1.IPAddressClaimList{}
	s.g.Eventually(func() ([]ipamv1.IPAddressClaim, error) {
		err := shared.client.List(t.Context(), claims, client.InNamespace(s.namespace))
		return claims.Items, err
	}, timeout).Should(BeEmpty())
}

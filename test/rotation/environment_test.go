// SPDX-License-Identifier: Apache-2.0

// Package rotation tests logins with tokens that change with each login. The manager and cloud controller managers log
// in to one simulated VMware Cloud Director, and store the tokens in a real API server.
package rotation

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

const (
	namespace = "team-a"
	// managerIdentity is the name of the manager's VCDIdentity and of its Secret.
	managerIdentity = "manager"
	timeout         = time.Minute
)

// An environment is an API server with the kinds of Cluster API and of this provider, and a simulated VCD.
type environment struct {
	*WithT
	*stack.Stack

	t      *testing.T
	ctx    context.Context //nolint:containedctx // that of the test
	client client.Client
	sim    *vcdsim.Simulator
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	h := &environment{
		WithT: NewWithT(t),
		t:     t,
		ctx:   t.Context(),
		sim:   vcdsimtest.Start(t, vcdsim.Config{Profile: vcdsim.Instant}),
	}
	dir, err := os.MkdirTemp("", "rotation-") //nolint:usetesting // Logs outlive a test that fails.
	h.Expect(err).NotTo(HaveOccurred())
	h.Stack, err = stack.Start(t.Context(), stack.Options{Dir: dir, Out: os.Stderr, Parts: []stack.Part{}})
	h.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		h.Expect(h.Stop()).To(Succeed())
		if t.Failed() {
			t.Log("Logs are kept in", dir)
			return
		}
		h.Expect(os.RemoveAll(dir)).To(Succeed())
	})
	h.installCRDs()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme,
		addonsv1.AddToScheme, infrav1.AddToScheme,
	} {
		h.Expect(add(scheme)).To(Succeed())
	}
	live, err := client.New(h.RESTConfig(), client.Options{Scheme: scheme})
	h.Expect(err).NotTo(HaveOccurred())
	h.client, err = newIndexedClient(h.ctx, live)
	h.Expect(err).NotTo(HaveOccurred())
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return h
}

// installCRDs installs the CRDs without conversion, because all have one version.
func (h *environment) installCRDs() {
	root, err := framework.Root()
	h.Expect(err).NotTo(HaveOccurred())
	list := exec.CommandContext(h.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	list.Dir = root
	dir, err := list.Output()
	h.Expect(err).NotTo(HaveOccurred())
	core := filepath.Join(strings.TrimSpace(string(dir)), "core", "config", "crd", "bases")
	files := []string{
		filepath.Join(core, "cluster.x-k8s.io_clusters.yaml"),
		filepath.Join(core, "addons.cluster.x-k8s.io_clusterresourcesets.yaml"),
	}
	ours, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	h.Expect(err).NotTo(HaveOccurred())
	var crds []unstructured.Unstructured
	for _, file := range append(files, ours...) {
		raw, err := os.ReadFile(file)
		h.Expect(err).NotTo(HaveOccurred())
		objects, err := utilyaml.ToUnstructured(bytes.TrimSpace(raw))
		h.Expect(err).NotTo(HaveOccurred())
		crds = append(crds, objects...)
	}
	h.Expect(h.InstallCRDs(h.ctx, crds...)).To(Succeed())
}

func (h *environment) create(obj client.Object) {
	h.t.Helper()
	h.Expect(h.client.Create(h.ctx, obj)).To(Succeed())
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// identity creates a VCDIdentity that refers to a Secret, which another identity may use too.
func (h *environment) identity(name, secret string, kind infrav1.CredentialType, share bool) {
	h.t.Helper()
	i := &infrav1.VCDIdentity{ObjectMeta: meta(name)}
	i.Spec = infrav1.VCDIdentitySpec{
		Site:              h.sim.URL(),
		SecretRef:         infrav1.LocalSecretReference{Name: secret},
		Type:              kind,
		ShareWithClusters: ptr.To(share),
	}
	h.create(i)
}

func (h *environment) secret(name string, data map[string]string) {
	h.t.Helper()
	data["ca.crt"] = string(h.sim.CA())
	h.create(&corev1.Secret{ObjectMeta: meta(name), StringData: data})
}

// account creates a service account in VCD with the role, and a VCDIdentity for it.
func (h *environment) account(name, role string, share bool) {
	h.t.Helper()
	h.secret(name, map[string]string{infrav1.SecretAPIToken: vcdsimtest.ServiceAccount(h.t, h.sim, name, role)})
	h.identity(name, name, infrav1.CredentialServiceAccount, share)
}

// cluster creates a cluster with an initialized control plane. ccm is the identity of its cloud controller manager.
func (h *environment) cluster(name, address, ccm string) {
	h.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: meta(name)}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "VCDCluster",
		Name:     name,
	}
	h.create(c)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	h.Expect(h.client.Status().Update(h.ctx, c)).To(Succeed())
	v := &infrav1.VCDCluster{ObjectMeta: meta(name)}
	v.Labels = map[string]string{clusterv1.ClusterNameLabel: name}
	v.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       name,
		UID:        c.UID,
	}}
	v.Spec = infrav1.VCDClusterSpec{
		Site:                 h.sim.URL(),
		Org:                  "acme",
		OVDC:                 "acme-vdc",
		OVDCNetwork:          "nodes",
		IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: managerIdentity},
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: address},
		ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
			Type:    infrav1.EndpointKubeVIP,
			KubeVIP: &infrav1.KubeVIPEndpoint{},
		},
		CloudProvider: infrav1.CloudProviderSpec{
			Mode:        infrav1.CloudProviderManaged,
			IdentityRef: &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: ccm},
		},
	}
	h.create(v)
}

// value returns the current value of a key of a Secret.
func (h *environment) value(namespace, name, key string) string {
	secret := &corev1.Secret{}
	h.Expect(h.client.Get(h.ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)).To(Succeed())
	return string(secret.Data[key])
}

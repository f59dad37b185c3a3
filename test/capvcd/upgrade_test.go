// SPDX-License-Identifier: Apache-2.0

// Package capvcd tests upgrades of management clusters from CAPVCD. A release build of this provider replaces CAPVCD's
// CRDs, with objects that are stored in CAPVCD's versions, on a real API server with Cluster API's core manager.
package capvcd

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta1"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const (
	namespace = "default"
	infraID   = "NO_RDE_11111111-1111-1111-1111-111111111111"
	password  = "canary-password"
	// identity is the name of the identity that the conversion creates for credentials in a VCDCluster.
	identity = "demo-capvcd-credentials"
	timeout  = 2 * time.Minute
)

func TestUpgradeFromCAPVCD(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a management cluster; not in short mode")
	}
	u := start(t)
	u.installVersions("v1beta1")
	u.create(&v1beta1.VCDMachine{
		ObjectMeta: named("first"),
		Spec:       v1beta1.VCDMachineSpec{Template: "ubuntu", Catalog: "kubernetes"},
	})
	u.installVersions("v1beta1", "v1beta2")
	u.createObjects()
	u.Expect(u.stored("vcdmachines")).To(ConsistOf("v1beta1", "v1beta2"))

	u.installProvider()

	t.Run("objects are unchanged", u.in(objectsAreUnchanged))
	t.Run("credentials are moved", u.in(credentialsAreMoved))
	t.Run("edits in the version of CAPVCD are applied", u.in(oldEditsAreApplied))
	t.Run("edits in our version are visible in the version of CAPVCD", u.in(newEditsAreConverted))
	t.Run("credentials cannot be set in our version", u.in(credentialsCannotBeSet))
	t.Run("objects can still be created in the version of CAPVCD", u.in(oldObjectsCanBeCreated))
	t.Run("all objects are stored in our version", u.in(allIsStoredInNewVersion))
	t.Run("the password does not leak", u.in(passwordDoesNotLeak))
	t.Run("the versions of CAPVCD are no longer needed", u.in(oldVersionsCanBeDropped))
}

// An upgrade is a management cluster before or after the upgrade.
type upgrade struct {
	*WithT

	t       *testing.T
	shipped product
	stack   *stack.Stack
	client  client.Client
	manager *stack.Manager
}

func start(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{WithT: NewWithT(t), t: t}
	var err error
	u.shipped, err = builtProduct()
	u.Expect(err).NotTo(HaveOccurred())
	u.stack, err = stack.Start(t.Context(), stack.Options{
		Dir:   t.TempDir(),
		Out:   t.Output(),
		Parts: []stack.Part{stack.Core},
	})
	u.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = u.stack.Stop() })
	u.client, err = client.New(u.stack.RESTConfig(), client.Options{Scheme: newScheme()})
	u.Expect(err).NotTo(HaveOccurred())
	return u
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, v1beta1.AddToScheme,
		v1beta2.AddToScheme, infrav1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// in returns a subtest that runs a part of the test.
func (u *upgrade) in(part func(*upgrade)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		inner := *u
		inner.WithT = NewWithT(t)
		inner.t = t
		part(&inner)
	}
}

// installVersions installs the CRDs with the given versions and without conversion. The last version is the storage
// version. With the versions of CAPVCD, the CRDs equal those of CAPVCD.
func (u *upgrade) installVersions(versions ...string) {
	u.t.Helper()
	u.Expect(u.stack.InstallCRDs(u.t.Context(), u.definitions(versions...)...)).To(Succeed())
}

// definitions returns the CRDs with the given versions.
func (u *upgrade) definitions(versions ...string) []unstructured.Unstructured {
	u.t.Helper()
	var crds []unstructured.Unstructured
	for document := range strings.SplitSeq(string(u.shipped.components), "\n---\n") {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		u.Expect(yaml.Unmarshal([]byte(document), definition)).To(Succeed())
		definition.Spec.Versions = slices.DeleteFunc(definition.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return !slices.Contains(versions, v.Name)
			})
		if definition.Kind != "CustomResourceDefinition" || len(definition.Spec.Versions) == 0 {
			continue
		}
		last := &definition.Spec.Versions[len(definition.Spec.Versions)-1]
		last.Storage = true
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		definition.Labels = map[string]string{"cluster.x-k8s.io/v1beta1": last.Name}
		definition.Annotations = nil
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		u.Expect(err).NotTo(HaveOccurred())
		unstructured.RemoveNestedField(object, "status")
		crds = append(crds, unstructured.Unstructured{Object: object})
	}
	return crds
}

func (u *upgrade) create(object client.Object) {
	u.t.Helper()
	u.Expect(u.client.Create(u.t.Context(), object)).To(Succeed())
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// createObjects creates objects in the versions of CAPVCD 1.3.2.
func (u *upgrade) createObjects() {
	u.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: named("demo")}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "VCDCluster",
		Name:     "demo",
	}
	u.create(cluster)
	vcdCluster := oldCluster()
	u.create(vcdCluster)
	vcdCluster.Status = v1beta2.VCDClusterStatus{
		Ready:           true,
		RDEVersionInUse: "NO_RDE_",
		InfraID:         infraID,
		Org:             "acme",
	}
	u.Expect(u.client.Status().Update(u.t.Context(), vcdCluster)).To(Succeed())
	u.create(&v1beta2.VCDMachine{ObjectMeta: named("second"), Spec: oldMachineSpec()})
	template := &v1beta2.VCDMachineTemplate{ObjectMeta: named("demo")}
	template.Spec.Template.Spec = oldMachineSpec()
	u.create(template)
	class := &v1beta2.VCDClusterTemplate{ObjectMeta: named("demo")}
	class.Spec.Template.Spec = oldCluster().Spec
	class.Spec.Template.Spec.UserCredentialsContext = v1beta2.UserCredentialsContext{
		SecretRef: &v1beta2.SecretReference{Name: "vcd", Namespace: namespace},
	}
	u.create(class)
}

func oldCluster() *v1beta2.VCDCluster {
	c := &v1beta2.VCDCluster{ObjectMeta: named("demo")}
	c.Spec = v1beta2.VCDClusterSpec{
		ControlPlaneEndpoint: v1beta2.APIEndpoint{Host: "192.0.2.10", Port: 6443},
		Site:                 "https://127.0.0.1:1",
		Org:                  "acme",
		Ovdc:                 "acme-vdc",
		OvdcNetwork:          "nodes",
		UserCredentialsContext: v1beta2.UserCredentialsContext{
			Username: "admin",
			Password: password,
		},
		ProxyConfigSpec:        v1beta2.ProxyConfig{HTTPProxy: "http://proxy", NoProxy: "a, b"},
		LoadBalancerConfigSpec: v1beta2.LoadBalancerConfig{VipSubnet: "192.0.2.0/24"},
	}
	return c
}

func oldMachineSpec() v1beta2.VCDMachineSpec {
	return v1beta2.VCDMachineSpec{
		Catalog:           "kubernetes",
		Template:          "ubuntu",
		ExtraOvdcNetworks: []string{"storage"},
		EnableNvidiaGPU:   true,
	}
}

func (u *upgrade) installProvider() {
	u.t.Helper()
	var err error
	u.manager, err = u.stack.InstallProvider(u.t.Context(), stack.ProviderInstall{
		ComponentsYAML: u.shipped.components,
		ManagerBinary:  u.shipped.manager,
		Version:        framework.Version,
	})
	u.Expect(err).NotTo(HaveOccurred())
	u.Expect(u.manager.Start(u.t.Context())).To(Succeed())
}

// get reads an object in the API version of its type.
func get[T any, P interface {
	*T
	client.Object
}](u *upgrade, name string) P {
	u.t.Helper()
	object := P(new(T))
	u.Expect(u.client.Get(u.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)).To(Succeed())
	return object
}

func objectsAreUnchanged(u *upgrade) {
	c := get[infrav1.VCDCluster](u, "demo")
	u.Expect(c.Spec.InfraID).To(Equal(infraID))
	u.Expect(c.Spec.ControlPlaneLoadBalancer.Type).To(Equal(infrav1.EndpointEdgeGateway))
	u.Expect(c.Spec.CloudProvider.Mode).To(Equal(infrav1.CloudProviderExternal))
	u.Expect(c.Spec.VApp).To(Equal(infrav1.VAppSpec{Layout: infrav1.VAppPerCluster, Name: "demo"}))
	u.Expect(c.Spec.Proxy.NoProxy).To(Equal([]string{"a", "b"}))
	u.Expect(c.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	before := oldCluster()
	now := get[v1beta2.VCDCluster](u, "demo")
	now.Spec.UserCredentialsContext = before.Spec.UserCredentialsContext // The credentials may have been moved.
	now.Spec.RDEID = ""                                                  // CAPVCD sets it at runtime.
	u.Expect(now.Spec).To(Equal(before.Spec))
	u.Expect(now.Status.InfraID).To(Equal(infraID))
	u.Expect(now.Status.Org).To(Equal("acme"))
	u.Expect(get[v1beta1.VCDMachine](u, "first").Spec.Template).To(Equal("ubuntu"))
	u.Expect(get[infrav1.VCDMachine](u, "first").Spec.Networks).To(BeEmpty())
	u.Expect(get[infrav1.VCDMachine](u, "second").Spec.Networks).To(HaveLen(2))
	u.Expect(get[v1beta2.VCDMachine](u, "second").Spec).To(Equal(oldMachineSpec()))
	u.Expect(get[v1beta2.VCDMachineTemplate](u, "demo").Spec.Template.Spec).To(Equal(oldMachineSpec()))
	class := get[infrav1.VCDClusterTemplate](u, "demo").Spec.Template.Spec
	u.Expect(class.IdentityRef.Name).To(Equal("vcd"))
	u.Expect(class.ControlPlaneEndpoint.Host).To(BeEmpty())
}

func credentialsAreMoved(u *upgrade) {
	u.Eventually(func(g Gomega) {
		c := &infrav1.VCDCluster{}
		g.Expect(u.client.Get(u.t.Context(), client.ObjectKey{Namespace: namespace, Name: "demo"}, c)).To(Succeed())
		g.Expect(c.Spec.CAPVCDCredentials).To(BeNil())
	}, timeout, "200ms").Should(Succeed())
	u.Expect(get[corev1.Secret](u, identity).Data).To(HaveKeyWithValue("password", []byte(password)))
	u.Expect(get[infrav1.VCDIdentity](u, identity).Spec.SecretRef.Name).To(Equal(identity))
	u.Expect(get[v1beta2.VCDCluster](u, "demo").Spec.UserCredentialsContext).To(Equal(v1beta2.UserCredentialsContext{
		SecretRef: &v1beta2.SecretReference{Namespace: namespace, Name: identity},
	}))
}

func oldEditsAreApplied(u *upgrade) {
	patch := func(change string) error {
		return u.client.Patch(u.t.Context(), get[v1beta2.VCDCluster](u, "demo"),
			client.RawPatch("application/merge-patch+json", []byte(change)))
	}
	u.Expect(patch(`{"spec": {"proxyConfigSpec": {"httpProxy": "http://another"}, "parentUid": "parent",
		"loadBalancerConfigSpec": {"vipSubnet": "192.0.2.0/25"}}}`)).To(Succeed())

	c := get[infrav1.VCDCluster](u, "demo")
	u.Expect(c.Spec.Proxy.HTTPProxy).To(Equal("http://another"))
	u.Expect(c.Spec.IdentityRef.Name).To(Equal(identity))
	u.Expect(c.Spec.CAPVCDCredentials).To(BeNil())
	u.Expect(get[v1beta2.VCDCluster](u, "demo").Spec.LoadBalancerConfigSpec.VipSubnet).To(Equal("192.0.2.0/25"),
		"fields without an equivalent in our version should be kept")
	u.Expect(patch(`{"spec": {"org": "other"}}`)).To(MatchError(ContainSubstring("spec.org: Forbidden")))
}

func newEditsAreConverted(u *upgrade) {
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec": {"orphanedDiskPolicy": "Delete", "proxy": {"noProxy": ["c"]}}}`))
	u.Expect(u.client.Patch(u.t.Context(), get[infrav1.VCDCluster](u, "demo"), patch)).To(Succeed())

	u.Expect(get[v1beta2.VCDCluster](u, "demo").Spec.ProxyConfigSpec.NoProxy).To(Equal("c"))
	u.Eventually(func(g Gomega) {
		old := get[v1beta2.VCDCluster](u, "demo")
		old.Spec.ProxyConfigSpec.HTTPSProxy = "http://other"
		g.Expect(u.client.Update(u.t.Context(), old)).To(Succeed())
	}, timeout, "200ms").Should(Succeed())
	c := get[infrav1.VCDCluster](u, "demo")
	u.Expect(c.Spec.OrphanedDiskPolicy).To(Equal(infrav1.OrphanedDiskDelete))
	u.Expect(c.Spec.Proxy.HTTPSProxy).To(Equal("http://other"))
}

func credentialsCannotBeSet(u *upgrade) {
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec": {"capvcdCredentials": {"username": "a", "password": "b"}}}`))
	err := u.client.Patch(u.t.Context(), get[infrav1.VCDCluster](u, "demo"), patch)
	u.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	u.Expect(err).To(MatchError(ContainSubstring("may only be removed")))
	copied := &infrav1.VCDCluster{ObjectMeta: named("other"), Spec: get[infrav1.VCDCluster](u, "demo").Spec}
	copied.Spec.InfraID = ""
	copied.Spec.CAPVCDCredentials = &infrav1.CAPVCDCredentials{Username: "a", Password: "b"}
	err = u.client.Create(u.t.Context(), copied, client.DryRunAll)
	u.Expect(err).To(MatchError(ContainSubstring("may only be removed")))
}

func oldObjectsCanBeCreated(u *upgrade) {
	c := oldCluster()
	c.Name = "new"
	c.Spec.UserCredentialsContext.Password = "other"
	u.create(c)
	u.Expect(get[infrav1.VCDCluster](u, "new").Spec.CAPVCDCredentials).To(Equal(&infrav1.CAPVCDCredentials{
		Username: "admin",
		Password: "other",
	}), "credentials should stay until the cluster has an owner")
	u.create(&v1beta2.VCDMachine{ObjectMeta: named("new"), Spec: oldMachineSpec()})
}

// stored returns the stored versions in the status of a CRD.
func (u *upgrade) stored(plural string) []string {
	u.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: plural + "." + infrav1.GroupVersion.Group}
	u.Expect(u.client.Get(u.t.Context(), key, definition)).To(Succeed())
	return definition.Status.StoredVersions
}

func allIsStoredInNewVersion(u *upgrade) {
	for _, plural := range []string{"vcdclusters", "vcdclustertemplates", "vcdmachines", "vcdmachinetemplates"} {
		u.Eventually(func() []string { return u.stored(plural) }, timeout, "200ms").
			Should(Equal([]string{infrav1.GroupVersion.Version}), plural)
	}
}

func passwordDoesNotLeak(u *upgrade) {
	for _, object := range []client.Object{get[infrav1.VCDCluster](u, "demo"), get[v1beta2.VCDCluster](u, "demo")} {
		u.Expect(json.Marshal(object)).NotTo(ContainSubstring(password))
	}
	events := &eventsv1.EventList{}
	u.Expect(u.client.List(u.t.Context(), events)).To(Succeed())
	u.Expect(json.Marshal(events)).NotTo(ContainSubstring(password))
	log, err := os.ReadFile(u.manager.LogPath())
	u.Expect(err).NotTo(HaveOccurred())
	u.Expect(string(log)).NotTo(ContainSubstring(password))
	u.Expect(string(log)).NotTo(ContainSubstring("is forbidden"))
}

// oldVersionsCanBeDropped reads the stored objects without conversion. An object that has not been rewritten since the
// upgrade would lack the fields of our version.
func oldVersionsCanBeDropped(u *upgrade) {
	u.Expect(u.manager.Stop()).To(Succeed())
	u.installVersions(infrav1.GroupVersion.Version)

	u.Expect(get[infrav1.VCDMachine](u, "second").Spec.Networks).To(HaveLen(2))
	u.Expect(get[infrav1.VCDMachineTemplate](u, "demo").Spec.Template.Spec.Networks).To(HaveLen(2))
	u.Expect(get[infrav1.VCDClusterTemplate](u, "demo").Spec.Template.Spec.IdentityRef.Name).To(Equal("vcd"))
	u.Expect(get[infrav1.VCDCluster](u, "demo").Spec.InfraID).To(Equal(infraID))
}

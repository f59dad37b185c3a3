// SPDX-License-Identifier: Apache-2.0

package firsthour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// roleWithoutVMs has all rights that a user of the manager needs, except the right to create VMs.
const roleWithoutVMs = "Kubernetes Cluster Author without VMs"

// A trial is a user with a simulated VCD, and a namespace for a cluster with a machine.
type trial struct {
	*WithT

	ctx       context.Context //nolint:containedctx // that of the test
	sim       *vcdsim.Simulator
	namespace string
	cleanup   func(func())

	// The objects to create, which setup may change.
	identity *infrav1.VCDIdentity
	secret   *corev1.Secret // nil if missing
	cluster  *infrav1.VCDCluster
	machine  *infrav1.VCDMachine // nil if the trial has no machine
}

// newTrial starts a simulated VCD, and prepares valid objects.
func newTrial(t *testing.T) *trial {
	t.Helper()
	w := &trial{WithT: NewWithT(t), ctx: t.Context(), cleanup: t.Cleanup}
	var err error
	model := vcdsim.K8sTenant()
	acme := &model.Orgs[1]
	acme.Roles = append(acme.Roles, vcdsim.Role{
		Name: roleWithoutVMs,
		Rights: slices.DeleteFunc(slices.Clone(acme.Roles[0].Rights),
			func(right string) bool { return right == "vApp: Create / Reconfigure" }),
	})
	acme.VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 1, Owner: "capvcd"}
	w.sim, err = vcdsim.New(vcdsim.Config{Model: model, Profile: vcdsim.Instant, Seed: 1})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = w.sim.Close() })
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "first-hour-"}}
	w.Expect(api.Create(w.ctx, ns)).To(Succeed())
	w.namespace = ns.Name
	w.identity = &infrav1.VCDIdentity{
		ObjectMeta: w.meta("vcd"),
		Spec: infrav1.VCDIdentitySpec{
			Site:      w.sim.URL(),
			SecretRef: infrav1.LocalSecretReference{Name: "vcd"},
		},
	}
	w.secret = &corev1.Secret{
		ObjectMeta: w.meta("vcd"),
		Data: map[string][]byte{
			infrav1.SecretUsername: []byte("capvcd"),
			infrav1.SecretPassword: []byte("password"),
			infrav1.SecretCABundle: w.sim.CA(),
		},
	}
	w.cluster = w.newCluster("demo")
	w.machine = w.newMachine("demo-0")
	return w
}

func (w *trial) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: w.namespace}
}

func (w *trial) newCluster(name string) *infrav1.VCDCluster {
	return &infrav1.VCDCluster{
		ObjectMeta: w.meta(name),
		Spec: infrav1.VCDClusterSpec{
			Site:                 w.sim.URL(),
			Org:                  "acme",
			OVDC:                 "acme-vdc",
			OVDCNetwork:          "nodes",
			IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "vcd"},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.168.100.200"},
			ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
				Type:    infrav1.EndpointKubeVIP,
				KubeVIP: &infrav1.KubeVIPEndpoint{},
			},
			CloudProvider: infrav1.CloudProviderSpec{Mode: infrav1.CloudProviderNone},
		},
	}
}

func (w *trial) newMachine(name string) *infrav1.VCDMachine {
	m := &infrav1.VCDMachine{
		ObjectMeta: w.meta(name),
		Spec: infrav1.VCDMachineSpec{
			Catalog:      "kubernetes",
			Template:     "ubuntu-2404-kube-v1.36.3",
			SizingPolicy: "small",
		},
	}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
	return m
}

// create creates an object unless it exists, and retries while webhooks are unavailable.
func (w *trial) create(obj client.Object) {
	if obj.GetUID() != "" {
		return
	}
	w.Eventually(func() error {
		err := api.Create(w.ctx, obj)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}, limitReported, "100ms").Should(Succeed())
}

// createCluster creates a VCDCluster with its Cluster.
func (w *trial) createCluster(c *infrav1.VCDCluster) {
	w.create(c)
	w.create(&clusterv1.Cluster{
		ObjectMeta: w.meta(c.Name),
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: reference("VCDCluster", c.Name)},
	})
}

// createMachine creates a VCDMachine with its Machine and bootstrap data.
func (w *trial) createMachine(m *infrav1.VCDMachine) {
	w.create(&corev1.Secret{
		ObjectMeta: w.meta(m.Name + "-bootstrap"),
		StringData: map[string]string{"value": "#cloud-config\n"},
	})
	w.create(m)
	w.create(&clusterv1.Machine{
		ObjectMeta: w.meta(m.Name),
		Spec: clusterv1.MachineSpec{
			ClusterName:       "demo",
			InfrastructureRef: reference("VCDMachine", m.Name),
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(m.Name + "-bootstrap")},
		},
	})
}

func reference(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
}

// apply creates all prepared objects.
func (w *trial) apply() {
	w.create(w.identity)
	if w.secret != nil {
		w.create(w.secret)
	}
	w.createCluster(w.cluster)
	if w.machine != nil {
		w.createMachine(w.machine)
	}
}

// update changes an object, as kubectl edit does.
func update[T client.Object](w *trial, obj T, change func(T)) {
	w.Eventually(func() error {
		if err := api.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return api.Update(w.ctx, obj)
	}, limitReported, "50ms").Should(Succeed())
}

// put sets a key of the Secret.
func (w *trial) put(key string, value []byte) {
	update(w, w.secret, func(s *corev1.Secret) { s.Data[key] = value })
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// ready returns the Ready condition as "Status Reason: Message".
func (w *trial) ready(obj conditioned) string {
	if err := api.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err.Error()
	}
	for _, c := range obj.GetConditions() {
		if c.Type == clusterv1.ReadyCondition {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// warnings returns the events of type Warning about an object, as "Reason: Message".
func (w *trial) warnings(obj client.Object) []string {
	list := &corev1.EventList{}
	if err := api.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
		return nil
	}
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == obj.GetUID() && e.Type == corev1.EventTypeWarning {
			found = append(found, e.Reason+": "+e.Message)
		}
	}
	return found
}

// remove deletes the clusters, so that the manager stops reconciling them.
func (w *trial) remove() {
	clusters := &clusterv1.ClusterList{}
	w.Expect(api.List(w.ctx, clusters, client.InNamespace(w.namespace))).To(Succeed())
	for i := range clusters.Items {
		w.Expect(client.IgnoreNotFound(api.Delete(w.ctx, &clusters.Items[i]))).To(Succeed())
	}
}

// seconds returns the seconds since the given time.
func seconds(since time.Time) float64 { return time.Since(since).Seconds() }

// oneLine joins the lines of a message.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

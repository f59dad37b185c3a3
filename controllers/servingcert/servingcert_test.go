// SPDX-License-Identifier: Apache-2.0

package servingcert_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/servingcert"
)

const (
	node  = "md-0-x7k2p"
	other = "md-0-p2k7x"
)

// A kubeletRequest describes the certificate signing request of a kubelet.
type kubeletRequest struct {
	user, group, signer string
	usages              []certificatesv1.KeyUsage
	request             x509.CertificateRequest
	text                []byte // instead of request
	decided             certificatesv1.RequestConditionType
}

// validRequest returns the request of the node's kubelet.
func validRequest(mods ...func(*kubeletRequest)) kubeletRequest {
	a := kubeletRequest{
		user:   "system:node:" + node,
		group:  "system:nodes",
		signer: certificatesv1.KubeletServingSignerName,
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		request: x509.CertificateRequest{
			Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
			DNSNames:    []string{node},
			IPAddresses: []net.IP{net.ParseIP("192.168.100.10")},
		},
	}
	for _, mod := range mods {
		mod(&a)
	}
	return a
}

func (a kubeletRequest) csr(g *WithT) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}}
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: a.signer,
		Username:   a.user,
		Groups:     []string{a.group},
		Usages:     a.usages,
		Request:    a.text,
	}
	if a.text == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		der, err := x509.CreateCertificateRequest(rand.Reader, &a.request, key)
		g.Expect(err).NotTo(HaveOccurred())
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	if a.decided != "" {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type:   a.decided,
			Status: corev1.ConditionTrue,
		}}
	}
	return csr
}

// A bench has a cluster with two machines, and its workload cluster.
type bench struct {
	*WithT

	client     client.Client
	guest      client.Client
	reconciler *servingcert.Reconciler
}

var clusterKey = client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"}

func newBench(t *testing.T, requests ...kubeletRequest) *bench {
	t.Helper()
	g := NewWithT(t)
	cluster := controllertest.NewCAPICluster()
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	vcdCluster := &infrav1.VCDCluster{ObjectMeta: controllertest.Meta(clusterKey.Name)}
	vcdCluster.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       cluster.Name,
		UID:        cluster.UID,
	}}
	vcdCluster.Spec.KubeletServingCertificates = infrav1.ServingCertificatesApprove
	objects := append([]client.Object{cluster, vcdCluster}, machine(node, "192.168.100.10")...)
	objects = append(objects, machine(other, "192.168.100.11")...)
	b := &bench{WithT: g, client: controllertest.NewClient(objects...)}

	scheme := runtime.NewScheme()
	g.Expect(certificatesv1.AddToScheme(scheme)).To(Succeed())
	guest := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, "spec.signerName", func(o client.Object) []string {
			csr, _ := o.(*certificatesv1.CertificateSigningRequest)
			return []string{csr.Spec.SignerName}
		})
	for _, r := range requests {
		guest = guest.WithObjects(r.csr(g))
	}
	b.guest = guest.Build()
	b.reconciler = &servingcert.Reconciler{
		Client:   b.client,
		Recorder: events.NewFakeRecorder(10),
		Workload: func(context.Context, client.ObjectKey) (client.Client, error) { return b.guest, nil },
	}
	return b
}

// machine returns the objects of a machine whose guest has not joined as a Node yet.
func machine(name, address string) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: controllertest.Meta(name)}
	m.Spec.InfrastructureRef.Name = name
	v := &infrav1.VCDMachine{ObjectMeta: controllertest.Meta(name)}
	v.Spec.RecordedState.VMName = name
	v.Status.Addresses = []clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: address},
		{Type: clusterv1.MachineHostName, Address: name},
	}
	return []client.Object{m, v}
}

// reconcile reconciles the cluster, and reports whether the request is approved.
func (b *bench) reconcile() bool {
	_, err := reconcile.AsReconciler(b.client, b.reconciler).Reconcile(context.Background(),
		reconcile.Request{NamespacedName: clusterKey})
	b.Expect(err).NotTo(HaveOccurred())
	csr := &certificatesv1.CertificateSigningRequest{}
	b.Expect(b.guest.Get(context.Background(), client.ObjectKey{Name: "csr-1"}, csr)).To(Succeed())
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved && c.Reason == "MachineVerified" {
			return true
		}
	}
	return false
}

func (b *bench) vcdCluster() *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	b.Expect(b.client.Get(context.Background(), clusterKey, c)).To(Succeed())
	return c
}

func TestAKubeletServingCertificateIsApproved(t *testing.T) {
	b := newBench(t, validRequest())

	b.Expect(b.reconcile()).To(BeTrue())

	got := conditions.Get(b.vcdCluster(), infrav1.ServingCertificatesApprovedCondition)
	b.Expect(got.Status).To(Equal(metav1.ConditionTrue))
	b.Expect(got.Message).To(BeEmpty())
}

func TestUnauthorizedCertificateRequestsAreNotApproved(t *testing.T) {
	tests := []struct {
		name    string
		mod     func(*kubeletRequest)
		message string // empty: nothing is reported
	}{
		{
			name: "the address of another machine",
			mod: func(a *kubeletRequest) {
				a.request.IPAddresses = append(a.request.IPAddresses, net.ParseIP("192.168.100.11"))
			},
			message: "does not have the address 192.168.100.11",
		},
		{
			name:    "the loopback address",
			mod:     func(a *kubeletRequest) { a.request.IPAddresses = []net.IP{net.IPv6loopback} },
			message: "does not have the address ::1",
		},
		{
			name:    "the name of another machine",
			mod:     func(a *kubeletRequest) { a.request.DNSNames = []string{other} },
			message: "does not have the name",
		},
		{
			name:    "a name of the API server",
			mod:     func(a *kubeletRequest) { a.request.DNSNames = append(a.request.DNSNames, "kubernetes.default.svc") },
			message: "does not have the name",
		},
		{
			name:    "a wildcard",
			mod:     func(a *kubeletRequest) { a.request.DNSNames = []string{"*"} },
			message: "does not have the name",
		},
		{
			name:    "the subject of another Node",
			mod:     func(a *kubeletRequest) { a.request.Subject.CommonName = "system:node:" + other },
			message: "its subject",
		},
		{
			name:    "the subject of an administrator",
			mod:     func(a *kubeletRequest) { a.request.Subject.Organization = []string{"system:nodes", "system:masters"} },
			message: "its subject",
		},
		{
			name:    "a certificate for clients",
			mod:     func(a *kubeletRequest) { a.usages = append(a.usages, certificatesv1.UsageClientAuth) },
			message: `usage "client auth"`,
		},
		{
			name:    "a certificate without server authentication",
			mod:     func(a *kubeletRequest) { a.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature} },
			message: "not for server authentication",
		},
		{
			name:    "an email address",
			mod:     func(a *kubeletRequest) { a.request.EmailAddresses = []string{"root@example.com"} },
			message: "email addresses",
		},
		{
			name:    "a URI",
			mod:     func(a *kubeletRequest) { a.request.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com"}} },
			message: "URIs",
		},
		{
			name: "neither names nor addresses",
			mod: func(a *kubeletRequest) {
				a.request.DNSNames = nil
				a.request.IPAddresses = nil
			},
			message: "neither names nor addresses",
		},
		{
			name:    "a Node without a machine",
			mod:     func(a *kubeletRequest) { a.user = "system:node:stranger" },
			message: "no Machine of the cluster has Node stranger",
		},
		{
			name:    "a user that is not a Node",
			mod:     func(a *kubeletRequest) { a.user = "system:serviceaccount:default:x" },
			message: "its user is not a Node",
		},
		{
			name:    "a Node's user outside the Nodes' group",
			mod:     func(a *kubeletRequest) { a.group = "system:authenticated" },
			message: "its user is not a Node",
		},
		{
			name:    "no certificate request",
			mod:     func(a *kubeletRequest) { a.text = []byte("hello") },
			message: "not a PEM-encoded certificate request",
		},
		{
			name:    "a huge request",
			mod:     func(a *kubeletRequest) { a.text = make([]byte, 1<<20) },
			message: "larger than",
		},
		{name: "another signer", mod: func(a *kubeletRequest) { a.signer = certificatesv1.KubeAPIServerClientSignerName }},
		{name: "a denied request", mod: func(a *kubeletRequest) { a.decided = certificatesv1.CertificateDenied }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, validRequest(tt.mod))

			b.Expect(b.reconcile()).To(BeFalse())

			got := conditions.Get(b.vcdCluster(), infrav1.ServingCertificatesApprovedCondition)
			b.Expect(got).NotTo(BeNil())
			if tt.message == "" {
				b.Expect(got.Message).To(BeEmpty())
				return
			}
			b.Expect(got.Reason).To(Equal(infrav1.ServingCertificateNotApprovedReason))
			b.Expect(got.Message).To(ContainSubstring(tt.message))
		})
	}
}

func TestARequestWaitsForTheAddressOfItsMachine(t *testing.T) {
	b := newBench(t, validRequest())
	m := &infrav1.VCDMachine{}
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: node}
	b.Expect(b.client.Get(context.Background(), key, m)).To(Succeed())
	addresses := m.Status.Addresses
	m.Status.Addresses = nil
	b.Expect(b.client.Status().Update(context.Background(), m)).To(Succeed())
	b.Expect(b.reconcile()).To(BeFalse())

	m.Status.Addresses = addresses
	b.Expect(b.client.Status().Update(context.Background(), m)).To(Succeed())

	b.Expect(b.reconcile()).To(BeTrue())
}

func TestRequestsOfAllPagesAreApproved(t *testing.T) {
	b := newBench(t, validRequest())
	// The first page contains the decided requests of another day.
	all := b.guest
	b.guest = interceptor.NewClient(all.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			if options.Continue == "" {
				list.SetContinue("second page")
				return nil
			}
			return c.List(ctx, list, client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName})
		},
	})

	b.Expect(b.reconcile()).To(BeTrue())
}

func TestOnlyTheNewestRequestsOfAKubeletAreApproved(t *testing.T) {
	b := newBench(t, validRequest())
	first := &certificatesv1.CertificateSigningRequest{}
	b.Expect(b.guest.Get(t.Context(), client.ObjectKey{Name: "csr-1"}, first)).To(Succeed())
	for i := range 10 {
		newer := first.DeepCopy()
		newer.ResourceVersion = ""
		newer.Name = fmt.Sprintf("csr-newer-%d", i)
		newer.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(i) * time.Minute))
		b.Expect(b.guest.Create(t.Context(), newer)).To(Succeed())
	}

	b.Expect(b.reconcile()).To(BeFalse(), "the oldest request")

	newest := &certificatesv1.CertificateSigningRequest{}
	b.Expect(b.guest.Get(t.Context(), client.ObjectKey{Name: "csr-newer-9"}, newest)).To(Succeed())
	b.Expect(newest.Status.Conditions).NotTo(BeEmpty())
}

func TestARejectionByTheWorkloadClusterIsReported(t *testing.T) {
	b := newBench(t, validRequest())
	b.guest = interceptor.NewClient(b.guest.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "certificatesigningrequests"}, "", errors.New("a policy"))
		},
	})

	b.Expect(b.reconcile()).To(BeFalse())

	got := conditions.Get(b.vcdCluster(), infrav1.ServingCertificatesApprovedCondition)
	b.Expect(got.Reason).To(Equal(infrav1.WorkloadRequestRejectedReason))
	b.Expect(got.Message).To(ContainSubstring("a policy"))
}

func TestChangesThatResumeAnApproval(t *testing.T) {
	before := &infrav1.VCDCluster{ObjectMeta: controllertest.Meta(clusterKey.Name)}
	for name, tt := range map[string]struct {
		change func(*infrav1.VCDCluster)
		passes bool
	}{
		"nothing":     {change: func(*infrav1.VCDCluster) {}},
		"a status":    {change: func(c *infrav1.VCDCluster) { c.Status.VirtualIPs = []string{"10.0.0.1"} }},
		"a spec":      {change: func(c *infrav1.VCDCluster) { c.Generation++ }, passes: true},
		"a pause":     {change: func(c *infrav1.VCDCluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, passes: true},
		"a new shard": {change: func(c *infrav1.VCDCluster) { c.Labels = map[string]string{clusterv1.WatchLabel: "b"} }, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tt.change(after)

			passes := servingcert.Changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})

			NewWithT(t).Expect(passes).To(Equal(tt.passes))
		})
	}
}

func TestNothingIsApprovedWithoutTheField(t *testing.T) {
	b := newBench(t, validRequest())
	c := b.vcdCluster()
	c.Spec.KubeletServingCertificates = ""
	b.Expect(b.client.Update(context.Background(), c)).To(Succeed())

	b.Expect(b.reconcile()).To(BeFalse())

	b.Expect(conditions.Get(b.vcdCluster(), infrav1.ServingCertificatesApprovedCondition)).To(BeNil())
}

// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/proxy"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
)

// etcdMember connects to a member as the kubeadm control plane provider does: with its client, through a port forward
// of the API server.
func (b *fixture) etcdMember(ctx context.Context, w *workload.Workloads, node string) *etcd.Client {
	b.t.Helper()
	kubeconfig, err := w.AdminKubeconfig("demo")
	b.must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	b.must(err)
	pair := b.certificates.GetByPurpose(secret.EtcdCA).KeyPair
	ca, err := certs.DecodeCertPEM(pair.Cert)
	b.must(err)
	caKey, err := certs.DecodePrivateKeyPEM(pair.Key)
	b.must(err)
	key, err := certs.NewPrivateKey()
	b.must(err)
	signed := certs.Config{CommonName: "cluster-api", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	cert, err := signed.NewSignedCert(key, ca, caKey)
	b.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"etcd-" + node},
		DialTimeout: testtime.Patience,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(forwarder(config))},
		TLS: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			RootCAs:      roots,
			Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		},
	})
	b.must(err)
	b.t.Cleanup(func() { _ = client.Close() })
	status, err := client.Status(ctx, "etcd-"+node)
	b.must(err)
	return &etcd.Client{EtcdClient: client, LeaderID: status.Leader, CallTimeout: testtime.Patience}
}

// forwarder dials through port forwards, each time with a new dialer, because gRPC would use a dialer concurrently,
// which it does not support.
func forwarder(config *rest.Config) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		dialer, err := proxy.NewDialer(proxy.Proxy{
			Kind:       "pods",
			Namespace:  metav1.NamespaceSystem,
			KubeConfig: rest.CopyConfig(config),
			Port:       2379,
		})
		if err != nil {
			return nil, err
		}
		return dialer.DialContextWithAddr(ctx, address)
	}
}

func TestEtcdMembership(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	w := start(t, workload.Options{NotReadyAfter: time.Millisecond})
	b := newFixture(t)
	first := b.vm("cp-0", 1, b.initData())
	second := b.vm("cp-1", 2, b.controlPlaneData())
	third := b.vm("cp-2", 3, b.controlPlaneData())
	_, err := w.PowerOn(ctx, first)
	g.Expect(err).NotTo(HaveOccurred())
	set := clients(g, w)
	addToken(ctx, g, set)
	report, err := w.PowerOn(ctx, second)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.PowerOn(ctx, third)
	g.Expect(err).NotTo(HaveOccurred())

	// All members see each other, and the first is the leader.
	client := b.etcdMember(ctx, w, "cp-1")
	members, err := client.Members(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(members).To(HaveLen(3))
	id := map[string]uint64{}
	for _, m := range members {
		id[m.Name] = m.ID
	}
	g.Expect(client.LeaderID).To(Equal(id["cp-0"]))
	g.Expect(client.Close()).To(Succeed())

	// The leader stops: another member becomes the leader, and the stopped one is unreachable.
	w.PowerOff(ctx, first.ID)
	forward := set.CoreV1().RESTClient().Post().Namespace("kube-system").Resource("pods").Name("etcd-cp-0").SubResource(
		"portforward")
	g.Expect(forward.Do(ctx).Error()).To(MatchError(ContainSubstring("dialing kubelet of node cp-0: no route to host")))
	client = b.etcdMember(ctx, w, "cp-1")
	g.Expect(client.LeaderID).NotTo(Equal(id["cp-0"]))
	g.Expect(client.Close()).To(Succeed())

	// Most members are down: the API server cannot respond.
	w.PowerOff(ctx, second.ID)
	_, err = set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("no leader")))
	_, err = w.PowerOn(ctx, reboot(second, report))
	g.Expect(err).NotTo(HaveOccurred())

	// A removed member, whose VM and Node are deleted, leaves no objects.
	client = b.etcdMember(ctx, w, "cp-2")
	g.Expect(client.RemoveMember(ctx, id["cp-0"])).To(Succeed())
	w.Delete(ctx, first.ID)
	g.Expect(set.CoreV1().Nodes().Delete(ctx, "cp-0", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func(g Gomega) {
		pods, err := set.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=cp-0"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(BeEmpty())
	}).Should(Succeed())
	members, err = client.Members(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(members).To(HaveLen(2))
	g.Expect(client.Close()).To(Succeed())
}

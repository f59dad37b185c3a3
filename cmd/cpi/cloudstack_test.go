// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

const cloudConfig = `[Global]
api-url = https://cloud.example.com/client/api
api-key = user-key
secret-key = user-secret
`

func TestCloudStackIsSelectedByName(t *testing.T) {
	g := NewWithT(t)

	out, err := run(t, cloudConfig, nil, "--cloud-provider=external-cloudstack", "--validate-config")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("The configuration is valid."))

	_, err = run(t, cloudConfig+"api_key = a\n", nil, "--cloud-provider=external-cloudstack", "--validate-config")
	g.Expect(err).To(MatchError(ContainSubstring("global.api_key (line 5): is not a key of the configuration")))
}

func TestCloudStackProviderOpens(t *testing.T) {
	g := NewWithT(t)
	sim := cloudstacksim.New(cloudstacksim.Options{})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	network := sim.AddNetwork("nodes", "")
	old := sim.AddNetwork("old", "")
	id := sim.AddVM("node-1", []string{network, old}, []string{"10.1.1.1", "10.2.1.1"})
	sim.Add(cloudstacksim.Rules, cloudstacksim.Object{"name": "au1-tcp-80", "networkid": old, "state": "Active"})
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster-uid"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{ProviderID: "cloudstack:///" + id}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		})
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes()
	services := factory.Core().V1().Services()
	nodes.Informer()
	services.Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	path := filepath.Join(t.TempDir(), "cloud-config")
	configure := func(key, secret string) {
		file := fmt.Sprintf("[Global]\napi-url = %s/client/api\napi-key = %s\nsecret-key = %s\n", server.URL, key, secret)
		g.Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
	}
	configure(cloudstacksim.UserKey, cloudstacksim.UserSecret)
	chosen, err := find(providers(), "external-cloudstack")
	g.Expect(err).NotTo(HaveOccurred())

	p, err := load(chosen, path, &ourFlags{}, func(string) string { return "" })
	g.Expect(err).NotTo(HaveOccurred())
	b, err := p.configuration.open(host{client: client, nodes: nodes.Lister(), services: services.Lister()})
	g.Expect(err).NotTo(HaveOccurred())
	sim.Rotate(cloudstacksim.UserKey, "new-key", "new-secret")
	configure("new-key", "new-secret") // read without a restart

	g.Expect(b.Services.Cluster).To(Equal("cluster-uid"), "the file has no cluster ID")
	g.Expect(b.Balancer.Locate(t.Context(), "")).To(Equal(old), "the original program created a rule for a Service there")
	g.Expect(b.Close(t.Context())).To(Succeed())
}

func TestAClusterWithoutWorkersUsesTheNetworkOfItsServers(t *testing.T) {
	for name, tt := range map[string]struct {
		taints  []corev1.Taint
		members int
	}{
		"that accept pods, as those of k3s do":          {nil, 1},
		"that accept none while workers join":           {[]corev1.Taint{{Key: "node-role.kubernetes.io/control-plane"}}, 0},
		"that are not initialized, but accept all pods": {[]corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			g.Expect(store.Add(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "server", Labels: map[string]string{"node-role.kubernetes.io/control-plane": "true"}},
				Spec:       corev1.NodeSpec{Taints: tt.taints},
			})).To(Succeed())

			g.Expect(workers(corelisters.NewNodeLister(store), false)).To(HaveLen(tt.members))
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var demo = client.ObjectKey{Namespace: "default", Name: "demo"}

// apiServer counts its requests, and has one ConfigMap.
func apiServer(t *testing.T) (url string, discoveries, gets *atomic.Int64) {
	t.Helper()
	discoveries = &atomic.Int64{}
	gets = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}`
		switch r.URL.Path {
		case "/api/v1/namespaces/default/configmaps/x":
			gets.Add(1)
		default:
			discoveries.Add(1)
			body = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, discoveries, gets
}

func kubeconfigSecret(t *testing.T, url string) *corev1.Secret {
	t.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: url}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c"}},
		CurrentContext: "c",
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.Name + "-kubeconfig"},
		Data:       map[string][]byte{"value": raw},
	}
}

func TestAWorkloadClusterIsContactedOnDemand(t *testing.T) {
	g := NewWithT(t)
	url, discoveries, gets := apiServer(t)
	secret := kubeconfigSecret(t, url)
	secrets := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(secret).Build()
	clients := NewClients(secrets, scheme.Scheme)
	read := func() client.Client {
		c, err := clients.Open(t.Context(), demo)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{})).To(Succeed())
		return c
	}

	_, err := clients.Open(t.Context(), demo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(discoveries.Load()+gets.Load()).To(BeZero(), "opening a client makes no request")
	first := read()
	known := discoveries.Load()
	g.Expect(read()).To(BeIdenticalTo(first))
	g.Expect(gets.Load()).To(BeEquivalentTo(2))
	g.Expect(discoveries.Load()).To(Equal(known), "the discovery document is requested once")

	clients.now = func() time.Time { return time.Now().Add(2 * idleTime) }
	g.Expect(read()).NotTo(BeIdenticalTo(first), "an unused client is not cached")
}

func TestANewKubeconfigCreatesANewClient(t *testing.T) {
	g := NewWithT(t)
	before, _, _ := apiServer(t)
	after, _, gets := apiServer(t)
	secret := kubeconfigSecret(t, before)
	secrets := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(secret).Build()
	clients := NewClients(secrets, scheme.Scheme)
	_, err := clients.Open(t.Context(), demo)
	g.Expect(err).NotTo(HaveOccurred())

	secret.Data = kubeconfigSecret(t, after).Data
	g.Expect(secrets.Update(t.Context(), secret)).To(Succeed())
	c, err := clients.Open(t.Context(), demo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{})).To(Succeed())
	g.Expect(gets.Load()).To(BeEquivalentTo(1))

	g.Expect(secrets.Delete(t.Context(), secret)).To(Succeed())
	_, err = clients.Open(t.Context(), demo)
	g.Expect(err).To(MatchError(ContainSubstring("default/demo")))
}

func TestAKubeconfigWithExternalReferencesIsRejected(t *testing.T) {
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"a token file": {TokenFile: filepath.Join(t.TempDir(), "token")},
		"a program": {Exec: &clientcmdapi.ExecConfig{
			Command:         "true",
			APIVersion:      "client.authentication.k8s.io/v1",
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
		"another user": {Token: "t", Impersonate: "admin"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if user.TokenFile != "" {
				g.Expect(os.WriteFile(user.TokenFile, []byte("the manager's"), 0o600)).To(Succeed())
			}
			secret := kubeconfigSecret(t, "https://192.0.2.1")
			config, err := clientcmd.Load(secret.Data["value"])
			g.Expect(err).NotTo(HaveOccurred())
			config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"u": user}
			config.Contexts["c"].AuthInfo = "u"
			secret.Data["value"], err = clientcmd.Write(*config)
			g.Expect(err).NotTo(HaveOccurred())
			secrets := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(secret).Build()

			_, err = NewClients(secrets, scheme.Scheme).Open(t.Context(), demo)

			g.Expect(err).To(MatchError(ContainSubstring("refers to files, programs or other users")))
		})
	}
}

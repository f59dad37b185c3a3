// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// unpack returns the files of an archive by name.
func (s *shell) unpack(path string) map[string]string {
	raw, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred())
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	s.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		s.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		s.Expect(err).NotTo(HaveOccurred())
		files[header.Name] = string(content)
	}
}

// managerPod returns the pod of the manager, without a status.
func managerPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "capvcd-system",
		Name:      "capvcd-0",
		Labels:    map[string]string{"cluster.x-k8s.io/provider": "infrastructure-vcd"},
	}}
}

func TestABundleHasNoSecrets(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	s.objects = append(s.objects, managerPod())
	controlPlane := &unstructured.Unstructured{}
	controlPlane.SetGroupVersionKind(schema.GroupVersionKind{
		Group:   "controlplane.cluster.x-k8s.io",
		Version: "v1beta2",
		Kind:    "KubeadmControlPlane",
	})
	controlPlane.SetNamespace("team-a")
	controlPlane.SetName("demo-control-plane")
	for value, path := range map[string][]string{
		password:  {"spec", "kubeadmConfigSpec", "files", "content"},
		"v1.36.3": {"spec", "version"},
	} {
		s.Expect(unstructured.SetNestedField(controlPlane.Object, value, path...)).To(Succeed())
	}
	s.objects = append(s.objects, controlPlane)
	s.log = "Authorization: Bearer " + password + "\nlogged in with password=" + password + " at once\n"
	path := filepath.Join(t.TempDir(), "demo.tar.gz")

	s.Expect(s.run(t, "support-bundle", "demo", "-f", path)).To(Equal(exitOK), s.errors.String())

	files := s.unpack(path)
	s.Expect(files).To(HaveKeyWithValue("demo/VCDCluster.yaml", ContainSubstring("infraID: alive")))
	s.Expect(files).To(HaveKeyWithValue("demo/VCDMachine.yaml", ContainSubstring("demo-0")))
	s.Expect(files).To(HaveKeyWithValue("demo/log-capvcd-0.txt", And(ContainSubstring("REDACTED"), ContainSubstring("at once"))))
	s.Expect(files).To(HaveKeyWithValue("demo/KubeadmControlPlane.yaml", ContainSubstring("version: v1.36.3")))
	for name, content := range files {
		s.Expect(content).NotTo(ContainSubstring(password), name)
	}
	mode, err := os.Stat(path)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(mode.Mode().Perm()).To(Equal(os.FileMode(0o600)))
}

// TestABundleContainsNoPartOfASecret adds one secret value to each Secret of a cluster, and to places where users might
// write one by mistake.
func TestABundleContainsNoPartOfASecret(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	s.objects = append(s.objects, managerPod())
	planted := map[string]string{}
	plant := func(secret, key string) {
		value := "canary-of-" + secret
		planted[value] = secret
		s.objects = append(s.objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: secret},
			Data:       map[string][]byte{key: []byte(value)},
		})
	}
	plant("demo-credentials", "password")
	plant("demo-ccm-credentials", "apiToken")
	plant("demo-kubeconfig", "value")
	plant("demo-ca", "tls.key")
	plant("demo-0-x7k2p", "value")
	plant("demo-proxy-settings", "systemd.conf")
	plant("demo-pod-proxy-policy", "manifests.yaml")
	plant("demo-kube-vip", "kube-vip.yaml")
	plant("demo-kube-vip-daemonset", "manifests.yaml")
	plant("demo-cloud-provider", "manifests.yaml")
	plant("router", "password")
	const proxy = "http://ada:canary-of-demo-proxy-settings@proxy.example.com:3128"
	for _, o := range s.objects {
		if cluster, ok := o.(*infrav1.VCDCluster); ok {
			cluster.Spec.Proxy.HTTPProxy = proxy
		}
	}
	s.objects = append(s.objects, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "demo.1"},
		Message:    "the proxy " + proxy + " does not respond",
	})
	s.log = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ada:canary-of-demo-credentials")) + "\n" +
		`{"apiToken":"canary-of-demo-ccm-credentials"}` + "\n" +
		"dialing " + proxy + "\n"
	path := filepath.Join(t.TempDir(), "demo.tar.gz")

	s.Expect(s.run(t, "support-bundle", "demo", "-f", path)).To(Equal(exitOK), s.errors.String())

	files := s.unpack(path)
	s.Expect(files).To(HaveKeyWithValue("demo/VCDCluster.yaml", ContainSubstring("@proxy.example.com:3128")))
	s.Expect(files).To(HaveKeyWithValue("demo/Event.yaml", ContainSubstring("does not respond")))
	for name, content := range files {
		for value, secret := range planted {
			s.Expect(content).NotTo(ContainSubstring(value), "%s contains a value of Secret %s", name, secret)
			for _, text := range []string{value, "ada:" + value} {
				s.Expect(content).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(text))),
					"%s contains a value of Secret %s in base64", name, secret)
			}
		}
	}
}

func TestRedaction(t *testing.T) {
	const secret = "s3cr3t"
	for _, text := range []string{
		`Authorization: Bearer ` + secret,
		`{"password":"` + secret + `"}`,
		`password: ` + secret,
		`refresh_token=` + secret + `&x=1`,
		`X-VMWARE-VCLOUD-ACCESS-TOKEN: ` + secret,
		"-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----",
		"  password: two " + secret,
		"password: a," + secret,
		`password="two ` + secret + `"`,
		"- secret: " + secret,
		`auth = "` + secret + `"`,
		"token: " + secret,
		`bootstrapToken: 'a ` + secret + `'`,
	} {
		NewWithT(t).Expect(string(redactText([]byte(text)))).NotTo(ContainSubstring(secret), text)
	}
	for _, text := range []string{
		"Creating VM demo-0", "secretRef:\n  name: vcd\n", "author: kubeadm", "dataSecretName: demo-0-x7k2p",
		"token:\n  name: x\n",
	} {
		NewWithT(t).Expect(string(redactText([]byte(text)))).To(Equal(text))
	}
}

func TestRedactFields(t *testing.T) {
	g := NewWithT(t)
	object := map[string]any{
		"spec": map[string]any{
			"site": "https://vcd.example.com",
			"proxy": map[string]any{
				"httpProxy":  "http://ada:canary@proxy.example.com:3128",
				"httpsProxy": "ada:canary@proxy.example.com:3128",
				"noProxy":    []any{"10.0.0.0/8"},
			},
			"secretRef":      map[string]any{"name": "vcd"},
			"dataSecretName": "demo-0",
			"apiToken":       "canary",
			"API_KEY":        "canary",
			"tokenTTL":       "24h",
			"env": []any{
				map[string]any{"name": "VCD_PASSWORD", "value": "canary"},
				map[string]any{"name": "VCD_SITE", "value": "https://vcd.example.com"},
			},
			"extraConfig": []any{
				map[string]any{"key": "appliance.adminPassword", "value": "canary"},
				map[string]any{"key": "pciPassthru.use64bitMMIO", "value": "TRUE"},
			},
			"command": []any{"curl -H 'Authorization: Bearer canary' https://ada:canary@example.com/x"},
			"vmMetadata": map[string]any{
				"cost-center":     "42",
				"backup-password": "canary",
			},
		},
		"metadata": map[string]any{"annotations": map[string]any{
			"example.com/settings":    `{"password":"canary","user":"ada"}`,
			"example.com/htpasswd":    "ada:canary",
			"example.com/credentials": "canary",
		}},
		"message": "the proxy http://ada:can/ary@proxy.example.com:3128 refuses the connection",
	}

	redactFields(object)

	text := fmt.Sprint(object)
	g.Expect(text).NotTo(Or(ContainSubstring("canary"), ContainSubstring("can/ary")))
	g.Expect(text).To(And(
		ContainSubstring("https://vcd.example.com"),
		ContainSubstring("@proxy.example.com:3128"),
		ContainSubstring("name:vcd"),
		ContainSubstring("dataSecretName:demo-0"),
		ContainSubstring("tokenTTL:24h"),
		ContainSubstring("cost-center:42"),
		ContainSubstring("value:TRUE"),
		ContainSubstring("refuses the connection"),
	))
}

// FuzzRedactURL adds a password to a proxy URL in the middle of a text.
func FuzzRedactURL(f *testing.F) {
	f.Add("ada", "s3cr3t", "proxy.example.com")
	f.Add("", "p:a/s?s#", "10.0.0.1:3128")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		if !regexp.MustCompile(`^[!-~]{6,}$`).MatchString(password) || strings.ContainsAny(password+user+host, "@\"'<>\\ \t\n\r") {
			t.Skip("not a password in a URL")
		}
		if strings.Contains("the proxy http:// answers REDACTED"+host+user, password) {
			t.Skip("the password is not secret")
		}
		text := "the proxy http://" + user + ":" + password + "@" + host + " answers"

		got := string(redactText([]byte(text)))

		NewWithT(t).Expect(got).NotTo(ContainSubstring(password))
	})
}

// TestABundleContainsAllReadableObjects makes the log of the manager unreadable.
func TestABundleContainsAllReadableObjects(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	s.objects = append(s.objects, managerPod())
	s.logError = errors.New("pods/log is forbidden")
	path := filepath.Join(t.TempDir(), "demo.tar.gz")

	s.Expect(s.run(t, "support-bundle", "demo", "-f", path)).To(Equal(exitError))

	s.Expect(s.errors.String()).To(And(ContainSubstring("incomplete"), ContainSubstring("pods/log is forbidden")))
	s.Expect(s.unpack(path)).To(HaveKey("demo/VCDCluster.yaml"))
}

func TestABundleWithoutALogIsIncomplete(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	path := filepath.Join(t.TempDir(), "demo.tar.gz")

	s.Expect(s.run(t, "support-bundle", "demo", "-f", path)).To(Equal(exitError))

	s.Expect(s.errors.String()).To(ContainSubstring("namespace capvcd-system has no pod of the manager: set --provider-namespace"))
}

func TestABundleContainsTheLogBeforeARestart(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	pod := managerPod()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	s.objects = append(s.objects, pod)
	s.log = "now"
	s.previousLog = "panic"
	path := filepath.Join(t.TempDir(), "demo.tar.gz")

	s.Expect(s.run(t, "support-bundle", "demo", "-f", path)).To(Equal(exitOK), s.errors.String())

	s.Expect(s.unpack(path)).To(And(
		HaveKeyWithValue("demo/log-capvcd-0.txt", "now"),
		HaveKeyWithValue("demo/log-capvcd-0-previous.txt", "panic"),
	))
}

func TestACutLogIsReported(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithObjects(managerPod()).Build()
	p := &program{
		access: access{secretNamespace: "capvcd-system"},
		podLog: func(context.Context, client.ObjectKey, corev1.PodLogOptions) ([]byte, error) {
			return make([]byte, maxLog), nil
		},
	}

	logs, err := p.managerLogs(t.Context(), c, time.Hour)

	g.Expect(err).To(MatchError("log-capvcd-0.txt lacks its newest lines: set a shorter --since"))
	g.Expect(logs).To(HaveKey("log-capvcd-0.txt"))
}

// podLog returns the pod log of the tests.
func (s *shell) podLog(_ context.Context, _ client.ObjectKey, options corev1.PodLogOptions) ([]byte, error) {
	if options.Previous {
		return []byte(s.previousLog), s.logError
	}
	return []byte(s.log), s.logError
}

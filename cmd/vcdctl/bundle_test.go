package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func TestABundleHasNoSecrets(t *testing.T) {
	s := newShell(t, fleet)
	leave(s)
	s.objects = append(s.objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "capvcd-system", Name: "capvcd-0", Labels: map[string]string{"cluster.x-k8s.io/provider": "infrastructure-vcd"},
	}})
	controlPlane := &unstructured.Unstructured{}
	controlPlane.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane",
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

func TestRedaction(t *testing.T) {
	const secret = "s3cr3t"
	for _, text := range []string{
		`Authorization: Bearer ` + secret, `{"password":"` + secret + `"}`, `password: ` + secret,
		`refresh_token=` + secret + `&x=1`, `X-VMWARE-VCLOUD-ACCESS-TOKEN: ` + secret,
		"-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----",
		"  password: two " + secret, "password: a," + secret, `password="two ` + secret + `"`, "- secret: " + secret,
		`auth = "` + secret + `"`, "token: " + secret, `bootstrapToken: 'a ` + secret + `'`,
	} {
		NewWithT(t).Expect(string(redact([]byte(text)))).NotTo(ContainSubstring(secret), text)
	}
	for _, text := range []string{
		"Creating VM demo-0", "secretRef:\n  name: vcd\n", "author: kubeadm", "dataSecretName: demo-0-x7k2p",
		"token:\n  name: x\n",
	} {
		NewWithT(t).Expect(string(redact([]byte(text)))).To(Equal(text))
	}
}

// podLog is that of the tests.
func (s *shell) podLog(context.Context, string, string, time.Duration) ([]byte, error) {
	return io.ReadAll(strings.NewReader(s.log))
}

// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// files creates a folder with the files to upload: a certificate, and a template and an ISO image from the provider's
// tests.
func files(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	resources := filepath.Join(providerSource(t), "test-resources")
	for name, from := range map[string]string{"node.ova": "test_vapp_template.ova", "tools.iso": "test.iso"} {
		g.Expect(os.Symlink(filepath.Join(resources, from), filepath.Join(dir, name))).To(Succeed())
	}
	certificate := vcdsim.NewCertificate("tf-web")
	for name, content := range map[string]string{"cert.pem": certificate.PEM, "key.pem": certificate.Key} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	return dir
}

// providerSource returns the folder of the provider's module in the module cache.
func providerSource(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", providerModule)
	cmd.Dir = providerFolder
	out, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred())
	var module struct{ Dir string }
	g.Expect(json.Unmarshal(out, &module)).To(Succeed())
	return module.Dir
}

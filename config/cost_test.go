// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// An API server rejects a CRD if the estimated cost of its rules, derived from the limits in the schema, is too high.
func TestTheAPIServerAcceptsTheCRDs(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("crd", "bases", "*.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(paths).NotTo(BeEmpty())
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			v1 := &apiextensionsv1.CustomResourceDefinition{}
			crd := &apiextensions.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(raw, v1)).To(Succeed())
			apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(v1)
			g.Expect(apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, crd,
				nil)).To(Succeed())
			crd.Status.StoredVersions = []string{infrav1.GroupVersion.Version}

			g.Expect(validation.ValidateCustomResourceDefinition(t.Context(), crd)).To(BeEmpty())
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
)

// TestTypedClientsPreserveObjects decodes each object of this API in pages and templates into its Go type and writes it
// back. The API server must admit it and store it unchanged. Go programs do this with every update.
func TestTypedClientsPreserveObjects(t *testing.T) {
	crds := loadCRDs(t)
	for name, stored := range shippedObjects(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := crds[stored["kind"].(string)]
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.admit(t, stored, nil)).To(BeEmpty())
			for _, round := range []string{"first", "second"} {
				again := typed(t, stored)
				g.Expect(c.admit(t, again, runtime.DeepCopyJSON(stored))).To(BeEmpty(), "%s update", round)
				dropEmptyLists(stored) // They are equivalent to missing fields.
				g.Expect(again).To(Equal(stored), "%s update", round)
				stored = again
				if stored["kind"] == "VCDMachine" { // Most rules apply only once the VM exists.
					merge(stored, parse(t, `{"spec": {"providerID": "vmware-cloud-director://urn:vcloud:vm:00000000-0000-0000-0000-000000000001"}}`))
				}
			}
		})
	}
}

// typed returns an object as a client writes it after decoding it into its Go type.
func typed(t *testing.T, stored map[string]any) map[string]any {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	object, err := scheme.New(infrav1.GroupVersion.WithKind(stored["kind"].(string)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored, object, true)).To(Succeed())
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	g.Expect(err).NotTo(HaveOccurred())
	if _, had := stored["status"]; !had { // Updates ignore it.
		delete(written, "status")
	}
	return written
}

// dropEmptyLists removes fields that are empty lists.
func dropEmptyLists(fields map[string]any) {
	for key, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			dropEmptyLists(value)
		case []any:
			if len(value) == 0 {
				delete(fields, key)
			}
		}
	}
}

// shippedObjects returns the objects of this API in pages and templates, by location. Required fields that examples in
// pages omit are added.
func shippedObjects(t *testing.T) map[string]map[string]any {
	t.Helper()
	g := NewWithT(t)
	found := map[string]map[string]any{}
	collect := func(path, documents string, isPage bool) {
		for text := range strings.SplitSeq(documents, "---\n") {
			if !strings.Contains(text, "apiVersion: "+infrav1.GroupVersion.String()) {
				continue
			}
			object := map[string]any{}
			g.Expect(yaml.Unmarshal([]byte(text), &object)).To(Succeed(), "%s: %s", path, text)
			if object["apiVersion"] != infrav1.GroupVersion.String() {
				continue // It only refers to an object of this API.
			}
			if isPage {
				object = parse(t, bases[object["kind"].(string)], text)
			} else {
				object = parse(t, text)
			}
			found[fmt.Sprintf("%s %s %d", filepath.Base(path), object["kind"], len(found)+1)] = object
		}
	}
	g.Expect(filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		for _, block := range example.FindAllStringSubmatch(string(page), -1) {
			collect(path, block[1], true)
		}
		return err
	})).To(Succeed())
	templates, err := filepath.Glob("../templates/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(templates)).To(BeNumerically(">", 5))
	for _, path := range templates {
		template, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		collect(path, string(filled(t, template)), false)
	}
	return found
}

// filled replaces the variables of a template, as clusterctl does.
func filled(t *testing.T, template []byte) []byte {
	t.Helper()
	values := testflavors.Rendered()
	text, err := yamlprocessor.NewSimpleProcessor().Process(template, func(name string) (string, error) {
		return values[name], nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

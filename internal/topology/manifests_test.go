// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
)

// inputOf reads the input of a topology.
func inputOf(t *testing.T, manifests string) topology.Input {
	t.Helper()
	g := NewWithT(t)
	in := topology.Input{}
	for _, object := range parse(t, manifests) {
		var into any
		switch object.GetKind() {
		case "Cluster":
			in.Cluster = &clusterv1.Cluster{}
			into = in.Cluster
		case "ClusterClass":
			in.Class = &clusterv1.ClusterClass{}
			into = in.Class
		default:
			in.Templates = append(in.Templates, object)
			continue
		}
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)).To(Succeed())
	}
	return in
}

func parse(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	var objects []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := yaml.YAMLToJSON(document)
		g.Expect(err).NotTo(HaveOccurred())
		if string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		g.Expect(object.UnmarshalJSON(content)).To(Succeed())
		objects = append(objects, object)
	}
}

// find returns the object of a kind whose name starts with a prefix.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, prefix string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && strings.HasPrefix(object.GetName(), prefix) {
			return object
		}
	}
	t.Fatalf("no %s with prefix %s exists", kind, prefix)
	return nil
}

// convert converts an object to its type. An unknown field fails the test.
func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return typed
}

const templates = "../../templates/"

// rendered returns the topology template of the repository with variables of clusterctl, and all of its classes.
func rendered(t *testing.T, variables map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	raw, err := os.ReadFile(templates + "cluster-template-topology.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	cluster, err := yamlprocessor.NewSimpleProcessor().Process(raw, func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	g.Expect(err).NotTo(HaveOccurred())
	return string(cluster)
}

// classes returns the files of the classes of the repository.
func classes(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	paths, err := filepath.Glob(templates + "clusterclass-*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).NotTo(BeEmpty())
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

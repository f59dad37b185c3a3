// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// fixtureKinds are the kinds of Kubernetes objects in a fixture, in the order of their creation.
var fixtureKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Secret"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "VCDCluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "VCDMachineTemplate"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "VCDMachine"},
}

// Files of a fixture.
const (
	fixtureVCD     = "vcd.json"
	fixtureObjects = "objects.yaml"
)

func fixtureDir(name string) string { return filepath.Join("testdata", "fixtures", name) }

// record writes CAPVCD's objects in VCD and in the management cluster as a fixture.
func (o *capvcdSetup) record(name string) {
	o.t.Helper()
	o.Expect(os.MkdirAll(fixtureDir(name), 0o750)).To(Succeed())
	recordState(o.WithT, o.site.Simulator, name)

	var objects bytes.Buffer
	for _, kind := range fixtureKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		o.Expect(o.client.List(o.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			if !belongsInFixture(&list.Items[i]) {
				continue
			}
			scrubObject(&list.Items[i])
			text, err := yaml.Marshal(list.Items[i].Object)
			o.Expect(err).NotTo(HaveOccurred())
			objects.WriteString("---\n")
			objects.Write(text)
		}
	}
	site := []byte(o.site.Simulator.URL())
	o.write(name, fixtureObjects, bytes.ReplaceAll(objects.Bytes(), site, []byte(recordedSite)))
}

func (o *capvcdSetup) write(name, file string, text []byte) {
	o.t.Helper()
	o.Expect(os.WriteFile(filepath.Join(fixtureDir(name), file), text, 0o600)).To(Succeed())
}

// recordState writes the state of VCD.
func recordState(g *WithT, simulator *vcdsim.Simulator, name string) {
	var dump bytes.Buffer
	g.Expect(simulator.Dump(&dump)).To(Succeed())
	state := map[string]any{}
	g.Expect(json.Unmarshal(dump.Bytes(), &state)).To(Succeed())
	scrubState(state)
	text, err := json.MarshalIndent(state, "", " ")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(fixtureDir(name), fixtureVCD), text, 0o600)).To(Succeed())
}

// scrubState removes the parts that a fixture does not need: sessions, completed tasks, and bootstrap data.
func scrubState(dump map[string]any) {
	store, _ := dump["store"].(map[string]any)
	store["Sessions"] = map[string]any{}
	store["Tasks"] = map[string]any{}
	vms, _ := store["VMs"].(map[string]any)
	for _, vm := range vms {
		fields, _ := vm.(map[string]any)
		if customization, has := fields["Customization"].(map[string]any); has {
			customization["Script"] = ""
		}
		config, _ := fields["ExtraConfig"].(map[string]any)
		if _, has := config["guestinfo.userdata"]; has {
			config["guestinfo.userdata"] = "I2Nsb3VkLWNvbmZpZwo=" // an empty cloud-config
		}
	}
}

// belongsInFixture returns false for Secrets that Cluster API created, except bootstrap data.
func belongsInFixture(object *unstructured.Unstructured) bool {
	if object.GetKind() != "Secret" {
		return true
	}
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	return kind != "cluster.x-k8s.io/secret" || isBootstrapData(object)
}

func isBootstrapData(secret *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedString(secret.Object, "data", "format")
	return found
}

// scrubObject removes fields that the API server sets, and fields that only work with controllers that are not running
// for a fixture.
func scrubObject(object *unstructured.Unstructured) {
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	switch object.GetKind() {
	case "Secret":
		if isBootstrapData(object) {
			_ = unstructured.SetNestedField(object.Object, "I2Nsb3VkLWNvbmZpZwo=", "data", "value")
		}
		object.SetOwnerReferences(nil)
	case "VCDCluster", "VCDMachine":
		object.SetOwnerReferences(nil) // Cluster API restores them.
	case "Cluster":
		unstructured.RemoveNestedField(object.Object, "spec", "controlPlaneRef")
		unstructured.RemoveNestedField(object.Object, "status")
	case "Machine":
		object.SetAnnotations(nil) // Only the control plane's controller would complete its hooks.
		unstructured.RemoveNestedField(object.Object, "spec", "bootstrap", "configRef")
		unstructured.RemoveNestedField(object.Object, "status")
		object.SetOwnerReferences(nil)
	case "VCDMachineTemplate":
		object.SetOwnerReferences(nil)
	}
}

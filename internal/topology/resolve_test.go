// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
)

// small is a class and its cluster. Tests replace CLUSTER, WORKERS, VARIABLES and PATCHES.
const small = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: small}
spec:
  infrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, name: cluster}}
  controlPlane:
    templateRef: {apiVersion: control.example.com/v1, kind: SomeControlPlaneTemplate, name: planes}
    machineInfrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, name: planes}}
  workers:
    machineDeployments:
      - class: default-worker
        bootstrap: {templateRef: {apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, name: workers}}
        infrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, name: workers}}
  variables: VARIABLES
  patches: PATCHES
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo}
spec:
  topology:
    classRef: {name: small}
    version: 1.36.3
    controlPlane: {replicas: 3}
    workers: {machineDeployments: [WORKERS]}
    variables: CLUSTER
---
{apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, metadata: {name: cluster}, spec: {template: {spec: {old: 1, list: [b]}}}}
---
{apiVersion: control.example.com/v1, kind: SomeControlPlaneTemplate, metadata: {name: planes}, spec: {template: {spec: {old: 1}}}}
---
{apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, metadata: {name: planes}, spec: {template: {spec: {old: 1}}}}
---
{apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, metadata: {name: workers}, spec: {template: {spec: {old: 1}}}}
---
{apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, metadata: {name: workers}, spec: {template: {spec: {old: 1}}}}
`

// A topologyCase contains the differences from the small class and cluster.
type topologyCase struct {
	cluster   string // variables of the Cluster
	variables string // of the class
	patches   string
	workers   string
}

// yamlOf returns the manifests of a case.
func (c topologyCase) yamlOf() string {
	or := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	return strings.NewReplacer(
		"VARIABLES", or(c.variables, "[]"),
		"PATCHES", or(c.patches, "[]"),
		"CLUSTER", or(c.cluster, "[]"),
		"WORKERS", or(c.workers, "{class: default-worker, name: md-0, replicas: 2}"),
	).Replace(small)
}

// onCluster returns a patch of the infrastructure cluster by operations.
func onCluster(operations string) string {
	return "[{name: change, definitions: [{selector: {apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}}, jsonPatches: [" + operations + "]}]}]"
}

// variable returns a variable of a class with a schema.
func variable(name, schema string) string {
	return fmt.Sprintf("{name: %s, required: false, schema: {openAPIV3Schema: %s}}", name, schema)
}

// specOf returns the spec of an object as JSON. For a template, it returns the spec of the objects that the template
// creates.
func specOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	path := []string{"spec"}
	if strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix) {
		path = []string{"spec", "template", "spec"}
	}
	spec, _, err := unstructured.NestedMap(object.Object, path...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

func TestOperationsChangeTheInfrastructureCluster(t *testing.T) {
	object := "[" + variable("object", "{type: object, properties: {name: {type: string}, list: {type: array, items: {type: string}}}}") + "]"
	value := "[{name: object, value: {name: x, list: [a, b]}}]"
	for name, tt := range map[string]struct {
		operations string
		want       string
	}{
		"add a field":              {"{op: add, path: /spec/template/spec/new, value: {a: 1}}", `{"old": 1, "list": ["b"], "new": {"a": 1}}`},
		"append to a list":         {"{op: add, path: /spec/template/spec/list/-, value: c}", `{"old": 1, "list": ["b", "c"]}`},
		"prepend to a list":        {"{op: add, path: /spec/template/spec/list/0, value: a}", `{"old": 1, "list": ["a", "b"]}`},
		"replace a field":          {"{op: replace, path: /spec/template/spec/old, value: true}", `{"old": true, "list": ["b"]}`},
		"remove a field":           {"{op: remove, path: /spec/template/spec/list}", `{"old": 1}`},
		"a variable":               {"{op: add, path: /spec/template/spec/old, valueFrom: {variable: object}}", `{"old": {"name": "x", "list": ["a", "b"]}, "list": ["b"]}`},
		"a field of a variable":    {"{op: add, path: /spec/template/spec/old, valueFrom: {variable: object.name}}", `{"old": "x", "list": ["b"]}`},
		"an item of a variable":    {`{op: add, path: /spec/template/spec/old, valueFrom: {variable: "object.list[1]"}}`, `{"old": "b", "list": ["b"]}`},
		"a template with a string": {`{op: add, path: /spec/template/spec/old, valueFrom: {template: "{{ .object.name | upper }}"}}`, `{"old": "X", "list": ["b"]}`},
		"a template with a number": {`{op: add, path: /spec/template/spec/old, valueFrom: {template: "{{ len .object.list }}"}}`, `{"old": 2, "list": ["b"]}`},
		"a template with YAML": {
			`{op: add, path: /spec/template/spec/old, valueFrom: {template: "{{ range .object.list }}\n- name: {{ . }}\n{{ end }}"}}`,
			`{"old": [{"name": "a"}, {"name": "b"}], "list": ["b"]}`,
		},
		"a template that changes its variables": {
			`{op: add, path: /spec/template/spec/old, valueFrom: {template: '{{ set .object "name" "y" | toJson }}'}},
			 {op: add, path: /spec/template/spec/list, valueFrom: {variable: object.name}}`,
			`{"old": {"name": "y", "list": ["a", "b"]}, "list": "x"}`,
		},
		"a builtin variable": {"{op: add, path: /spec/template/spec/old, valueFrom: {variable: builtin.cluster.topology.version}}", `{"old": "v1.36.3", "list": ["b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := inputOf(t, topologyCase{variables: object, cluster: value, patches: onCluster(tt.operations)}.yamlOf())

			got, err := topology.Resolve(in)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(specOf(t, find(t, got.Objects, "SomeCluster", "demo"))).To(MatchJSON(tt.want))
		})
	}
}

func TestSelectorsChooseTheTemplates(t *testing.T) {
	const cluster, plane, planes, workers, config = "cluster", "plane", "planes", "workers", "config"
	for name, tt := range map[string]struct {
		selector string
		want     []string
	}{
		"the infrastructure cluster":                {"apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}", []string{cluster}},
		"the control plane":                         {"apiVersion: control.example.com/v1, kind: SomeControlPlaneTemplate, matchResources: {controlPlane: true}", []string{plane}},
		"control plane machines":                    {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {controlPlane: true}", []string{planes}},
		"workers by name":                           {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: [other, default-worker]}}", []string{workers}},
		"workers by a prefix":                       {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: [default-*]}}", []string{workers}},
		"workers by a suffix":                       {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: ['*-worker']}}", []string{workers}},
		"all workers":                               {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: ['*']}}", []string{workers}},
		"all machines":                              {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: ['*']}}", []string{planes, workers}},
		"bootstrap configuration":                   {"apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, matchResources: {machineDeploymentClass: {names: ['*']}}", []string{config}},
		"workers of another class":                  {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: [default, '*-other', other-*]}}", nil},
		"another version":                           {"apiVersion: infra.example.com/v2, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}", nil},
		"another kind":                              {"apiVersion: infra.example.com/v1, kind: OtherTemplate, matchResources: {infrastructureCluster: true}", nil},
		"an infrastructure cluster that is not one": {"apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {infrastructureCluster: true}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := inputOf(t, topologyCase{patches: "[{name: change, definitions: [{selector: {" + tt.selector +
				"}, jsonPatches: [{op: add, path: /spec/template/spec/patched, value: true}]}]}]"}.yamlOf())

			got, err := topology.Resolve(in)

			g.Expect(err).NotTo(HaveOccurred())
			var patched []string
			for name, object := range map[string]*unstructured.Unstructured{
				cluster: find(t, got.Objects, "SomeCluster", "demo"),
				plane:   find(t, got.Objects, "SomeControlPlane", "demo"),
				planes:  find(t, got.Objects, "SomeMachineTemplate", "demo-"+topology.Random),
				workers: find(t, got.Objects, "SomeMachineTemplate", "demo-md-0"),
				config:  find(t, got.Objects, "SomeConfigTemplate", "demo-md-0"),
			} {
				if strings.Contains(specOf(t, object), "patched") {
					patched = append(patched, name)
				}
			}
			g.Expect(patched).To(ConsistOf(tt.want))
		})
	}
}

func TestAPatchIsAppliedOnlyIfItIsEnabled(t *testing.T) {
	for condition, want := range map[string]bool{
		"":                              true,
		"true":                          true,
		`{{ eq .size "large" }}`:        true,
		`{{ eq .size "small" }}`:        false,
		"{{ if .size }}yes{{ end }}":    true, // As parsed by YAML.
		"{{ if .absent }}true{{ end }}": false,
		`{{ if .absent }}{{ else }}true{{ end }}`: true,
		`"true"`: false,
	} {
		t.Run(condition, func(t *testing.T) {
			g := NewWithT(t)
			in := inputOf(t, topologyCase{
				variables: "[" + variable("size", "{type: string}") + "]",
				cluster:   "[{name: size, value: large}]",
				patches:   onCluster("{op: replace, path: /spec/template/spec/old, value: 2}"),
			}.yamlOf())
			in.Class.Spec.Patches[0].EnabledIf = condition

			got, err := topology.Resolve(in)

			g.Expect(err).NotTo(HaveOccurred())
			patched := strings.Contains(specOf(t, find(t, got.Objects, "SomeCluster", "demo")), `"old":2`)
			g.Expect(patched).To(Equal(want))
		})
	}
}

func TestVariablesHaveTheirDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		value  string // none if empty
		want   string
	}{
		"a default":                  {"{type: string, default: small}", "", `"small"`},
		"a value overrides it":       {"{type: string, default: small}", "large", `"large"`},
		"null is not a value":        {"{type: string, default: small}", "null", `"small"`},
		"an object of defaults":      {"{type: object, default: {}, properties: {port: {type: integer, default: 6443}}}", "", `{"port": 6443}`},
		"an omitted field":           {"{type: object, properties: {port: {type: integer, default: 6443}, host: {type: string}}}", "{host: x}", `{"port": 6443, "host": "x"}`},
		"a nested field":             {"{type: object, properties: {a: {type: object, default: {}, properties: {b: {type: boolean, default: true}}}}}", "{}", `{"a": {"b": true}}`},
		"no field without a default": {"{type: object, properties: {a: {type: object, properties: {b: {type: boolean, default: true}}}}}", "{}", `{}`},
		"items":                      {"{type: array, items: {type: object, properties: {a: {type: integer, default: 1}}}}", "[{}, {a: 2}]", `[{"a": 1}, {"a": 2}]`},
		"fields with any name":       {"{type: object, additionalProperties: {type: object, properties: {a: {type: integer, default: 1}}}}", "{x: {}}", `{"x": {"a": 1}}`},
		"undefined fields":           {"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer, default: 1}}}", "{x: {b: 1}}", `{"x": {"b": 1}, "a": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			given := ""
			if tt.value != "" {
				given = "[{name: it, value: " + tt.value + "}]"
			}
			in := inputOf(t, topologyCase{
				variables: "[" + variable("it", tt.schema) + "]",
				cluster:   given,
				patches:   onCluster("{op: add, path: /spec/template/spec, valueFrom: {template: '{{ dict \"it\" .it | toJson }}'}}"),
			}.yamlOf())

			got, err := topology.Resolve(in)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(specOf(t, find(t, got.Objects, "SomeCluster", "demo"))).To(MatchJSON(`{"it": ` + tt.want + `}`))
		})
	}
}

func TestWorkersOverrideVariables(t *testing.T) {
	g := NewWithT(t)
	in := inputOf(t, topologyCase{
		variables: "[" + variable("size", "{type: object, default: {}, properties: {cpu: {type: integer, default: 2}, disk: {type: integer, default: 20}}}") + "]",
		cluster:   "[{name: size, value: {cpu: 4, disk: 40}}]",
		workers:   "{class: default-worker, name: plain}, {class: default-worker, name: large, variables: {overrides: [{name: size, value: {cpu: 8}}]}}",
		patches:   "[{name: size, definitions: [{selector: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: ['*']}}}, jsonPatches: [{op: replace, path: /spec/template/spec, valueFrom: {variable: size}}]}]}]",
	}.yamlOf())
	in.Cluster.Spec.Topology.ControlPlane.Variables.Overrides = []clusterv1.ClusterVariable{{Name: "size"}}
	in.Cluster.Spec.Topology.ControlPlane.Variables.Overrides[0].Value.Raw = []byte(`{"disk": 60}`)

	got, err := topology.Resolve(in)

	g.Expect(err).NotTo(HaveOccurred())
	for name, want := range map[string]string{
		"demo-" + topology.Random: `{"cpu": 2, "disk": 60}`,
		"demo-plain":              `{"cpu": 4, "disk": 40}`,
		"demo-large":              `{"cpu": 8, "disk": 20}`,
	} {
		g.Expect(specOf(t, find(t, got.Objects, "SomeMachineTemplate", name))).To(MatchJSON(want), name)
	}
}

func TestInvalidInputIsNamed(t *testing.T) {
	endpoint := "[" + variable("endpoint", "{type: object, required: [host], properties: {host: {type: string, minLength: 1}, type: {type: string, enum: [A, B]}, ports: {type: array, items: {type: integer, maximum: 65535}}}}") + "]"
	for name, tt := range map[string]struct {
		topologyCase
		want string
	}{
		"a required variable is missing": {
			topologyCase{variables: "[{name: vcd, required: true, schema: {openAPIV3Schema: {type: string}}}]"},
			"Cluster demo: spec.topology.variables: variable vcd is required",
		},
		"a required field is missing": {topologyCase{variables: endpoint, cluster: "[{name: endpoint, value: {}}]"}, "variable endpoint: endpoint.host is required"},
		"a value is not in the enum":  {topologyCase{variables: endpoint, cluster: "[{name: endpoint, value: {host: x, type: C}}]"}, "endpoint.type should be one of [A B]"},
		"a value is of another type":  {topologyCase{variables: endpoint, cluster: "[{name: endpoint, value: {host: 5}}]"}, "endpoint.host must be of type string"},
		"an item is too large":        {topologyCase{variables: endpoint, cluster: "[{name: endpoint, value: {host: x, ports: [70000]}}]"}, "65535"},
		"an undefined field":          {topologyCase{variables: endpoint, cluster: "[{name: endpoint, value: {host: x, hots: y}}]"}, "does not define endpoint.hots"},
		"an undefined variable":       {topologyCase{cluster: "[{name: endpoints, value: x}]"}, "variable endpoints: the ClusterClass does not define it"},
		"an override is invalid": {
			topologyCase{variables: endpoint, workers: "{class: default-worker, name: md-0, variables: {overrides: [{name: endpoint, value: {}}]}}"},
			"variables of machineDeployment md-0: variable endpoint: endpoint.host is required",
		},
		"a variable of a patch does not exist": {topologyCase{patches: onCluster("{op: add, path: /spec/x, valueFrom: {variable: vcd.site}}")}, `patch change of SomeClusterTemplate cluster: add /spec/x: variable vcd.site does not exist: there is no "vcd"`},
		"a field of a variable does not exist": {topologyCase{patches: onCluster("{op: add, path: /spec/x, valueFrom: {variable: builtin.cluster.nam}}")}, `variable builtin.cluster.nam does not exist: there is no "nam"`},
		"an item does not exist":               {topologyCase{patches: onCluster(`{op: add, path: /spec/x, valueFrom: {variable: "builtin.cluster.name[0]"}}`)}, "has no item 0"},
		"an index is not a number":             {topologyCase{patches: onCluster(`{op: add, path: /spec/x, valueFrom: {variable: "builtin[a]"}}`)}, "is not a name with an index"},
		"a template is broken":                 {topologyCase{patches: onCluster("{op: add, path: /spec/x, valueFrom: {template: '{{ if }}'}}")}, "patch change of SomeClusterTemplate cluster: add /spec/x: reading the template"},
		"a template fails":                     {topologyCase{patches: onCluster(`{op: add, path: /spec/x, valueFrom: {template: '{{ fail "no" }}'}}`)}, "rendering the template"},
		"a template is not YAML":               {topologyCase{patches: onCluster("{op: add, path: /spec/x, valueFrom: {template: '{a'}}")}, "not YAML"},
		"a path does not exist":                {topologyCase{patches: onCluster("{op: replace, path: /spec/template/spec/nowhere/x, value: 1}")}, "patch change of SomeClusterTemplate cluster: replace operation does not apply"},
		"an operation is unknown":              {topologyCase{patches: onCluster("{op: change, path: /spec/x, value: 1}")}, "patch change"},
		"an operation has no value":            {topologyCase{patches: onCluster("{op: add, path: /spec/x}")}, "requires one of value"},
		"a condition is broken": {
			topologyCase{patches: strings.Replace(onCluster("{op: add, path: /spec/x, value: 1}"), "name: change,", "name: change, enabledIf: '{{ nothing }}',", 1)},
			"patch change of SomeClusterTemplate cluster: enabledIf: reading the template",
		},
		"a worker class does not exist": {topologyCase{workers: "{class: large, name: md-1}"}, `machineDeployment md-1: the ClusterClass has no machineDeployment class "large"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := topology.Resolve(inputOf(t, tt.yamlOf()))

			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestIncompatibleTemplatesAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*topology.Input)
		want   string
	}{
		"a template is missing": {
			func(in *topology.Input) { in.Templates = in.Templates[1:] },
			"ClusterClass small: there is no SomeClusterTemplate cluster",
		},
		"a template has another version": {
			func(in *topology.Input) { in.Templates[0].SetAPIVersion("infra.example.com/v2") },
			"SomeClusterTemplate cluster has version v2, but the ClusterClass refers to infra.example.com/v1",
		},
		"the name template is broken": {
			func(in *topology.Input) { in.Class.Spec.ControlPlane.Naming.Template = "{{ .cluster.nam }}" },
			`template "{{ .cluster.nam }}" of a name`,
		},
		"machine pools": {
			func(in *topology.Input) {
				in.Cluster.Spec.Topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Name: "pool"}}
			},
			"machine pools, which are not supported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := inputOf(t, topologyCase{}.yamlOf())
			tt.change(&in)

			_, err := topology.Resolve(in)

			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestRuntimeExtensionPatchesAreNamed(t *testing.T) {
	g := NewWithT(t)
	in := inputOf(t, topologyCase{
		cluster: "[{name: of-extension, value: x}]",
		patches: "[{name: elsewhere, external: {generatePatchesExtension: generate, discoverVariablesExtension: discover}}]",
	}.yamlOf())

	got, err := topology.Resolve(in)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.External).To(Equal([]string{"elsewhere"}))
	g.Expect(got.Objects).NotTo(BeEmpty())
}

func TestTheInputIsNotChanged(t *testing.T) {
	g := NewWithT(t)
	in := inputOf(t, everything)

	_, err := topology.Resolve(in)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(in).To(Equal(inputOf(t, everything)))
}

func TestTemplatesOfAClassAreListedOnce(t *testing.T) {
	g := NewWithT(t)

	refs := topology.Templates(inputOf(t, everything).Class)

	var names []string
	for _, ref := range refs {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	g.Expect(names).To(Equal([]string{
		"SomeClusterTemplate some", "SomeControlPlaneTemplate some", "SomeMachineTemplate planes",
		"SomeConfigTemplate some", "SomeMachineTemplate workers",
	}))
}

func TestTheClassesOfTheRepositoryCreateClusters(t *testing.T) {
	all := testflavors.Rendered()
	maps.Copy(all, testflavors.Optional())
	for _, path := range classes(t) {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)

			got, err := topology.Resolve(inputOf(t, rendered(t, all)+"\n---\n"+read(t, path)))

			g.Expect(err).NotTo(HaveOccurred())
			cluster := convert[infrav1.VCDCluster](t, find(t, got.Objects, "VCDCluster", "demo"))
			g.Expect(cluster.Spec.Site).To(Equal(all["VCD_SITE"]))
			g.Expect(cluster.Spec.Org).To(Equal(all["VCD_ORGANIZATION"]))
			g.Expect(cluster.Spec.OVDC).To(Equal(all["VCD_ORGANIZATION_VDC"]))
			g.Expect(cluster.Spec.OVDCNetwork).To(Equal(all["VCD_ORGANIZATION_VDC_NETWORK"]))
			g.Expect(cluster.Spec.IdentityRef).To(Equal(infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "demo"}))
			g.Expect(cluster.Spec.ControlPlaneEndpoint.Host).To(Equal(all["CONTROL_PLANE_ENDPOINT_IP"]))
			g.Expect(cluster.Spec.ControlPlaneEndpoint.Port).To(BeEquivalentTo(6443))
			planes := convert[infrav1.VCDMachineTemplate](t, find(t, got.Objects, "VCDMachineTemplate", "demo-"+topology.Random))
			g.Expect(planes.Spec.Template.Spec.Catalog).To(Equal(all["VCD_CATALOG"]))
			g.Expect(planes.Spec.Template.Spec.Template).To(Equal("debian-12-kube-v1.36.3"))
			g.Expect(planes.Spec.Template.Spec.SizingPolicy).To(Equal(all["VCD_CONTROL_PLANE_SIZING_POLICY"]))
			workers := convert[infrav1.VCDMachineTemplate](t, find(t, got.Objects, "VCDMachineTemplate", "demo-md-0"))
			g.Expect(workers.Spec.Template.Spec.SizingPolicy).To(Equal(all["VCD_WORKER_SIZING_POLICY"]))
			g.Expect(workers.Spec.Template.Spec.DiskSize.String()).To(Equal(all["DISK_SIZE"]))
			pool := convert[clusterv1.MachineDeployment](t, find(t, got.Objects, "MachineDeployment", "demo-md-0"))
			g.Expect(pool.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
			g.Expect(pool.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(workers.Name))
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/exp/topology/desiredstate"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
)

// everything is a class with each kind of patch, and a cluster that sets each field of a topology.
const everything = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: everything, namespace: team-a}
spec:
  infrastructure:
    templateRef: {apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, name: some}
    naming: {template: "{{ .cluster.name }}-infra-{{ .random }}"}
  controlPlane:
    metadata: {labels: {from: class, both: class}, annotations: {from: class}}
    templateRef: {apiVersion: control.example.com/v1, kind: SomeControlPlaneTemplate, name: some}
    machineInfrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, name: planes}}
    deletion: {nodeDrainTimeoutSeconds: 10, nodeDeletionTimeoutSeconds: 11}
    readinessGates: [{conditionType: Fine}]
  workers:
    machineDeployments:
      - class: worker-a
        metadata: {labels: {from: class, both: class}, annotations: {from: class}}
        bootstrap: {templateRef: {apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, name: some}}
        infrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, name: workers}}
        failureDomain: zone-of-class
        minReadySeconds: 5
        rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2}}}
        deletion: {order: Newest, nodeVolumeDetachTimeoutSeconds: 12}
      - class: worker-b
        naming: {template: "{{ .machineDeployment.topologyName }}-of-{{ .cluster.name }}"}
        bootstrap: {templateRef: {apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, name: some}}
        infrastructure: {templateRef: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, name: workers}}
  variables:
    - {name: size, required: true, schema: {openAPIV3Schema: {type: string, enum: [small, large]}}}
    - name: nested
      required: false
      schema:
        openAPIV3Schema:
          type: object
          default: {}
          properties:
            port: {type: integer, default: 6443}
            inner: {type: object, default: {}, properties: {name: {type: string, default: deep}}}
            list:
              type: array
              items: {type: object, properties: {kind: {type: string, default: plain}, name: {type: string}}}
            map: {type: object, additionalProperties: {type: object, properties: {on: {type: boolean, default: true}}}}
    - {name: absent, required: false, schema: {openAPIV3Schema: {type: string}}}
  patches:
    - name: builtins
      definitions:
        - selector: {apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}}
          jsonPatches:
            - {op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin}}
            - {op: add, path: /spec/template/spec/pod, valueFrom: {variable: "builtin.cluster.network.pods[0]"}}
            - {op: add, path: /spec/template/metadata/labels/patched, value: "yes"}
            - {op: replace, path: /spec/template/metadata/labels/topology.cluster.x-k8s.io~1owned, value: "no"}
            - {op: remove, path: /spec/template/spec/surplus}
        - selector: {apiVersion: control.example.com/v1, kind: SomeControlPlaneTemplate, matchResources: {controlPlane: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin}}]
        - selector: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {controlPlane: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin}}]
        - selector: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: ["*-a"]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin}}]
        - selector: {apiVersion: bootstrap.example.com/v1, kind: SomeConfigTemplate, matchResources: {machineDeploymentClass: {names: ["worker-*"]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin}}]
    - name: values
      enabledIf: '{{ eq .size "large" }}'
      definitions:
        - selector: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: ["*"]}}}
          jsonPatches:
            - {op: replace, path: /spec/template/spec/size, valueFrom: {variable: size}}
            - {op: add, path: /spec/template/spec/nested, valueFrom: {variable: nested}}
            - {op: add, path: /spec/template/spec/second, valueFrom: {variable: "nested.list[1].kind"}}
            - {op: add, path: /spec/template/spec/tags/-, valueFrom: {template: "{{ .builtin.cluster.name | upper }}-{{ .absent }}"}}
            - {op: add, path: /spec/template/spec/tags/0, value: first}
            - {op: add, path: /spec/template/spec/number, valueFrom: {template: "{{ add .nested.port 1 }}"}}
            - {op: add, path: /spec/template/spec/nothing, valueFrom: {template: "{{ if false }}x{{ end }}"}}
            - {op: add, path: /spec/template/metadata, value: {labels: {patched: "yes"}}}
    - name: the class alone
      enabledIf: '{{ if .builtin.machineDeployment }}{{ eq .builtin.machineDeployment.class "worker-b" }}{{ end }}'
      definitions:
        - selector: {apiVersion: infra.example.com/v1, kind: SomeMachineTemplate, matchResources: {machineDeploymentClass: {names: [worker-a, worker-b]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/only, value: {b: [1, true, null]}}]
    - name: disabled
      enabledIf: "{{ .nested.inner.name }}"
      definitions:
        - selector: {apiVersion: infra.example.com/v1, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}}
          jsonPatches: [{op: remove, path: /spec/nowhere}]
    - name: another version
      definitions:
        - selector: {apiVersion: infra.example.com/v2, kind: SomeClusterTemplate, matchResources: {infrastructureCluster: true}}
          jsonPatches: [{op: remove, path: /spec/nowhere}]
---
apiVersion: infra.example.com/v1
kind: SomeClusterTemplate
metadata: {name: some, namespace: team-a}
spec: {template: {metadata: {labels: {of: template}}, spec: {surplus: 1}}}
---
apiVersion: control.example.com/v1
kind: SomeControlPlaneTemplate
metadata: {name: some, namespace: team-a}
spec: {template: {spec: {machineTemplate: {metadata: {labels: {machine: "yes"}}, spec: {deletion: {nodeDrainTimeoutSeconds: 1}}}, replicas: 9}}}
---
apiVersion: infra.example.com/v1
kind: SomeMachineTemplate
metadata: {name: planes, namespace: team-a, labels: {own: "yes"}, annotations: {own: "yes"}}
spec: {template: {spec: {size: none, tags: [tag]}}}
---
apiVersion: infra.example.com/v1
kind: SomeMachineTemplate
metadata: {name: workers, namespace: team-a}
spec: {template: {spec: {size: none, tags: []}}}
---
apiVersion: bootstrap.example.com/v1
kind: SomeConfigTemplate
metadata: {name: some, namespace: team-a}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: team-a, uid: some-id, labels: {cni: none}, annotations: {note: mine}}
spec:
  clusterNetwork: {serviceDomain: cluster.local, pods: {cidrBlocks: [10.0.0.0/8]}, services: {cidrBlocks: [11.0.0.0/8]}}
  topology:
    classRef: {name: everything}
    version: v1.36.3
    controlPlane:
      replicas: 3
      metadata: {labels: {both: topology}, annotations: {both: topology}}
      deletion: {nodeDrainTimeoutSeconds: 20}
      taints: [{key: taint, value: a, effect: NoSchedule, propagation: Always}]
      variables: {overrides: [{name: size, value: large}]}
    workers:
      machineDeployments:
        - class: worker-a
          name: first
          replicas: 2
          metadata: {labels: {both: topology}, annotations: {both: topology}}
        - class: worker-a
          name: second
          failureDomain: zone-of-topology
          minReadySeconds: 6
          rollout: {strategy: {type: OnDelete}}
          deletion: {order: Oldest}
          readinessGates: [{conditionType: Good}]
          variables: {overrides: [{name: size, value: large}, {name: nested, value: {port: 1, list: [{name: a}, {name: b}], map: {x: {}}}}]}
        - {class: worker-b, name: a-name-that-is-so-long-that-cluster-api-cuts-it-before-the-end}
    variables: [{name: size, value: small}, {name: nested, value: {list: [{kind: x}, {}], inner: {}}}]
`

// withIgnition sets the Cluster variables for nodes with Ignition behind a proxy.
func withIgnition(cluster string) string {
	const image = "      - name: image\n"
	const variables = `      - name: bootstrapFormat
        value: ignition
      - name: proxy
        value: {httpProxy: "http://proxy:3128"}
`
	return strings.Replace(cluster, image, variables+image, 1)
}

func TestTheClassCreatesNodesWithIgnition(t *testing.T) {
	all := testflavors.Rendered()
	maps.Copy(all, testflavors.Optional())
	for _, path := range classes(t) {
		g := NewWithT(t)

		got, err := topology.Resolve(inputOf(t, withIgnition(rendered(t, all))+"\n---\n"+read(t, path)))

		g.Expect(err).NotTo(HaveOccurred())
		made := map[string]string{}
		for _, object := range got.Objects {
			text, err := json.Marshal(object.Object["spec"])
			g.Expect(err).NotTo(HaveOccurred())
			made[object.GetKind()] = string(text)
		}
		for _, kind := range []string{"KubeadmControlPlane", "KubeadmConfigTemplate"} {
			g.Expect(made).To(HaveKeyWithValue(kind, And(ContainSubstring(`"format":"ignition"`), ContainSubstring("kubeadm.service.d"),
				ContainSubstring(`". /etc/vcd/metadata.env","sed -i `), ContainSubstring(`"value":"$PROVIDER_ID"`),
				ContainSubstring(`"name":"$LOCAL_HOSTNAME"`), ContainSubstring(`"name":"core"`),
				Not(ContainSubstring("cloud-final")), Not(ContainSubstring("{{")))))
		}
	}
}

// withProxy sets the proxy and the Kubernetes version of a Cluster.
func withProxy(cluster, version, proxy string) string {
	const image = "      - name: image\n"
	cluster = strings.Replace(cluster, "v1.36.3", version, 1)
	return strings.Replace(cluster, image, "      - name: proxy\n        value: "+proxy+"\n"+image, 1)
}

// TestTheClassEnablesMutatingPoliciesWhereKubernetesDoesNot compares the arguments of API servers.
func TestTheClassEnablesMutatingPoliciesWhereKubernetesDoesNot(t *testing.T) {
	const proxy = `{httpsProxy: "http://proxy:3128"}`
	enabled := map[string]string{
		"feature-gates":  "MutatingAdmissionPolicy=true",
		"runtime-config": "admissionregistration.k8s.io/v1beta1=true",
	}
	for name, tt := range map[string]struct {
		version, proxy string
		want           map[string]string
	}{
		"not before version 1.34":             {"v1.33.9", proxy, nil},
		"in version 1.34":                     {"v1.34.0", proxy, enabled},
		"in version 1.35":                     {"v1.35.4", proxy, enabled},
		"not in version 1.36":                 {"v1.36.0", proxy, nil},
		"not in a release candidate of 1.36":  {"v1.36.0-rc.1", proxy, nil},
		"not if pods get no proxy":            {"v1.35.4", `{httpsProxy: "http://proxy:3128", pods: None}`, nil},
		"not if the cluster has no proxy":     {"v1.35.4", "{}", nil},
		"if the variable enables it for pods": {"v1.35.4", `{httpProxy: "http://proxy:3128", pods: Inject}`, enabled},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := testflavors.Rendered()
			maps.Copy(all, testflavors.Optional())
			for _, path := range classes(t) {
				cluster := withProxy(rendered(t, all), tt.version, tt.proxy)
				repository := "      - name: imageRepository\n        value: registry.example.com/k8s\n"
				for with, manifest := range map[string]string{
					"":                         cluster,
					"registry.example.com/k8s": strings.Replace(cluster, "      - name: image\n", repository+"      - name: image\n", 1),
				} {
					got, err := topology.Resolve(inputOf(t, manifest+"\n---\n"+read(t, path)))
					g.Expect(err).NotTo(HaveOccurred())
					config := convert[controlplanev1.KubeadmControlPlane](t, find(t, got.Objects, "KubeadmControlPlane", "demo")).
						Spec.KubeadmConfigSpec.ClusterConfiguration
					var args map[string]string
					for _, arg := range config.APIServer.ExtraArgs {
						if args == nil {
							args = map[string]string{}
						}
						args[arg.Name] = *arg.Value
					}
					g.Expect(args).To(Equal(tt.want))
					g.Expect(config.ImageRepository).To(Equal(with), "the other patch of the same part still counts")
				}
			}
		})
	}
}

func TestATopologyIsResolvedLikeInClusterAPI(t *testing.T) {
	manifests := map[string]string{"everything": everything}
	all := testflavors.Rendered()
	maps.Copy(all, testflavors.Optional())
	for _, path := range classes(t) {
		manifests[path] = rendered(t, testflavors.Rendered()) + "\n---\n" + read(t, path)
		manifests[path+" with optional variables"] = rendered(t, all) + "\n---\n" + read(t, path)
		manifests[path+" with policies of pods"] = withProxy(rendered(t, all), "v1.35.1", `{httpProxy: "http://proxy:3128"}`) +
			"\n---\n" + read(t, path)
		manifests[path+" with Ignition"] = withIgnition(rendered(t, all)) + "\n---\n" + read(t, path)
	}
	for name, manifest := range manifests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := inputOf(t, manifest)
			want := normal(t, desired(t, inputOf(t, manifest)))

			got, err := topology.Resolve(in)

			g.Expect(err).NotTo(HaveOccurred())
			resolved := normal(t, got.Objects)
			g.Expect(slices.Sorted(maps.Keys(resolved))).To(Equal(slices.Sorted(maps.Keys(want))))
			for key := range want {
				g.Expect(resolved[key]).To(MatchJSON(want[key]), key)
			}
		})
	}
}

// desired returns the objects that Cluster API's topology controller creates for a topology.
func desired(t *testing.T, in topology.Input) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	for _, variable := range in.Class.Spec.Variables {
		in.Class.Status.Variables = append(in.Class.Status.Variables, clusterv1.ClusterClassStatusVariable{
			Name: variable.Name,
			Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{
				From:     clusterv1.VariableDefinitionFromInline,
				Required: variable.Required,
				Schema:   variable.Schema,
			}},
		})
	}
	g.Expect((&admission.Cluster{}).DefaultAndValidateVariables(t.Context(), in.Cluster, nil, in.Class)).To(BeEmpty())
	s := scope.New(in.Cluster)
	s.Blueprint = blueprintOf(t, in)
	s.Current.ControlPlane = &scope.ControlPlaneState{}
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	client := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		contract("somecontrolplanes.control.example.com", "v1"),
		contract("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "v1beta2"),
	).Build()
	generator, err := desiredstate.NewGenerator(client, clustercache.NewFakeEmptyClusterCache(), nil, nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	state, err := generator.Generate(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	all := []*unstructured.Unstructured{
		state.InfrastructureCluster, state.ControlPlane.Object, state.ControlPlane.InfrastructureMachineTemplate,
	}
	for _, workers := range state.MachineDeployments {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(workers.Object)
		g.Expect(err).NotTo(HaveOccurred())
		delete(content, "status")
		deployment := &unstructured.Unstructured{Object: content}
		deployment.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
		all = append(all, deployment, workers.BootstrapTemplate, workers.InfrastructureMachineTemplate)
	}
	return all
}

// contract returns a CustomResourceDefinition whose labels state which version implements Cluster API's contract.
func contract(name, version string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{"cluster.x-k8s.io/v1beta2": version},
	}}
}

func blueprintOf(t *testing.T, in topology.Input) *scope.ClusterBlueprint {
	t.Helper()
	template := func(ref clusterv1.ClusterClassTemplateReference) *unstructured.Unstructured {
		for _, template := range in.Templates {
			if template.GetKind() == ref.Kind && template.GetName() == ref.Name {
				return template.DeepCopy()
			}
		}
		t.Fatalf("%s %s does not exist", ref.Kind, ref.Name)
		return nil
	}
	spec := in.Class.Spec
	blueprint := &scope.ClusterBlueprint{
		Topology:                      in.Cluster.Spec.Topology,
		ClusterClass:                  in.Class,
		InfrastructureClusterTemplate: template(spec.Infrastructure.TemplateRef),
		ControlPlane: &scope.ControlPlaneBlueprint{
			Template:                      template(spec.ControlPlane.TemplateRef),
			InfrastructureMachineTemplate: template(spec.ControlPlane.MachineInfrastructure.TemplateRef),
		},
		MachineDeployments: map[string]*scope.MachineDeploymentBlueprint{},
	}
	for _, class := range spec.Workers.MachineDeployments {
		blueprint.MachineDeployments[class.Class] = &scope.MachineDeploymentBlueprint{
			Metadata:                      class.Metadata,
			BootstrapTemplate:             template(class.Bootstrap.TemplateRef),
			InfrastructureMachineTemplate: template(class.Infrastructure.TemplateRef),
		}
	}
	return blueprint
}

// normal returns objects as JSON by kind and name, without owners, and with the same suffix in all names.
func normal(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	var names []string
	for _, object := range objects {
		name := object.GetName()
		names = append(names, name, name[:len(name)-len(topology.Random)]+topology.Random)
	}
	replacer := strings.NewReplacer(names...)
	all := map[string]string{}
	for _, object := range objects {
		object.SetOwnerReferences(nil)
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		raw, err := json.Marshal(object.Object)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all[object.GetKind()+" "+replacer.Replace(object.GetName())] = replacer.Replace(string(raw))
	}
	return all
}

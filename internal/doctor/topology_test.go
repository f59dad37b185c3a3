// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// readPlan reads the plan from manifests, without a management cluster.
func readPlan(t *testing.T, manifests ...string) (doctor.Plan, error) {
	t.Helper()
	from := doctor.Sources{}
	for _, manifest := range manifests {
		from.Manifests = append(from.Manifests, strings.NewReader(manifest))
	}
	return doctor.ReadPlan(t.Context(), from)
}

// class returns the manifest of the ClusterClass.
func class(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "templates", "clusterclass-quick-start.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// startTopology starts a site, and uses the manifest of the flavor with a topology and its class. The replacements of
// the fault only apply to the Cluster.
func startTopology(t *testing.T, f fault) *site {
	t.Helper()
	s := startFlavor(t, "-topology", nil, f)
	s.manifest += "\n---\n" + class(t)
	return s
}

func TestATopologyHasNoFindings(t *testing.T) {
	s := startTopology(t, fault{})

	report := s.run(t)

	s.Expect(report.Findings).To(BeEmpty())
	s.Expect(report.Skipped).To(BeEmpty())
}

// A topology has the findings of the template with the same variables, with its own names.
func TestATopologyHasTheSameFindingsAsThePlainTemplate(t *testing.T) {
	node := func(m *vcdsim.Model) *vcdsim.Network { return &vdcOf(m).Networks[0] }
	for _, f := range []fault{
		{
			name:  "the VDC is disabled",
			model: func(m *vcdsim.Model) { vdcOf(m).Disabled = true },
			check: "vdc",
		},
		{
			name:  "the VM quota is too small",
			model: func(m *vcdsim.Model) { vdcOf(m).VMQuota = 4 },
			check: "capacity",
		},
		{
			name:  "the network has no static pool",
			model: func(m *vcdsim.Model) { node(m).StaticPool = nil },
			check: "network",
		},
		{
			name:  "the template is Windows",
			model: func(m *vcdsim.Model) { imageOf(m).OS = "windows2019srvNext_64Guest" },
			check: "template",
		},
		{
			name:  "the gateway has no load balancer",
			model: func(m *vcdsim.Model) { vdcOf(m).EdgeGateways[0].LoadBalancer = nil },
			check: "gateway",
		},
		{
			name:  "a right is missing",
			model: without("vApp: Allow All Extra Config"),
			check: "rights",
		},
		{
			name:  "the VDC does not exist",
			text:  []string{`"acme-vdc"`, `"none"`},
			check: "vdc",
		},
		{
			name:  "the template does not exist",
			text:  []string{"ubuntu-2404-kube-v1.36.3", "none", "ubuntu-2404-kube-VERSION", "none"},
			check: "template",
		},
		{
			name:  "the version differs from the image",
			text:  []string{`version: "v1.36.3"`, `version: "v1.35.0"`, "kube-VERSION", "kube-v1.36.3"},
			check: "template",
		},
		{
			name:  "a sizing policy does not exist",
			text:  []string{`sizingPolicy: ""`, "sizingPolicy: none", "sizingPolicy: null", "sizingPolicy: none"},
			check: "policy",
		},
		{
			name:  "the virtual IP is in the static pool",
			text:  []string{"192.168.100.200", "192.168.100.11"},
			check: "endpoint",
		},
		{
			name:  "an even number of control planes",
			text:  []string{"replicas: 3", "replicas: 2"},
			check: "manifest",
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			plain := startFlavor(t, "", nil, f).run(t)

			s := startTopology(t, f)
			report := s.run(t)

			names := strings.NewReplacer("demo-md-0-"+topology.Random, "demo-md-0", "demo-"+topology.Random, "demo-control-plane")
			for i := range report.Findings {
				report.Findings[i].Message = names.Replace(report.Findings[i].Message)
				report.Findings[i].Remedy = names.Replace(report.Findings[i].Remedy)
			}
			s.Expect(plain.Findings).To(ContainElement(HaveField("Check", f.check)))
			s.Expect(report.Findings).To(Equal(plain.Findings))
			s.Expect(report.Skipped).To(Equal(plain.Skipped))
		})
	}
}

func TestATopologyCanSelectItsTemplate(t *testing.T) {
	for name, tt := range map[string]struct {
		pattern string
		says    string // empty: none
	}{
		"of an existing object": {pattern: "ubuntu-2404-kube-v{kubernetesVersion}*"},
		"of a nonexistent object": {
			pattern: "flatcar-v{kubernetesVersion}",
			says:    `a template that matches "name flatcar-v1.36.3" in catalog kubernetes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTopology(t, fault{text: []string{
				`template: "ubuntu-2404-kube-VERSION"`,
				fmt.Sprintf("templateSelector: {namePattern: %q}", tt.pattern),
			}})
			s.Expect(s.manifest).To(ContainSubstring(tt.pattern))

			findings := s.run(t).Findings

			if tt.says == "" {
				s.Expect(findings).To(BeEmpty())
				return
			}
			s.Expect(findings).To(ContainElement(And(HaveField("Check", "template"),
				HaveField("Message", ContainSubstring(tt.says)))))
		})
	}
}

func TestTheClassOfATopologyCanBeInAnotherFile(t *testing.T) {
	s := startFlavor(t, "-topology", nil, fault{})

	plan, err := readPlan(t, s.manifest, class(t))

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.check(t, plan).Findings).To(BeEmpty())
}

func TestTheTemplatesOfAClassAreNotChecked(t *testing.T) {
	s := start(t, fault{})
	s.manifest += "\n---\n" + class(t)

	s.Expect(s.run(t).Findings).To(BeEmpty(), "a variable replaces their catalog")
}

// A managementCluster has the objects of a manifest, and records the requested namespaces.
type managementCluster struct {
	objects    []*unstructured.Unstructured
	namespaces []string
}

func newManagementCluster(t *testing.T, manifest string) *managementCluster {
	t.Helper()
	g := NewWithT(t)
	c := &managementCluster{}
	documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 1024)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return c
		}
		g.Expect(err).NotTo(HaveOccurred())
		if object.Object != nil {
			object.SetNamespace("classes")
			c.objects = append(c.objects, object)
		}
	}
}

func (c *managementCluster) lookUp(_ context.Context, key doctor.Key) (*unstructured.Unstructured, error) {
	c.namespaces = append(c.namespaces, key.Namespace)
	for _, object := range c.objects {
		if object.GroupVersionKind() == key.Kind && object.GetName() == key.Name {
			return object, nil
		}
	}
	return nil, errors.New("it is not there")
}

func TestTheClassOfATopologyIsReadFromTheManagementCluster(t *testing.T) {
	s := startFlavor(t, "-topology", nil, fault{})
	cluster := newManagementCluster(t, class(t))

	plan, err := doctor.ReadPlan(t.Context(), doctor.Sources{
		Manifests: []io.Reader{strings.NewReader(s.manifest)},
		Lookup:    cluster.lookUp,
	})

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.check(t, plan).Findings).To(BeEmpty())
	s.Expect(cluster.namespaces[0]).To(BeEmpty(), "the context's namespace, in which the Cluster will be created")
	s.Expect(cluster.namespaces[1:]).To(HaveEach("classes"))
}

func TestATopologyWithoutItsClassIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		manifest string
		lookUp   doctor.Lookup
		want     string
	}{
		"there is no class": {
			want: "Cluster demo uses ClusterClass quick-start, which is not in the manifest: pass its file with another -f",
		},
		"the management cluster has no class": {
			lookUp: (&managementCluster{}).lookUp,
			want:   "which is neither in the manifest nor in the management cluster (it is not there): pass its file with another -f",
		},
		"there is no template": {
			manifest: strings.SplitN(class(t), "\n---\n", 2)[0],
			want:     "ClusterClass quick-start refers to VCDClusterTemplate quick-start, which is not in the manifest: pass its file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startFlavor(t, "-topology", nil, fault{})

			_, err := doctor.ReadPlan(t.Context(), doctor.Sources{
				Manifests: []io.Reader{strings.NewReader(s.manifest), strings.NewReader(tt.manifest)},
				Lookup:    tt.lookUp,
			})

			s.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestATopologyThatCannotBeResolvedIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new, want string
	}{
		"a variable is missing":   {"- name: image\n", "- name: proxy\n", "variable image is required"},
		"a value is rejected":     {"type: KubeVIP", "type: HAProxy", "controlPlaneLoadBalancer.type should be one of"},
		"a field is unknown":      {"controlPlane:\n      replicas", "controlplane:\n      replicas", "unknown field"},
		"an outdated version":     {"cluster.x-k8s.io/v1beta2\nkind: Cluster\n", "cluster.x-k8s.io/v1beta1\nkind: Cluster\n", "Cluster demo has version v1beta1: convert it to v1beta2"},
		"an unknown worker class": {"class: default-worker\n          name", "class: large\n          name", `has no machineDeployment class "large"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTopology(t, fault{})
			s.Expect(s.manifest).To(ContainSubstring(tt.old))

			_, err := readPlan(t, strings.Replace(s.manifest, tt.old, tt.new, 1))

			s.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestSeveralTopologiesAreRejected(t *testing.T) {
	s := startTopology(t, fault{})

	_, err := readPlan(t, s.manifest, s.manifest)

	s.Expect(err).To(MatchError(ContainSubstring("several Clusters with a topology")))
}

// The webhooks of the manager validate the objects that Cluster API creates.
func TestWebhookErrorsOfATopologyAreReported(t *testing.T) {
	s := startTopology(t, fault{text: []string{"192.168.100.200", "not_an_address"}})

	s.Expect(s.run(t).Findings).To(ContainElement(And(
		HaveField("Check", "manifest"),
		HaveField("Message", HavePrefix("VCDCluster demo-"+topology.Random+": spec.controlPlaneEndpoint")),
	)))
}

func TestRuntimeExtensionPatchesCauseAWarning(t *testing.T) {
	s := startTopology(t, fault{})
	s.manifest = strings.Replace(s.manifest, "  patches:\n",
		"  patches:\n    - {name: elsewhere, external: {generatePatchesExtension: generate.example}}\n", 1)

	report := s.run(t)

	s.Expect(report.Findings).To(ConsistOf(And(
		HaveField("Severity", doctor.Warning),
		HaveField("Message", ContainSubstring("patch elsewhere of the ClusterClass")),
	)))
}

// Objects of an existing cluster are checked without changes.
func TestATopologyIsNotResolvedIfTheManifestContainsItsVCDCluster(t *testing.T) {
	s := start(t, fault{text: []string{
		"kind: Cluster\nmetadata: {name: demo}\n", "kind: Cluster\nmetadata: {name: demo}\nspec: {topology: {classRef: {name: elsewhere}}}\n",
	}})
	s.Expect(s.manifest).To(ContainSubstring("elsewhere"))

	s.Expect(s.run(t).Findings).To(BeEmpty())
}

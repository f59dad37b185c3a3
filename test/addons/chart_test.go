// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons/chart"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// chartCase contains a user's values for a cloud, and the additional objects that the chart must render.
type chartCase struct {
	cloud   func() addons.Cloud
	values  string
	objects []string
}

func chartCases() map[string]chartCase {
	return map[string]chartCase{
		"VMware Cloud Director": {
			addons.VCD,
			`
vcd:
  config:
    vcd: {host: https://vcd.example.com, org: acme, vdc: acme-vdc}
    loadbalancer: {network: nodes}
  clusterID: 7a0e0d4c-1111-4222-8333-444455556666
  credentials: {refreshToken: "a: token\nwith \"all\""}
`,
			[]string{"ConfigMap vcloud-ccm-configmap", "Secret vcloud-basic-auth", "Secret vcloud-clusterid-secret"},
		},
		"CloudStack": {
			addons.CloudStack,
			`
cloud: external-cloudstack
cloudstack:
  config: |
    [Global]
    api-url = https://cloud.example.com/client/api
`,
			[]string{"Secret cloudstack-secret"},
		},
		"vSphere": {
			addons.VSphere,
			`
cloud: vsphere
vsphere:
  config: {vcenter: {vc: {server: vc.example.com, datacenters: [dc]}}}
  credentials: {vc.username: me, vc.password: "a: secret"}
`,
			[]string{"ConfigMap vsphere-cloud-config", "Secret vsphere-cloud-secret"},
		},
	}
}

func TestChartRendersTheManifest(t *testing.T) {
	for name, test := range chartCases() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cloud := test.cloud()
			want, err := addons.StandAloneCCM(image, cloud).Objects()
			g.Expect(err).NotTo(HaveOccurred())

			bare := render(g, "cloud: "+cloud.Provider)
			full := render(g, test.values)

			for i := range bare {
				unstructured.RemoveNestedField(bare[i].Object, "spec", "template", "metadata", "annotations")
			}
			g.Expect(bare).To(ConsistOf(slices.Collect(func(yield func(any) bool) {
				for i := range want {
					yield(want[i])
				}
			})...))
			g.Expect(slices.Sorted(maps.Keys(byName(full)))).To(Equal(slices.Sorted(slices.Values(append(
				slices.Collect(maps.Keys(byName(bare))), test.objects...)))))
			g.Expect(hashOf(full)).NotTo(Equal(hashOf(render(g, "cloud: "+cloud.Provider))), "the pods should be restarted")
		})
	}
}

func TestValuesReachTheContainer(t *testing.T) {
	g := NewWithT(t)
	digest := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	objects := byName(render(g, `
image: {repository: registry.example.com/ccm, digest: "`+digest+`"}
replicas: 2
resources: {limits: {memory: 1Gi}}
`))

	d := objects["Deployment vmware-cloud-director-ccm"]
	g.Expect(d.Object["spec"]).To(HaveKeyWithValue("replicas", BeNumerically("==", 2)))
	containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containers).To(HaveExactElements(And(
		HaveKeyWithValue("image", "registry.example.com/ccm@"+digest),
		HaveKeyWithValue("resources", HaveKeyWithValue("limits", HaveKeyWithValue("memory", "1Gi"))),
	)))
}

func TestPodsReadTheProxyFromASecret(t *testing.T) {
	for name, test := range chartCases() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cloud := test.cloud()
			provider := "cloud: " + cloud.Provider
			bare := render(g, provider)

			full := render(g, provider+`
proxy:
  httpsProxy: http://me:secret@proxy.example.com:3128
  noProxy: [192.168.4.0/24, .corp.example.com]
`)

			secret := byName(full)["Secret "+cloud.ProxySecret]
			g.Expect(secret.Object).To(HaveKeyWithValue("data", Equal(map[string]any{
				"HTTPS_PROXY": base64.StdEncoding.EncodeToString([]byte("http://me:secret@proxy.example.com:3128")),
				"NO_PROXY":    base64.StdEncoding.EncodeToString([]byte("192.168.4.0/24,.corp.example.com")),
			})))
			g.Expect(byName(bare)).NotTo(HaveKey("Secret " + cloud.ProxySecret))
			g.Expect(hashOf(full)).NotTo(Equal(hashOf(bare)), "the pods should be restarted")
			containers, _, err := unstructured.NestedSlice(byName(full)[cloud.Kind()+" "+cloud.Name].Object,
				"spec", "template", "spec", "containers")
			g.Expect(err).NotTo(HaveOccurred())
			for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
				g.Expect(containers).To(HaveExactElements(HaveKeyWithValue("env", ContainElement(map[string]any{
					"name": variable,
					"valueFrom": map[string]any{"secretKeyRef": map[string]any{
						"name":     cloud.ProxySecret,
						"key":      variable,
						"optional": true,
					}},
				}))))
			}
		})
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	for values, message := range map[string]string{
		"cloud: aws":                 "cloud",
		"vcd: {token: x}":            "token",
		"image: {tag: latest}":       "tag",
		"replicas: 0":                "replicas",
		"vcd: {clusterID: {a: b}}":   "clusterID",
		"image: {digest: sha256:ab}": "digest",
		"proxy: {url: http://proxy}": "url",
		"proxy: {httpsProxy: proxy}": "httpsProxy",
		"proxy: {noProxy: [a b]}":    "noProxy",
	} {
		t.Run(values, func(t *testing.T) {
			g := NewWithT(t)
			_, err := rendered(g, values)
			g.Expect(err).To(MatchError(ContainSubstring(message)))
		})
	}
}

// testInstallByChart applies the objects that Helm would apply.
func testInstallByChart(c cluster) {
	for _, test := range chartCases() {
		objects := render(c.WithT, test.values)
		manifest, err := addons.Marshal(objects)
		c.Expect(err).NotTo(HaveOccurred())

		c.kubectl(manifest, "apply")
		c.remove(manifest)
	}
}

func render(g *WithT, values string) []unstructured.Unstructured {
	objects, err := rendered(g, values)
	g.Expect(err).NotTo(HaveOccurred())
	return objects
}

// helm builds the program that renders charts with Helm's engine. It builds only once.
var helm = sync.OnceValues(func() (string, error) {
	root, err := framework.Root()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "hack", "helm")
	source, err := os.ReadFile(filepath.Join(folder, "main.go"))
	if err != nil {
		return "", err
	}
	set, err := programs.BuildGroups(context.Background(), programs.Options{}, programs.Group{
		Name:     "helm",
		Folder:   folder,
		Ldflags:  "-s -w",
		Salt:     string(source),
		Programs: []programs.Program{{Name: "helm", Package: "."}},
	})
	if err != nil {
		return "", err
	}
	return set.Bin("helm"), nil
})

// rendered renders the chart archive of a release with values.
func rendered(g *WithT, values string) ([]unstructured.Unstructured, error) {
	program, err := helm()
	g.Expect(err).NotTo(HaveOccurred())
	files, err := chart.Files("registry.example.com", "v2.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	var archive bytes.Buffer
	g.Expect(chart.Write(&archive, files, time.Unix(0, 0))).To(Succeed())
	cmd := exec.CommandContext(context.Background(), program, "ccm", values)
	cmd.Stdin = &archive
	var out, problem bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, problem.String())
	}
	return addons.Parse(out.Bytes())
}

func byName(objects []unstructured.Unstructured) map[string]unstructured.Unstructured {
	all := map[string]unstructured.Unstructured{}
	for i := range objects {
		all[objects[i].GetKind()+" "+objects[i].GetName()] = objects[i]
	}
	return all
}

// hashOf returns the annotation that changes with the configuration, so that the pods are replaced.
func hashOf(objects []unstructured.Unstructured) string {
	for i := range objects {
		hash, found, _ := unstructured.NestedString(objects[i].Object, "spec", "template", "metadata", "annotations",
			"infrastructure.cluster.x-k8s.io/config-hash")
		if found {
			return hash
		}
	}
	return ""
}

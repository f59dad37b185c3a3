// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/conversion"
)

// TestSetupServesWhatIsConfigured asks the webhook server for each path that the generated configuration names.
func TestSetupServesWhatIsConfigured(t *testing.T) {
	g := NewWithT(t)
	mux := http.NewServeMux()
	g.Expect(Setup(managerWithMux(t, mux), Options{})).To(Succeed())

	configured := configuredPaths(t)

	g.Expect(configured).To(HaveLen(8), "one webhook for each kind")
	for kind, path := range configured {
		spec := map[string]any{
			"type":                "ServiceAccount",
			"rde":                 map[string]any{"mode": "Project", "id": "x"},
			"metadata":            map[string]any{"a": "b"},
			"region":              "not a label",
			"sizingPolicy":        someVDC,
			"placementConstraint": map[string]any{"catalog": someVDC},
		}
		if strings.HasSuffix(kind, "Template") {
			spec = map[string]any{"template": map[string]any{"spec": spec}}
		}
		review := map[string]any{
			"apiVersion": "admission.k8s.io/v1",
			"kind":       "AdmissionReview",
			"request": map[string]any{
				"uid":       "1",
				"operation": "CREATE",
				"object": map[string]any{
					"apiVersion": infrav1.GroupVersion.String(),
					"kind":       kind,
					"metadata":   map[string]any{"name": "a"},
					"spec":       spec,
				},
			},
		}
		g.Expect(refusal(g, mux, path, review)).To(Or(ContainSubstring("rde.id"),
			ContainSubstring("spec.secretRef.name"), ContainSubstring("spec.region"), ContainSubstring("spec.sizingPolicy"),
			ContainSubstring("spec.placementConstraint.catalog")), path)
	}
}

func managerWithMux(t *testing.T, mux *http.ServeMux) ctrl.Manager {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	g.Expect(conversion.AddToScheme(scheme)).To(Succeed())
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper,
			error,
		) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: mux}),
	})
	g.Expect(err).ToNot(HaveOccurred())
	return mgr
}

// TestSetupServesConversions converts a new VCDCluster of CAPVCD as the API server does.
func TestSetupServesConversions(t *testing.T) {
	g := NewWithT(t)
	mux := http.NewServeMux()
	g.Expect(Setup(managerWithMux(t, mux), Options{})).To(Succeed())
	review := `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "1",
		"desiredAPIVersion": "` + infrav1.GroupVersion.String() + `", "objects": [{"kind": "VCDCluster",
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "metadata": {"name": "a", "namespace": "b"},
		"spec": {"site": "https://vcd.example.com", "org": "acme", "userContext": {}}}]}}`
	recorder := httptest.NewRecorder()

	mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(review)))

	answer := apiextensionsv1.ConversionReview{}
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
	g.Expect(answer.Response.Result.Message).To(BeEmpty())
	converted := &infrav1.VCDCluster{}
	g.Expect(json.Unmarshal(answer.Response.ConvertedObjects[0].Raw, converted)).To(Succeed())
	g.Expect(converted.APIVersion).To(Equal(infrav1.GroupVersion.String()))
	g.Expect(converted.Spec.Org).To(Equal("acme"))
	g.Expect(converted.Spec.ControlPlaneLoadBalancer.Type).To(Equal(infrav1.EndpointEdgeGateway))
}

// configuredPaths returns the path of the webhook of each resource, by a kind that the server accepts for it.
func configuredPaths(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	kinds := map[string]string{
		"vcdclusters":          "VCDCluster",
		"vcdclustertemplates":  "VCDClusterTemplate",
		"vcdmachines":          "VCDMachine",
		"vcdmachinetemplates":  "VCDMachineTemplate",
		"vcdidentities":        "VCDIdentity",
		"vcdclusteridentities": "VCDClusterIdentity",
		"vcdfailuredomains":    "VCDFailureDomain",
		"vcddeploymentzones":   "VCDDeploymentZone",
	}
	data, err := os.ReadFile("../../config/webhook/manifests.yaml")
	g.Expect(err).ToNot(HaveOccurred())
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	g.Expect(yaml.Unmarshal(data, &config)).To(Succeed())

	paths := map[string]string{}
	for _, hook := range config.Webhooks {
		rule := hook.Rules[0]
		g.Expect(rule.Operations).To(ConsistOf(admissionregistrationv1.Create, admissionregistrationv1.Update),
			"deletions are never blocked")
		paths[kinds[rule.Resources[0]]] = *hook.ClientConfig.Service.Path
	}
	return paths
}

// refusal posts a review and returns the words of the refusal.
func refusal(g *WithT, handler http.Handler, path string, review any) string {
	body, err := json.Marshal(review)
	g.Expect(err).ToNot(HaveOccurred())
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()

	handler.ServeHTTP(recorder, request)

	g.Expect(recorder.Code).To(Equal(http.StatusOK), path)
	var answer admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
	g.Expect(answer.Response.Allowed).To(BeFalse(), path)
	return answer.Response.Result.Message
}

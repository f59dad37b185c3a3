// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/conversion"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/webhooks"
)

// admitChanges restarts the controllers with a client that passes changes of VCDClusters through the provider's
// webhook.
func admitChanges(t *testing.T, w *controllertest.Env) {
	t.Helper()
	mux := http.NewServeMux()
	scheme := runtime.NewScheme()
	w.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	w.Expect(conversion.AddToScheme(scheme)).To(Succeed())
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: mux}),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(webhooks.Setup(mgr, webhooks.Options{})).To(Succeed())
	patches, ok := w.Client.(client.WithWatch)
	w.Expect(ok).To(BeTrue())
	w.Client = interceptor.NewClient(patches, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			if desired, ok := obj.DeepCopyObject().(*infrav1.VCDCluster); ok {
				before := &infrav1.VCDCluster{}
				if err := errors.Join(c.Get(ctx, client.ObjectKeyFromObject(obj), before),
					c.Patch(ctx, desired, patch, client.DryRunAll), admit(mux, before, desired)); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	w.Restart(t, events.NewFakeRecorder(1000))
}

// admit calls the VCDCluster webhook for an update.
func admit(mux http.Handler, before, after *infrav1.VCDCluster) error {
	kind := infrav1.GroupVersion.WithKind("VCDCluster")
	before.SetGroupVersionKind(kind)
	after.SetGroupVersionKind(kind)
	was, errWas := json.Marshal(before)
	is, errIs := json.Marshal(after)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID:       "1",
		Operation: admissionv1.Update,
		OldObject: runtime.RawExtension{Raw: was},
		Object:    runtime.RawExtension{Raw: is},
	}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, errReview := json.Marshal(review)
	request := httptest.NewRequest(http.MethodPost,
		"/validate-infrastructure-cluster-x-k8s-io-v1beta4-vcdcluster", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if err := errors.Join(errWas, errIs, errReview, json.Unmarshal(recorder.Body.Bytes(), &answer)); err != nil {
		return err
	}
	if !answer.Response.Allowed {
		return errors.New(answer.Response.Result.Message)
	}
	return nil
}

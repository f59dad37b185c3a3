// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
)

func TestEachRequestOfAnInspectionHasItsOwnTimeout(t *testing.T) {
	g := NewWithT(t)
	limited, cancel := context.WithTimeout(t.Context(), addon.InspectTimeout)
	defer cancel()
	requests := 0
	within := func(ctx context.Context) {
		requests++
		deadline, ok := ctx.Deadline()
		g.Expect(ok).To(BeTrue())
		g.Expect(time.Until(deadline)).To(And(BeNumerically("<=", addon.RequestTimeout), BeNumerically(">", 0)))
	}
	w := &guest{&addon.Guest{Client: interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			within(ctx)
			return nil
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			within(ctx)
			return nil
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			within(ctx)
			return nil
		},
	})}}

	_, err := w.config(limited)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.foreignBeside(limited)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Delete(limited, &corev1.ConfigMap{})).To(Succeed())

	g.Expect(requests).To(Equal(6))
	g.Expect(addon.InspectTimeout).To(BeNumerically(">=", 6*addon.RequestTimeout))
}

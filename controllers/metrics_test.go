// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// withCondition returns a machine with a condition.
func withCondition(name, condition string, status metav1.ConditionStatus, reason string) *infrav1.VCDMachine {
	m := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	m.Status.Conditions = []metav1.Condition{{
		Type:               condition,
		Status:             status,
		Reason:             reason,
		LastTransitionTime: metav1.Now(),
	}}
	return m
}

func reader(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func TestObjectsAreCountedByConditionAndReason(t *testing.T) {
	g := NewWithT(t)
	deleted := withCondition("d", infrav1.VMDeletedCondition, metav1.ConditionFalse, infrav1.ShuttingDownReason)
	deleted.Finalizers = []string{"f"}
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newObjectCounts(reader(t, interceptor.Funcs{}, deleted,
		withCondition("a", "Ready", metav1.ConditionTrue, infrav1.ReadyReason),
		withCondition("b", "Ready", metav1.ConditionFalse, infrav1.VMPoweredOffReason),
		withCondition("c", "Ready", metav1.ConditionFalse, infrav1.VMPoweredOffReason),
	)))

	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP capvcd_conditions Number of objects by the state of their conditions.
# TYPE capvcd_conditions gauge
capvcd_conditions{condition="Ready",kind="VCDMachine",reason="Ready",status="True"} 1
capvcd_conditions{condition="Ready",kind="VCDMachine",reason="VMPoweredOff",status="False"} 2
capvcd_conditions{condition="VMDeleted",kind="VCDMachine",reason="ShuttingDown",status="False"} 1
`), "capvcd_conditions")).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	longest := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "capvcd_oldest_deletion_age_seconds" {
				longest[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	g.Expect(longest).To(HaveKeyWithValue("VCDCluster", 0.0))
	g.Expect(longest["VCDMachine"]).To(BeNumerically("~", 3600, 60))
}

func TestForeignConditionsCreateABoundedNumberOfSeries(t *testing.T) {
	g := NewWithT(t)
	var objects []client.Object
	for i := range 2 * maxSeries {
		objects = append(objects,
			withCondition(fmt.Sprint("m", i), "Ready", metav1.ConditionFalse, fmt.Sprint("Made", i, "Up")))
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newObjectCounts(reader(t, interceptor.Funcs{}, objects...)))

	count, err := testutil.GatherAndCount(registry, "capvcd_conditions")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(count).To(Equal(maxSeries + 1))
}

func TestUnlistableKindsAreNotCounted(t *testing.T) {
	g := NewWithT(t)
	fails := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache is not filled yet")
	}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newObjectCounts(reader(t, fails)))

	families, err := registry.Gather()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(BeEmpty(), "no value is better than an incorrect one")
}

// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

var recorded = service.Record{
	Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::10")},
	Locations: []string{"main", "?slow"},
}

// recordsOf returns the ConfigMap with the records.
func (b *bench) recordsOf(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	stored, err := b.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), RecordsName, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return stored
}

func TestARecordIsReadByTheNextProcess(t *testing.T) {
	web := balanced("web")
	other := balanced("other")
	b := newBench(t)
	b.Expect(b.them.store.load(t.Context())).To(Succeed())

	b.Expect(b.them.store.write(t.Context(), web, recorded)).To(Succeed())
	b.Expect(b.them.store.write(t.Context(), other, service.Record{Locations: []string{"main"}})).To(Succeed())
	b.Expect(b.recordOf(web)).To(Equal(recorded))
	b.Expect(b.recordsOf(t).Data).To(ContainElement(ContainSubstring(`"service":"shop/web"`)), "users can read it")

	b.Expect(b.them.store.write(t.Context(), web, service.Record{})).To(Succeed())
	b.Expect(b.recordOf(web)).To(BeZero())
	b.Expect(b.recordOf(other).Locations).To(Equal([]string{"main"}))
	b.Expect(b.recordsOf(t).Data).To(HaveLen(1))
}

func TestRecordsSurviveTheLossOfTheirConfigMap(t *testing.T) {
	web := balanced("web")
	other := balanced("other")
	lose := func(b *bench) {
		b.Expect(b.client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), RecordsName,
			metav1.DeleteOptions{})).To(Succeed())
	}
	for name, next := range map[string]func(*bench){
		"when another one is written": func(b *bench) { b.record(other, "main") },
		"when they are read again":    func(b *bench) { b.them.store.refresh(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Expect(b.them.store.load(t.Context())).To(Succeed())
			b.Expect(b.them.store.write(t.Context(), web, recorded)).To(Succeed())
			lose(b)

			next(b)

			b.Expect(b.recordOf(web)).To(Equal(recorded))
		})
	}
}

func TestRecordsRemovedByAnAdministratorAreForgotten(t *testing.T) {
	s := balanced("web", recordedAt("main", "gone"))
	b := newBench(t, s)
	stored := b.recordsOf(t)
	for key := range stored.Data {
		stored.Data[key] = `{"service":"shop/web","locations":["main"]}`
	}
	b.Expect(b.client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), stored, metav1.UpdateOptions{})).NotTo(BeNil())

	b.them.store.refresh(t.Context())

	b.Expect(b.them.records.locations(s)).To(Equal([]string{"main"}))
}

func TestADamagedRecordHidesNoOther(t *testing.T) {
	s := balanced("web", recordedAt("main"))
	b := newBench(t, s)
	stored := b.recordsOf(t)
	stored.Data[recordPrefix(benchDefaults)+"other-uid"] = "{"
	b.Expect(b.client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), stored, metav1.UpdateOptions{})).NotTo(BeNil())

	b.Expect(b.recordOf(s).Locations).To(Equal([]string{"main"}))
	b.Expect(b.recordOf(balanced("other"))).To(BeZero())
}

func TestRecordsOfDeletedServicesAreRemoved(t *testing.T) {
	s := balanced("web", recordedAt("main"))
	b := newBench(t, s)
	gone := balanced("gone")
	b.record(gone, "main")
	r := &resync{balancers: b.them}

	r.searchOrphans(t.Context())

	b.Expect(b.recordOf(gone)).To(BeZero())
	b.Expect(b.recordOf(s).Locations).To(Equal([]string{"main"}))
}

func TestARecordNewerThanTheServiceListIsKept(t *testing.T) {
	b := newBench(t)
	s := balanced("new")
	before := b.them.store.all()
	b.record(s, "main")

	b.Expect(b.them.records.removeOthers(t.Context(), before, map[types.UID]bool{})).To(Succeed())

	b.Expect(b.recordOf(s).Locations).To(Equal([]string{"main"}))
}

// withoutRole makes the API server refuse a verb on ConfigMaps.
func (b *bench) withoutRole(verb string) {
	b.client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), RecordsName, errors.New("no role"))
	})
}

func TestNothingIsChangedWithoutTheRecords(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.withoutRole("get")

	_, err := b.ensure(s)
	b.Expect(err).To(MatchError(And(ContainSubstring(RecordsName), ContainSubstring("kubectl apply -f cloud-ccm.yaml"))))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(ContainSubstring(RecordsName)))
	b.Expect(b.them.store.readable(t.Context())).To(MatchError(ContainSubstring(RecordsName)))
	b.Expect(b.balancer.looks).To(BeZero())
}

func TestNothingIsCreatedThatCannotBeRecorded(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.withoutRole("patch")

	_, err := b.ensure(s)

	b.Expect(err).To(MatchError(ContainSubstring("verbs: [get, patch]")))
	b.Expect(b.balancer.runs).To(BeEmpty())
}

func TestAMissingRBACRuleIsReportedOnThePod(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		t.Run(verb, func(t *testing.T) {
			b := newBench(t)
			b.withoutRole(verb)

			for range 2 {
				b.Expect(b.them.store.load(context.Background())).To(MatchError(ContainSubstring("get, patch")))
			}
			b.Expect(b.newEvents()).To(ConsistOf(And(HavePrefix("Warning ManifestOutdated"), ContainSubstring(RecordsName),
				ContainSubstring("kubectl apply -f cloud-ccm.yaml"))), "once, without a Service")
		})
	}
}

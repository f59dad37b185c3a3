package store

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAStoreHoldsOneValuePerObject(t *testing.T) {
	g := NewWithT(t)
	var s Store[*int]
	create := func() *int { return new(int) }

	first := s.GetOrCreate("a", create)
	g.Expect(s.GetOrCreate("a", create)).To(BeIdenticalTo(first))
	g.Expect(s.GetOrCreate("b", create)).NotTo(BeIdenticalTo(first))

	other := new(int)
	s.Set("a", other)
	value, ok := s.Get("a")
	g.Expect(ok).To(BeTrue())
	g.Expect(value).To(BeIdenticalTo(other))

	s.Delete("a")
	_, ok = s.Get("a")
	g.Expect(ok).To(BeFalse())

	secret := &corev1.Secret{}
	secret.UID = "b"
	s.OnDelete().Delete(t.Context(), event.DeleteEvent{Object: secret}, nil)
	_, ok = s.Get("b")
	g.Expect(ok).To(BeFalse(), "the value goes with its object")
}

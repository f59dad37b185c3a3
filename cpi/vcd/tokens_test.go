// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestTokenSecret(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "token"},
		Data:       map[string][]byte{tokenKey: []byte("first\n"), "other": []byte("stays")},
	})
	conflicts := 1
	client.PrependReactor("update", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "token", nil)
	})
	tokens := NewTokenSecret(client.CoreV1().Secrets("kube-system"), "token")

	g.Expect(tokens.Load(t.Context())).To(Equal("first"))
	g.Expect(tokens.Store(t.Context(), "first", "second")).To(Succeed(), "a conflict is not the end")
	g.Expect(tokens.Load(t.Context())).To(Equal("second"))
	g.Expect(tokens.Store(t.Context(), "first", "third")).To(MatchError(vcd.ErrConflict),
		"what another process wrote stays")
	secret, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "token", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secret.Data).To(Equal(map[string][]byte{tokenKey: []byte("second"), "other": []byte("stays")}))

	_, err = NewTokenSecret(client.CoreV1().Secrets("kube-system"), "none").Load(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("reading Secret none")))
}

// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Identify reconciles a VCDIdentity a few times.
func (w *Env) Identify(name string) {
	key := client.ObjectKey{Namespace: Namespace, Name: name}
	for range 4 {
		_, err := reconcile.AsReconciler(w.Client, w.Identity).Reconcile(w.Ctx, reconcile.Request{NamespacedName: key})
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// Secret reads a Secret from the API server. The test fails if it does not exist.
func (w *Env) Secret(name string) *corev1.Secret {
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: name}, secret)).To(Succeed())
	return secret
}

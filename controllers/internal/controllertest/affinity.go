// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// ControlPlane makes a machine a control plane machine.
func ControlPlane(m *infrav1.VCDMachine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }

// OfDeployment makes a machine a member of a MachineDeployment.
func OfDeployment(name string) func(*infrav1.VCDMachine) {
	return func(m *infrav1.VCDMachine) { m.Labels[clusterv1.MachineDeploymentNameLabel] = name }
}

// An AntiAffinity is the anti-affinity of the machines of each group.
type AntiAffinity struct {
	ControlPlane       infrav1.AntiAffinity
	MachineDeployments infrav1.AntiAffinity
}

// SetAntiAffinity changes the anti-affinity of the cluster's machines.
func (w *Env) SetAntiAffinity(wanted AntiAffinity) {
	list := &infrav1.VCDMachineList{}
	w.Expect(w.Client.List(w.Ctx, list)).To(Succeed())
	for i := range list.Items {
		m := &list.Items[i]
		m.Spec.AntiAffinity = wanted.MachineDeployments
		if _, found := m.Labels[clusterv1.MachineControlPlaneLabel]; found {
			m.Spec.AntiAffinity = wanted.ControlPlane
		}
		w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	}
}

// ReconcileAffinity reconciles the rules of the VCDCluster once.
func (w *Env) ReconcileAffinity(g Gomega) {
	key := client.ObjectKey{Namespace: Namespace, Name: "vc1"}
	_, err := reconcile.AsReconciler(w.Client, w.Affinity).Reconcile(w.Ctx, ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
}

// EventuallyAffinity reconciles the rules of the VCDCluster until their condition has the reason. It returns the
// message.
func (w *Env) EventuallyAffinity(reason string) (message string) {
	w.Eventually(func(g Gomega) {
		w.ReconcileAffinity(g)
		c := conditions.Get(w.VCDCluster(), infrav1.AffinityRulesReadyCondition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
		message = c.Message
	}, Patience, "5ms").Should(Succeed())
	return message
}

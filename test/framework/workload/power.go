// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func isWaiting(err error) bool { return errors.Is(err, errWaiting) }

// nodeUp simulates the boot of a node: its kubelet registers or reports Ready again, and its static pods start.
func (w *Workloads) nodeUp(m *machine) error {
	c := m.cluster
	p := m.plan
	version := p.version
	if version == "" {
		version = c.version
	}
	if err := c.createNode(w.ctx, p.node, version); err != nil {
		if isGone(err) {
			w.setPhase(m, PhaseRunning, "cluster "+c.name+" is gone, kubelet reaches no API server")
			return nil
		}
		return err
	}
	if p.controlPlane {
		if err := c.setMember(w.ctx, p.node.name, true); err != nil {
			return err
		}
	}
	w.setPhase(m, PhaseRunning, "")
	return c.markNode(w.ctx, p.node.name, corev1.ConditionTrue, "KubeletReady", "")
}

// nodeDown stops the node's control plane components now, and marks the node as unreachable after NotReadyAfter.
func (w *Workloads) nodeDown(m *machine, boot int) {
	c := m.cluster
	node := m.plan.node.name
	if m.plan.controlPlane {
		if err := c.setMember(w.ctx, node, false); err != nil {
			w.options.Log.Error("Stopping control plane", "node", node, "error", err)
		}
	}
	w.jobs.Go(func() {
		if !sleep(w.ctx, w.options.NotReadyAfter) {
			return
		}
		w.lock.Lock()
		restarted := m.on != boot || m.powered
		w.lock.Unlock()
		if restarted {
			return
		}
		if err := c.markNode(w.ctx, node, corev1.ConditionUnknown, "NodeStatusUnknown",
			"Kubelet stopped posting node status."); err != nil {
			w.options.Log.Error("Marking node", "node", node, "error", err)
		}
	})
}

// leaveCluster removes a control plane node whose VM is deleted. It ends the cluster with the last one.
func (w *Workloads) leaveCluster(m *machine) {
	c := m.cluster
	last, err := c.removeMember(w.ctx, m.plan.node.name)
	if err != nil {
		w.options.Log.Error("Removing control plane", "node", m.plan.node.name, "error", err)
	}
	if last {
		w.endCluster(c)
		w.options.Log.Info("Cluster ended with its last control plane", "cluster", c.name, "endpoint", c.endpoint)
	}
}

// endCluster removes a cluster with all its objects.
func (w *Workloads) endCluster(c *cluster) {
	w.lock.Lock()
	if w.clusters[c.endpoint] == c {
		delete(w.clusters, c.endpoint)
	}
	w.lock.Unlock()
	if err := c.close(); err != nil {
		w.options.Log.Error("Stopping cluster", "cluster", c.name, "error", err)
	}
	w.manager.DeleteResourceGroup(c.group)
}

// close stops the API server of the cluster permanently.
func (c *cluster) close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	server := c.server
	c.server = nil
	c.address = ""
	if server == nil {
		return nil
	}
	return server.Close()
}

// markNode sets the readiness of a node and its pods, as kubelet and the node lifecycle controller do.
func (c *cluster) markNode(ctx context.Context, name string, status corev1.ConditionStatus, reason, message string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := c.update(ctx, node, func() {
		for i := range node.Status.Conditions {
			condition := &node.Status.Conditions[i]
			if condition.Type == corev1.NodeReady && condition.Status != status {
				condition.Status = status
				condition.Reason = reason
				condition.Message = message
				condition.LastTransitionTime = metav1.Now()
			}
		}
		setUnreachable(node, status != corev1.ConditionTrue)
	})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.markPods(ctx, name, status == corev1.ConditionTrue)
}

func setUnreachable(node *corev1.Node, unreachable bool) {
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		if t.Key != corev1.TaintNodeUnreachable {
			taints = append(taints, t)
		}
	}
	if unreachable {
		now := metav1.NewTime(time.Now())
		taints = append(taints,
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now},
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
	}
	node.Spec.Taints = taints
}

func (c *cluster) markPods(ctx context.Context, node string, ready bool) error {
	pods, err := c.podsOn(ctx, node)
	if err != nil {
		return err
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for i := range pods {
		pod := &pods[i]
		err := c.update(ctx, pod, func() {
			for j := range pod.Status.Conditions {
				if pod.Status.Conditions[j].Type == corev1.PodReady {
					pod.Status.Conditions[j].Status = status
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.client.List(ctx, list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("listing pods of node %s: %w", node, err)
	}
	return list.Items, nil
}

// isGone reports whether an error means that the whole cluster was deleted: the in-memory server then responds with a
// bad request.
func isGone(err error) bool { return apierrors.IsBadRequest(err) }

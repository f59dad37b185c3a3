// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeWatch receives deleted nodes from the in-memory server.
type nodeWatch struct{ w *Workloads }

// watchNodes stands in for the pod garbage collector: the pods of a deleted node go too.
func (w *Workloads) watchNodes() error {
	informer, err := w.manager.GetCache().GetInformer(w.ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return informer.AddEventHandler(nodeWatch{w})
}

// OnCreate does nothing.
func (nodeWatch) OnCreate(string, client.Object) {}

// OnUpdate does nothing.
func (nodeWatch) OnUpdate(string, client.Object, client.Object) {}

// OnGeneric does nothing.
func (nodeWatch) OnGeneric(string, client.Object) {}

// OnDelete removes the pods of a node; not here and now, because the server calls while it holds its lock.
func (n nodeWatch) OnDelete(group string, node client.Object) {
	w := n.w
	name := node.GetName()
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, c := range w.clusters {
		if c.group == group && w.ctx.Err() == nil {
			w.jobs.Go(func() {
				if err := c.collectPods(w.ctx, name); err != nil && !isGone(err) {
					w.options.Log.Error("Collecting pods", "node", name, "error", err)
				}
			})
		}
	}
}

// collectPods deletes a node's pods, unless the node is back or runs. An etcd pod stands for a member and stays until
// etcd's API has removed it.
func (c *cluster) collectPods(ctx context.Context, node string) error {
	pods, err := c.podsOn(ctx, node)
	if err != nil {
		return err
	}
	for i := range pods {
		_, removed := pods[i].Annotations[cloudv1.EtcdMemberRemoved]
		if pods[i].Labels["component"] == "etcd" && !removed || c.nodeRuns(node) {
			continue
		}
		if err := c.client.Delete(ctx, &pods[i]); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

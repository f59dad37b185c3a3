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

// nodeWatch receives the events of nodes from the in-memory server.
type nodeWatch struct{ w *Workloads }

// watchNodes replaces the pod garbage collector: it deletes the pods of deleted nodes.
func (w *Workloads) watchNodes() error {
	informer, err := w.manager.GetCache().GetInformer(w.ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return informer.AddEventHandler(nodeWatch{w})
}

// OnCreate is a no-op.
func (nodeWatch) OnCreate(string, client.Object) {}

// OnUpdate is a no-op.
func (nodeWatch) OnUpdate(string, client.Object, client.Object) {}

// OnGeneric is a no-op.
func (nodeWatch) OnGeneric(string, client.Object) {}

// OnDelete removes the pods of a node in the background, because the server holds its lock during the call.
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

// collectPods deletes the pods of a node, unless the node exists again or runs. An etcd pod represents a member and
// remains until it is removed through etcd's API.
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

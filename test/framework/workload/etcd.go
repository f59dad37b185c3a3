// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster API's in-memory etcd keeps its membership in annotations of the etcd pods: one cluster ID for all, a member
// ID for each, and the time when a member became the leader. The member with the latest time is the leader.

// voters counts etcd members.
type voters struct{ all, alive int }

// etcdAnnotations returns the annotations of a new member that joins the others.
func (c *cluster) etcdAnnotations(ctx context.Context) (map[string]string, error) {
	members, err := c.etcdPods(ctx)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		cloudv1.EtcdClusterIDAnnotationName: strconv.Itoa(1 + rand.IntN(1<<31-2)), //nolint:gosec // an identifier, not a secret
		cloudv1.EtcdMemberIDAnnotationName:  strconv.Itoa(1 + rand.IntN(1<<31-2)), //nolint:gosec // an identifier, not a secret
	}
	if len(members) == 0 {
		annotations[cloudv1.EtcdLeaderFromAnnotationName] = leaderTimestamp()
		return annotations, nil
	}
	annotations[cloudv1.EtcdClusterIDAnnotationName] = members[0].Annotations[cloudv1.EtcdClusterIDAnnotationName]
	return annotations, nil
}

// settleEtcd counts the members, and elects one that is alive if the leader is not.
func (c *cluster) settleEtcd(ctx context.Context, alive []string) (voters, error) {
	pods, err := c.etcdPods(ctx)
	if err != nil {
		return voters{}, err
	}
	v := voters{all: len(pods)}
	var leader, candidate *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if isLeader(pod, leader) {
			leader = pod
		}
		if slices.Contains(alive, pod.Spec.NodeName) {
			v.alive++
			candidate = pod
		}
	}
	if candidate == nil || leader != nil && slices.Contains(alive, leader.Spec.NodeName) {
		return v, nil
	}
	return v, c.elect(ctx, candidate, pods)
}

// elect makes candidate the leader, and removes the record of earlier leaders. The resolution of the annotation, one
// second, is too low to order quick changes.
func (c *cluster) elect(ctx context.Context, candidate *corev1.Pod, pods []corev1.Pod) error {
	for i := range pods {
		pod := &pods[i]
		if err := c.update(ctx, pod,
			func() { delete(pod.Annotations, cloudv1.EtcdLeaderFromAnnotationName) }); err != nil {
			return err
		}
	}
	return c.update(ctx, candidate, func() {
		candidate.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = leaderTimestamp()
	})
}

// isLeader reports whether pod became leader after other.
func isLeader(pod, other *corev1.Pod) bool {
	since, err := time.Parse(time.RFC3339, pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName])
	if err != nil {
		return false
	}
	if other == nil {
		return true
	}
	otherSince, err := time.Parse(time.RFC3339, other.Annotations[cloudv1.EtcdLeaderFromAnnotationName])
	return err != nil || since.After(otherSince)
}

// leaderTimestamp returns the current time in the format that the in-memory server uses when etcd's API moves the
// leadership.
func leaderTimestamp() string { return time.Now().Format(time.RFC3339) }

// etcdPods returns the members, except for those that were removed through etcd's API.
func (c *cluster) etcdPods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.client.List(ctx, list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"component": "etcd"}); err != nil {
		return nil, fmt.Errorf("listing etcd pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		_, removed := p.Annotations[cloudv1.EtcdMemberRemoved]
		return removed
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods, nil
}

// update changes an object, and retries on conflicts. It ignores a missing object.
func (c *cluster) update(ctx context.Context, obj client.Object, change func()) error {
	for {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", obj.GetName(), err)
		}
		change()
		err = c.client.Update(ctx, obj)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("updating %s: %w", obj.GetName(), err)
		}
	}
}

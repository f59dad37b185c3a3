// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// available reports whether pods of the cloud controller manager are available and up to date. The objects contain its
// Deployment.
func available(objects []*unstructured.Unstructured) (phases.Result, error) {
	d, err := deploymentIn(objects)
	if err != nil {
		return phases.Done, err
	}
	why := ""
	for _, c := range d.Status.Conditions {
		if stuck(c) && d.Status.ObservedGeneration >= d.Generation {
			return phases.Fail(intervals.Remedy, infrav1.CloudProviderUnavailableReason,
				"Deployment %s/%s is not available (%s): %s", d.Namespace, d.Name, progress(d),
				strings.TrimSuffix(c.Message, ".")), nil
		}
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			why = ": " + strings.TrimSuffix(c.Message, ".")
		}
	}
	if rolledOut(d) && d.Status.AvailableReplicas > 0 {
		return phases.Done, nil
	}
	return phases.Wait(addon.StartPoll, infrav1.CloudProviderUnavailableReason,
		"Waiting for pods of Deployment %s/%s to be available (%s)%s", d.Namespace, d.Name, progress(d), why), nil
}

// deploymentIn returns the Deployment among objects; an empty one if there is none.
func deploymentIn(objects []*unstructured.Unstructured) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			return nil, fmt.Errorf("reading Deployment %s: %w", addons.DeploymentName, err)
		}
	}
	return d, nil
}

// rolledOut reports whether all pods of a Deployment are up to date. It does not require all of them to be available.
func rolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= ptr.Deref(d.Spec.Replicas, 1) &&
		d.Status.Replicas <= d.Status.UpdatedReplicas
}

// progress describes the pods of a Deployment.
func progress(d *appsv1.Deployment) string {
	if d.Status.ObservedGeneration < d.Generation {
		return "the rollout has just started"
	}
	text := fmt.Sprintf("rollout: %d of %d replicas updated, %d available", d.Status.UpdatedReplicas,
		ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas)
	if old := d.Status.Replicas - d.Status.UpdatedReplicas; old > 0 {
		text += fmt.Sprintf(", %d old", old)
	}
	return text
}

// stuck reports whether a condition of a Deployment means that it does not become available by itself.
func stuck(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse ||
		c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
}

// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// claimedAnnotation marks Services of the configured load balancer class, in caches only. The cache also removes
	// their class, because the controller of k8s.io/cloud-provider ignores every Service with a class. The value is a
	// random secret of this process, because users may also write the annotation.
	claimedAnnotation = "cpi.cluster-api-provider-vcd.io/claimed"
	// otherClass is set, in caches only, on Services without a class if this process does not manage those.
	otherClass = "cpi.cluster-api-provider-vcd.io/other"
)

// classTransform returns a transform for an informer of Services. It removes the class from Services of the given class
// and, if only is set, adds another class to Services without one. The stored objects are not affected, because writes
// are patches between two such objects. The transform is idempotent. It also drops managedFields from the cache.
func classTransform(class string, only bool) cache.TransformFunc {
	claimed := rand.Text()
	return func(obj any) (any, error) {
		service, ok := obj.(*corev1.Service)
		if ok {
			service.ManagedFields = nil
		}
		if !ok || service.Annotations[claimedAnnotation] == claimed {
			return obj, nil
		}
		switch theirs := service.Spec.LoadBalancerClass; {
		case theirs != nil && *theirs == class && class != "":
			if service.Annotations == nil {
				service.Annotations = map[string]string{}
			}
			service.Annotations[claimedAnnotation] = claimed
			service.Spec.LoadBalancerClass = nil
		case theirs == nil && only:
			other := otherClass
			service.Spec.LoadBalancerClass = &other
		}
		return service, nil
	}
}

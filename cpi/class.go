// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// claimedAnnotation marks, in caches only, Services of our class: their class is removed in caches, so that the
	// controller of k8s.io/cloud-provider, which ignores every Service with a class, works on them. Its value is known
	// to this process only: users may have written the annotation.
	claimedAnnotation = "cpi.cluster-api-provider-vcd.io/claimed"
	// otherClass is set, in caches only, on Services without a class that are not ours.
	otherClass = "cpi.cluster-api-provider-vcd.io/other"
)

// classTransform makes an informer of Services show those of a load balancer class as if they had none, and, if only
// they are ours, those without a class as if they had another's. What is stored stays as it is: what is written are
// differences between two such objects. It may be applied to an object any number of times. Who manages
// which field is left out of the cache.
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

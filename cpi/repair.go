// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/klog/v2"
)

// repair reconciles one load balancer, unless other work on it is in flight. If it must wait, the next round
// continues.
func (l *LoadBalancers) repair(ctx context.Context, s *corev1.Service) {
	unlock, ok := l.queues.services.try(string(s.UID))
	if !ok {
		return
	}
	defer unlock()
	if s = l.records.current(s); s == nil {
		return
	}
	status, err := l.ensure(ctx, s, 0)
	log := klog.FromContext(ctx)
	switch {
	case err != nil && !isRetry(err):
		log.Error(err, "Cannot repair a load balancer", "service", klog.KObj(s))
		return
	case status == nil || servicehelpers.LoadBalancerStatusEqual(&s.Status.LoadBalancer, status):
		return
	}
	updated := s.DeepCopy()
	updated.Status.LoadBalancer = *status
	if _, err := servicehelpers.PatchService(l.opts.Client.CoreV1(), s, updated); err != nil {
		log.Error(err, "Cannot publish the status of a load balancer", "service", klog.KObj(s))
	}
}

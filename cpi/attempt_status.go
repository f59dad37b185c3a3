// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// published returns the status that Kubernetes publishes. A hostname replaces the address, so that clients in the
// cluster also resolve it.
func (a *attempt) published(s loadbalancer.Status) *corev1.LoadBalancerStatus {
	if a.request.Hostname == "" || len(s.Addresses) == 0 {
		return statusOf(s, a.ipMode())
	}
	return &corev1.LoadBalancerStatus{
		Ingress: []corev1.LoadBalancerIngress{{Hostname: a.request.Hostname, Ports: portsOf(s)}},
	}
}

// ipMode returns how clients in the cluster reach the address. If the load balancer terminates connections, these
// clients must also connect to it. It returns nil if the API server does not store the field, as before Kubernetes
// 1.29. Otherwise the status would be written again and again.
func (a *attempt) ipMode() *corev1.LoadBalancerIPMode {
	before := slices.DeleteFunc(slices.Clone(a.service.Status.LoadBalancer.Ingress),
		func(i corev1.LoadBalancerIngress) bool { return i.IP == "" })
	if len(before) > 0 && !slices.ContainsFunc(before,
		func(i corev1.LoadBalancerIngress) bool { return i.IPMode != nil }) {
		return nil
	}
	if a.request.Terminates {
		return ptr.To(corev1.LoadBalancerIPModeProxy)
	}
	return ptr.To(corev1.LoadBalancerIPModeVIP)
}

// statusOf returns the status that publishes the addresses.
func statusOf(s loadbalancer.Status, mode *corev1.LoadBalancerIPMode) *corev1.LoadBalancerStatus {
	out := &corev1.LoadBalancerStatus{}
	for _, a := range s.Addresses {
		out.Ingress = append(out.Ingress, corev1.LoadBalancerIngress{IP: a.String(), IPMode: mode, Ports: portsOf(s)})
	}
	return out
}

func portsOf(s loadbalancer.Status) []corev1.PortStatus {
	var out []corev1.PortStatus
	for _, p := range s.Ports {
		port := corev1.PortStatus{Port: int32(p.Port), Protocol: corev1.Protocol(p.Protocol)} //nolint:gosec // a port
		if p.Problem != "" {
			port.Error = &p.Problem
		}
		out = append(out, port)
	}
	return out
}

// stuckStatus returns the status of a load balancer that the cloud can only create in part. It keeps the published
// addresses and reports the problems of the ports.
func stuckStatus(s *corev1.Service, now loadbalancer.Status) *corev1.LoadBalancerStatus {
	out := s.Status.LoadBalancer.DeepCopy()
	for i := range out.Ingress {
		out.Ingress[i].Ports = portsOf(now)
	}
	return out
}

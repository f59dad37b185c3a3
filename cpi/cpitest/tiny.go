// SPDX-License-Identifier: Apache-2.0

package cpitest

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/tiny"
)

// TinyCloud returns a tiny cloud with three machines; start makes its backend.
func TinyCloud(cloud *tiny.Cloud, start func(Process) cpi.Backend) Cloud {
	machines := map[string]string{"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.3"}
	for name, address := range machines {
		cloud.Put(name, netip.MustParseAddr(address), cpi.PowerOn)
	}
	return Cloud{
		Start:    start,
		Machines: machines,
		Remove:   cloud.Remove,
		SetAway:  cloud.SetAway,
		PowerOff: func(name string) { cloud.Put(name, netip.MustParseAddr(machines[name]), cpi.PowerOff) },
		Balancers: &Balancers{
			Refused:  func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} },
			Break:    cloud.Break,
			Standing: cloud.Standing,
			Left:     cloud.Left,
			Writes:   cloud.Writes,
		},
	}
}

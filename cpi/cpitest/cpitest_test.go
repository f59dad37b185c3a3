// SPDX-License-Identifier: Apache-2.0

package cpitest_test

import (
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/tiny"
)

func TestTheTinyCloudFulfilsTheContract(t *testing.T) {
	cpitest.Run(t, func(*testing.T) cpitest.Cloud {
		cloud := tiny.New()
		return cpitest.TinyCloud(cloud, func(p cpitest.Process) cpi.Backend { return cloud.Backend(p.Cluster) })
	})
}

func TestACloudWithoutLoadBalancers(t *testing.T) {
	cpitest.Run(t, func(*testing.T) cpitest.Cloud {
		cloud := tiny.New()
		c := cpitest.TinyCloud(cloud, func(p cpitest.Process) cpi.Backend {
			backend := cloud.Backend(p.Cluster)
			backend.Balancer = nil
			return backend
		})
		c.Balancers = nil
		return c
	})
}

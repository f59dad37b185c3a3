// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"

	. "github.com/onsi/ginkgo/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A suite is the simulated site of all specs, with its management cluster.
type suite struct {
	*simsite.Site
	*framework.ManagementCluster
}

func startSuite(ctx context.Context, dir string) (suite, error) {
	s, err := simsite.Start(ctx, dir, tenant())
	if err != nil {
		return suite{}, err
	}
	w, err := s.NewManagementCluster(ctx, framework.Options{
		Dir: "management",
		Out: GinkgoWriter,
		Variables: map[string]string{
			"EXP_MACHINE_TAINT_PROPAGATION": "true", // One of the specs taints Machines.
			"EXP_RUNTIME_SDK":               "true", // Another one updates machines in place.
			"EXP_IN_PLACE_UPDATES":          "true",
		},
	})
	if err != nil {
		return suite{}, errors.Join(err, s.Close())
	}
	return suite{Site: s, ManagementCluster: w}, nil
}

// tenant returns the default tenant of the simulator with additional templates, which have the initial Kubernetes
// versions of upgrades.
func tenant() vcdsim.Model {
	model := vcdsim.K8sTenant()
	catalog := &model.Orgs[1].Catalogs[0]
	for _, version := range []string{upgradeFrom, chainFrom} {
		old := catalog.Templates[0]
		old.Name = simsite.TemplateName(version)
		old.KubernetesVersion = version
		old.VMs = slices.Clone(old.VMs)
		old.VMs[0].Name = old.Name
		catalog.Templates = append(catalog.Templates, old)
	}
	return model
}

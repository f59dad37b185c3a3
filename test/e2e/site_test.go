package e2e

import (
	"context"
	"errors"
	"slices"

	. "github.com/onsi/ginkgo/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/site"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/world"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// suite is the site of all specs and its management cluster.
type suite struct {
	*site.Site
	*world.World
}

func startSuite(ctx context.Context, dir string) (suite, error) {
	s, err := site.Start(ctx, dir, tenant())
	if err != nil {
		return suite{}, err
	}
	w, err := s.NewWorld(ctx, world.Options{
		Dir: "world", Out: GinkgoWriter,
		Variables: map[string]string{"EXP_MACHINE_TAINT_PROPAGATION": "true"}, // One of the specs taints Machines.
	})
	if err != nil {
		return suite{}, errors.Join(err, s.Close())
	}
	return suite{Site: s, World: w}, nil
}

// tenant is the simulator's usual one with a second template, which has the Kubernetes version that upgrades start from.
func tenant() vcdsim.Model {
	model := vcdsim.K8sTenant()
	catalog := &model.Orgs[1].Catalogs[0]
	old := catalog.Templates[0]
	old.Name, old.KubernetesVersion = site.TemplateName(upgradeFrom), upgradeFrom
	old.VMs = slices.Clone(old.VMs)
	old.VMs[0].Name = old.Name
	catalog.Templates = append(catalog.Templates, old)
	return model
}

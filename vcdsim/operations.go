// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/catalogs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/network"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/orgs"
)

// operations returns every operation by its key.
func operations() map[string]cloud.Operation {
	out := map[string]cloud.Operation{cloud.OpDone: cloud.NewOperation("jobEnqueue", "Updating", 0, cloud.Nothing)}
	for _, of := range []map[string]cloud.Operation{
		machines.Operations(),
		catalogs.Operations(),
		orgs.Operations(),
		entities.Operations(),
		network.Operations(),
		gateways.Operations(),
		documents.Operations(collections()),
		documents.SettingOperations(settings()),
	} {
		maps.Copy(out, of)
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/loadbalancing"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/network"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// collections returns all collections.
func collections() []*documents.Collection {
	return slices.Concat(access.RoleCollections(), documents.LibraryCollections(), entities.TypeCollections(),
		vdcs.Collections(), namedCollections())
}

// namedCollections returns the collections whose documents fault rules can name.
func namedCollections() []*documents.Collection {
	return slices.Concat(network.Collections(), gateways.Collections(), firewalls.Collections(), loadbalancing.Collections())
}

// settings returns all settings.
func settings() []*documents.Setting {
	return slices.Concat(network.Settings(), gateways.Settings(), firewalls.Settings(), loadbalancing.Settings())
}

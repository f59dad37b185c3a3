// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"

// inspectPage is the number of objects in one page of a list.
const inspectPage = 200

// A guest is a workload cluster that may contain another cloud controller manager.
type guest struct{ *addon.Guest }

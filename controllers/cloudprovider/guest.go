// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"

// inspectPage is how many objects of a workload cluster are held at once.
const inspectPage = 200

// A guest is a workload cluster in which there may be another cloud controller manager.
type guest struct{ *addon.Guest }

// SPDX-License-Identifier: Apache-2.0

package vcd

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"

// httpPolicyPath leads to the HTTP policy of a virtual service, under the path of the service.
const httpPolicyPath = "/httpPolicy/"

// httpPolicyAPI is the first version with HTTP policies, that of VCD 10.5.0.
var httpPolicyAPI = transport.Version{Major: 38, Minor: 0}

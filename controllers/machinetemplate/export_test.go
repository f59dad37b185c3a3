// SPDX-License-Identifier: Apache-2.0

package machinetemplate

// Helpers for package machinetemplate_test. The tests are external because controllertest imports this package.
const (
	CapacityAge  = capacityAge
	ClusterRetry = clusterRetry
)

// SPDX-License-Identifier: Apache-2.0

package machinetemplate

// What the tests of package machinetemplate_test need. They are outside because controllertest imports this package.
const (
	CapacityAge  = capacityAge
	ClusterRetry = clusterRetry
)

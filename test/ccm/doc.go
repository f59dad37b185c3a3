// SPDX-License-Identifier: Apache-2.0

// Package ccm tests the released cloud controller manager: it runs the program as a process with the permissions in its
// manifest, including Kubernetes' service, node and node lifecycle controllers, against a real API server and a
// simulated cloud. The scenarios only use the interface cloud, so each backend runs the same tests: VMware Cloud
// Director with vcdsim, and, in TestOtherClouds, Apache CloudStack with its simulator and vSphere with govmomi's
// simulator. A scenario that needs a feature that the cloud lacks is skipped, with the reason.
//
// Scenarios check the state that users see: the Service or the Node, and the backends that clients of a load balancer
// would reach. At the end of each, no resources may be left in the cloud. The other tests measure cost and memory, and
// check that the program survives crashes and faults.
package ccm

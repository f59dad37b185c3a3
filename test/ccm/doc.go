// SPDX-License-Identifier: Apache-2.0

// Package ccm tests the embedded cloud controller manager as it is shipped: its program as a process, with the
// permissions of its manifest, the real service, node and node lifecycle controllers in it, a real API server, and a
// cloud. The scenarios do not depend on a specific cloud. They use the interface cloud, so that each backend runs the
// same tests. The first backend is VMware Cloud Director, with its simulator. TestOtherClouds runs the scenarios for
// Apache CloudStack, with its simulator, and for vSphere, with the simulator of govmomi. A scenario that needs a
// feature that the cloud lacks is skipped, with the reason.
//
// Scenarios check what users see: the Service or the Node, and what clients of a load balancer would reach. Each ends
// with no resources left in the cloud. The other tests measure cost and memory, and check that the program survives
// crashes and faults.
package ccm

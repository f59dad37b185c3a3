// SPDX-License-Identifier: Apache-2.0

// Package ccm tests the embedded cloud controller manager as it is shipped: its program as a process, with the rights
// of its manifest, the real service, node and node lifecycle controllers in it, a real API server, and a cloud. Nothing
// in the scenarios knows which cloud that is: what they need of one is the interface cloud, so that each backend can be
// put to the same test. The first is VMware Cloud Director, by its simulator; TestOtherClouds has Apache CloudStack, by
// its simulator, and vSphere, by govmomi's. What a cloud lacks is skipped, with the reason.
//
// Scenarios check what users see: the Service or the Node, and what clients of a load balancer would reach. Each ends
// with nothing left of it in the cloud. Tests of what it costs, how it survives crashes and faults, and how much memory
// it takes follow.
package ccm

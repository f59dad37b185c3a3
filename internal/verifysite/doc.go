// SPDX-License-Identifier: Apache-2.0

// Package verifysite finds out which way the assumptions of the simulator vcdsim are on a live VMware Cloud Director:
// one table lists each assumption with a probe, or with the reason why it has none. Probes create small objects of their
// own, marked by the request that creates them, and remove nothing but what carries the mark of a run. Results leave the
// package as values and sentences of closed lists, so that a report has no names, addresses or ids of the site. The
// package does not know the simulator.
package verifysite

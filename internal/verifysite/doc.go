// SPDX-License-Identifier: Apache-2.0

// Package verifysite verifies the assumptions of the simulator vcdsim at a live VMware Cloud Director. One table lists
// each assumption with a probe, or with the reason why it has none. Probes create small objects, marked by the request
// that creates them, and remove only objects with the marker of a run. Results are values and sentences of closed lists,
// so a report contains no names, addresses or IDs of the site. The package does not depend on the simulator.
package verifysite

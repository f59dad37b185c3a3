// SPDX-License-Identifier: Apache-2.0

// Package soak lets many clients work at random on one simulator at once. Once all have deleted what they made, the
// simulator must be as it was before. A client is a file, or a few, behind the interface client:
//
//   - sdk: VMware's Go client
//   - manager, ccm: this project's own client, and its load balancers
//   - capvcd, cpi, csi: what VMware's CAPVCD, cloud provider and CSI driver do, by the client that they share
//
// Each lists what it makes, how that is changed, and which errors others may cause. What the simulator refused meanwhile,
// and the shape of all that goes over the wire, is checked in answers_test.go. Terraform is no client here: each of its
// changes is several processes, and test/terraform runs them.
//
//	go test ./soak                              # 20 seconds
//	go test ./soak -duration=1h -seed=7         # make sim-soak DURATION=1h SEED=7
package soak

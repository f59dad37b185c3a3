// SPDX-License-Identifier: Apache-2.0

// Package soak runs many clients with random operations on one simulator at the same time. After all clients have
// deleted their objects, the simulator must have the same state as before. Each client implements the interface client,
// in one file or a few:
//   - sdk: VMware's Go client
//   - manager, ccm: this project's own client, and its load balancers
//   - capvcd, cpi, csi: the operations of VMware's CAPVCD, cloud provider and CSI driver, through the client that they
//     share
//
// Each client lists the objects that it creates, how they change, and which errors other clients may cause.
// answers_test.go checks the requests that the simulator refused, and the format of everything that was sent over the
// wire. Terraform is not a client here: each of its changes needs several processes, and test/terraform runs them.
//
//	go test ./soak                              # 20 seconds
//	go test ./soak -duration=1h -seed=7         # make sim-soak DURATION=1h SEED=7
package soak

// SPDX-License-Identifier: Apache-2.0

// Package soak runs many clients with random operations against one simulator concurrently. After all clients have
// deleted their objects, the simulator must have the same state as before. Each client implements the interface client
// in one or more files:
//   - sdk: VMware's Go client
//   - manager, ccm: this project's own client, and its load balancers
//   - capvcd, cpi, csi: the operations of VMware's CAPVCD, cloud provider and CSI driver, through their shared client
//
// Each client defines the objects that it creates, their changes, and the errors that other clients may cause.
// responses_test.go checks the requests that the simulator refused, and the format of all traffic. Terraform is not a
// client here, because each of its changes needs several processes. test/terraform runs them.
//
//	go test ./soak                              # 20 seconds
//	go test ./soak -duration=1h -seed=7         # make sim-soak DURATION=1h SEED=7
package soak

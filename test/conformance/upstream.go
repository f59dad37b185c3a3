// SPDX-License-Identifier: Apache-2.0

// Package conformance runs the tests that VMware wrote for its own clients of Cloud Director against vcdsim. They are
// independent of the simulator's authors: they record what the authors of the clients saw real Cloud Directors do.
//
// The tests are compiled from the Go module cache, unmodified. govcd-must-pass.txt and cpi-must-pass.txt name those
// that pass; they are required to, and the lists only grow. A skipped test has not passed, and a test of the first list
// that made no request to the simulator has not either. The client of v2.26.2 has 494 functional tests, the cloud
// provider 29.
//
// All that goes over the wire meanwhile is held to what VMware published: package wire.
//
//	go test .                     # the lists
//	go test . -args -all          # every test; lists those that pass and are not listed
//	go test . -args -all -update  # and adds those to the lists
//
// With -only <expression> the tests of that name run, and -report <directory> keeps what each printed.
package conformance

import (
	// What is imported here for its tests alone keeps its place in go.mod.
	_ "github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
	_ "github.com/vmware/go-vcloud-director/v2/govcd" //nolint:depguard // for its tests alone
)

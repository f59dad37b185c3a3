// SPDX-License-Identifier: Apache-2.0

// Package conformance runs the tests of VMware's Cloud Director clients against vcdsim. These tests are independent of
// the simulator's authors: they encode behavior that the authors of the clients observed in real Cloud Directors.
//
// The tests are compiled from the Go module cache without modification. govcd-must-pass.txt and cpi-must-pass.txt list
// the tests that must pass; the lists only grow. A skipped test does not count as passed, nor does a test in the first
// list that sent no request to the simulator. Version v2.26.2 of the client has 494 functional tests, and the cloud
// provider has 29.
//
// Package wire compares all traffic of the tests with the formats that VMware published.
//
//	go test .                     # run the listed tests
//	go test . -args -all          # run all tests; report those that pass and are not listed
//	go test . -args -all -update  # also add them to the lists
//
// With -only <expression>, only tests with matching names run. -report <directory> saves the output of each test.
package conformance

import (
	// These imports keep modules that only the tests use in go.mod.
	_ "github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
	_ "github.com/vmware/go-vcloud-director/v2/govcd" //nolint:depguard // for its tests alone
)

// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A client is a program that talks to VCD. A worker makes it work at random.
type client interface {
	// login opens the sessions of the client, and logout ends them.
	login() error
	logout() error
	// kinds returns the kinds of things that the client can create.
	kinds() []kind
	// expected reports whether other clients may cause an error, such as that an object is busy.
	expected(err error) bool
}

// An assignment has the data with which a client works.
type assignment struct {
	sim    *vcdsim.Simulator
	number int // of all clients of its kind
	rng    *rand.Rand
}

// A program is a kind of client.
type program struct {
	name    string // also the prefix of the names of things
	workers int    // how many work in parallel
	create  func(a assignment) (client, error)
}

// programs are all clients that work in parallel. Each has its own range of addresses if it chooses some itself.
var programs = []program{
	{name: "sdk", workers: 8, create: newSDK},
	{name: "manager", workers: 3, create: newManager},
	{name: "ccm", workers: 3, create: newCCM},
	{name: "capvcd", workers: 2, create: newCAPVCD},
	{name: "cpi", workers: 2, create: newCPI},
	{name: "csi", workers: 2, create: newCSI},
}

// A kind is a kind of thing with a function that creates it. The function first registers how to remove a partially
// created thing.
type kind struct {
	name   string
	alone  bool // a worker has at most one
	create func(t *thing) error
}

// A thing is an object that a client created.
type thing struct {
	kind    string
	number  int // of all things of its worker
	name    string
	changes []change
	remove  func() error
}

// A change is one way to change a thing.
type change struct {
	name string
	do   func() error
}

// text returns a random text.
func text(rng *rand.Rand) string { return fmt.Sprintf("text %d", rng.IntN(1000)) }

// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A client is a program that talks to VCD. A worker lets it work at random.
type client interface {
	// login opens the sessions of the client, and logout ends them.
	login() error
	logout() error
	// kinds are the things that the client can make.
	kinds() []kind
	// expected reports whether an error is one that other clients cause, such as that something is busy.
	expected(err error) bool
}

// An assignment is what a client gets to work with.
type assignment struct {
	sim    *vcdsim.Simulator
	number int // of all clients of its kind
	rng    *rand.Rand
}

// A program is a kind of client.
type program struct {
	name    string // which the names of things begin with, too
	workers int    // how many work at once
	create  func(a assignment) (client, error)
}

// programs are all clients that work at once. Each has addresses of its own where it chooses some itself.
var programs = []program{
	{name: "sdk", workers: 8, create: newSDK},
	{name: "manager", workers: 3, create: newManager},
	{name: "ccm", workers: 3, create: newCCM},
	{name: "capvcd", workers: 2, create: newCAPVCD},
	{name: "cpi", workers: 2, create: newCPI},
	{name: "csi", workers: 2, create: newCSI},
}

// A kind is a kind of thing: how it is made. Its creation says first how to remove what there may be of it.
type kind struct {
	name   string
	alone  bool // a worker has one at most
	create func(t *thing) error
}

// A thing is something that a client made.
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

// text is some text.
func text(rng *rand.Rand) string { return fmt.Sprintf("text %d", rng.IntN(1000)) }

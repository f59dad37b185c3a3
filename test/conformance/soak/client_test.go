// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A client is a program that uses VCD. A worker calls it with random operations.
type client interface {
	// login opens the sessions of the client. logout ends them.
	login() error
	logout() error
	// kinds returns the kinds of objects that the client can create.
	kinds() []kind
	// expected reports whether other clients may cause an error, such as that an object is busy.
	expected(err error) bool
}

// An assignment contains the parameters of a client.
type assignment struct {
	sim    *vcdsim.Simulator
	number int // index among the clients of the same program
	rng    *rand.Rand
}

// A program is a kind of client.
type program struct {
	name    string // also the prefix of the names of objects
	workers int    // number of clients that run in parallel
	create  func(a assignment) (client, error)
}

// programs lists all clients, which run in parallel. Clients that choose addresses use separate ranges.
var programs = []program{
	{name: "sdk", workers: 8, create: newSDK},
	{name: "manager", workers: 3, create: newManager},
	{name: "ccm", workers: 3, create: newCCM},
	{name: "capvcd", workers: 2, create: newCAPVCD},
	{name: "cpi", workers: 2, create: newCPI},
	{name: "csi", workers: 2, create: newCSI},
}

// A kind is a kind of object. create sets the remove function of the object before it creates anything, so that a
// partially created object can be removed.
type kind struct {
	name   string
	single bool // a worker has at most one at a time
	create func(t *object) error
}

// An object is an object in VCD that a client created.
type object struct {
	kind    string
	number  int // index among the objects of its worker
	name    string
	changes []change
	remove  func() error
}

// A change changes an object in one way. Its name precedes the kind of the object in logs.
type change struct {
	name string
	do   func() error
}

// text returns a random text.
func text(rng *rand.Rand) string { return fmt.Sprintf("text %d", rng.IntN(1000)) }

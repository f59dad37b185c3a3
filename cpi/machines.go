// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Machines are the machines of the cluster, as a backend knows them.
type Machines interface {
	// Snapshot returns all machines of the cluster, as they were at most maxAge ago: all of them, or an error. With an
	// [IncompleteError] it returns those of the parts of the cloud that did answer.
	Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error)
	// Get reads one machine in full, by its provider ID. It fails with an [AbsenceError] if the cloud does not show it.
	Get(ctx context.Context, providerID string) (Machine, error)
}

// An AbsenceError means that the cloud does not show a machine; the evidence is what it showed instead.
type AbsenceError struct{ Evidence gone.Evidence }

// Error implements error.
func (e *AbsenceError) Error() string { return "the machine is not visible in the cloud" }

// An ElsewhereError means that a machine has left what is read, and runs on: its Node stays.
type ElsewhereError struct{ Message string }

// Error implements error.
func (e *ElsewhereError) Error() string { return e.Message }

// An IncompleteError means that a part of the cloud did not answer. What is shown exists; nothing else is known.
type IncompleteError struct{ Err error }

// Error implements error.
func (e *IncompleteError) Error() string { return e.Err.Error() }

// Unwrap returns why the part did not answer.
func (e *IncompleteError) Unwrap() error { return e.Err }

// A Machine is a machine as its cloud sees it.
type Machine struct {
	ProviderID string // in the form that is written on Nodes
	Name       string
	// Hostnames are further names that its Node may have, without regard to case.
	Hostnames []string
	// SystemUUIDs are those that its kernel may report. Provider IDs may have them, too.
	SystemUUIDs []string
	Power       Power
	NICs        []NIC
	// Complete means that NICs has all of them. Otherwise it has those of the snapshot, and Get returns the others.
	Complete bool
	// Doubtful means that the machine may be another cluster's: it was found by what others may have, too. Get is
	// certain.
	Doubtful bool
	// Revision changes when what Get returns may have changed.
	Revision string

	Type   string            // of instance; empty: none
	Zone   string            // empty: none
	Region string            // empty: none
	Labels map[string]string // further labels for the Node

	// Addresses of the Node, where the backend chooses them. Otherwise [AddressPolicy] does.
	Addresses []corev1.NodeAddress
	// Notices are what is wrong with the machine, for users: events on its Node.
	Notices []loadbalancer.Finding
	// Unready is why its Node cannot be initialized yet; nil: it can.
	Unready error
}

// A NIC is a network interface of a machine.
type NIC struct {
	Index     int
	Network   string
	Primary   bool
	Addresses []netip.Addr
}

// Power is whether a machine runs.
type Power string

// Powers.
const (
	PowerOn      Power = "on"
	PowerOff     Power = "off"     // suspended too
	PowerUnknown Power = "unknown" // in between, or in an unknown state
)

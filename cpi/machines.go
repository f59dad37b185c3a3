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

// Machines reads the machines of the cluster from a cloud.
type Machines interface {
	// Snapshot returns all machines of the cluster, with data that is at most maxAge old. An incomplete result is an
	// error. With an [IncompleteError] it returns the machines of those parts of the cloud that responded.
	Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error)
	// Get reads all data of one machine, by its provider ID. It fails with an [AbsenceError] if the cloud does not show
	// it.
	Get(ctx context.Context, providerID string) (Machine, error)
}

// An AbsenceError means that the cloud does not show a machine. The evidence is the result of the requests for it.
type AbsenceError struct{ Evidence gone.Evidence }

// Error implements error.
func (e *AbsenceError) Error() string { return "the machine is not visible in the cloud" }

// An ElsewhereError means that a machine left the parts of the cloud that are read, and still runs. Its Node is kept.
type ElsewhereError struct{ Message string }

// Error implements error.
func (e *ElsewhereError) Error() string { return e.Message }

// An IncompleteError means that a part of the cloud did not respond. The returned machines exist; others may exist too.
type IncompleteError struct{ Err error }

// Error implements error.
func (e *IncompleteError) Error() string { return e.Err.Error() }

// Unwrap returns the reason why the part did not respond.
func (e *IncompleteError) Unwrap() error { return e.Err }

// A Machine is the state of a machine in its cloud.
type Machine struct {
	ProviderID string // in the form that is written on Nodes
	Name       string
	// Hostnames are further names that its Node may have. Case is ignored.
	Hostnames []string
	// SystemUUIDs are the UUIDs that its kernel may report. Provider IDs may also contain them.
	SystemUUIDs []string
	Power       Power
	NICs        []NIC
	// Complete means that NICs contains all NICs. Otherwise it contains those of the snapshot, and Get returns all.
	Complete bool
	// Doubtful means that the machine may belong to another cluster, because it was found by a property that machines
	// of other clusters may also have. Get returns a definite result.
	Doubtful bool
	// Revision changes if the result of Get may have changed.
	Revision string

	Type   string            // instance type; empty: none
	Zone   string            // empty: none
	Region string            // empty: none
	Labels map[string]string // further labels for the Node

	// Addresses of the Node, if the backend chooses them. Otherwise [AddressPolicy] selects them.
	Addresses []corev1.NodeAddress
	// Notices are problems of the machine, for users. They become events of its Node.
	Notices []loadbalancer.Finding
	// Unready is the reason why its Node cannot be initialized yet; nil if it can.
	Unready error
}

// A NIC is a network interface of a machine.
type NIC struct {
	Index     int
	Network   string
	Primary   bool
	Addresses []netip.Addr
}

// Power is the power state of a machine.
type Power string

// Power states.
const (
	PowerOn      Power = "on"
	PowerOff     Power = "off"     // also suspended
	PowerUnknown Power = "unknown" // in transition, or in an unknown state
)

package cpi

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Machines is what a backend knows of the machines of the cluster.
type Machines interface {
	// Snapshot returns all machines of the cluster, as they were at most maxAge ago: all of them, or an error.
	Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error)
	// Get returns one machine with all that is known of it, by its provider ID; it asks the cloud. It fails with [ErrGone] if
	// the cloud shows everything that must be there but this machine, and with [ErrUnknown] if it may only be that we are not
	// shown it. Whoever removes something because of ErrGone looks twice, a minute apart.
	Get(ctx context.Context, providerID string) (Machine, error)
}

var (
	// ErrGone means that a machine is not there, as far as one look can tell.
	ErrGone = errors.New("gone")
	// ErrUnknown means that a machine is not seen, which proves nothing.
	ErrUnknown = errors.New("not seen, which proves nothing")
)

// A Machine is a machine as its cloud sees it.
type Machine struct {
	ProviderID string // in the form that is written on Nodes
	Name       string
	Power      Power
	NICs       []NIC
	// Complete says that NICs holds all of them. Otherwise it holds what the snapshot tells, and Get tells the others.
	Complete bool
	// Doubtful says that the machine may be another cluster's: it was found by what others may have, too. Get knows.
	Doubtful bool
	// Revision changes when what Get tells may have changed.
	Revision string

	Type   string            // of instance; empty: none
	Zone   string            // empty: none
	Region string            // empty: none
	Labels map[string]string // further labels for the Node
}

// A NIC is a network interface of a machine.
type NIC struct {
	Index     int
	Network   string
	Primary   bool
	Addresses []netip.Addr
}

// Power says whether a machine runs.
type Power string

// Powers.
const (
	PowerOn      Power = "on"
	PowerOff     Power = "off"     // suspended too
	PowerUnknown Power = "unknown" // in between, or in a state that nobody knows
)

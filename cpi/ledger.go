package cpi

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// A Ledger keeps a record of load balancers outside Kubernetes. It is told, never asked: it neither waits nor fails.
type Ledger interface {
	// Note tells what stands for an owner after something was done, or tried.
	Note(Entry)
}

// An Entry is what a [Ledger] is told.
type Entry struct {
	Owner     lb.Owner
	Operation Operation
	Objects   []lb.ObjectStatus // that stand; unknown if Err is set
	Addresses []netip.Addr
	Err       error // why it was not done
}

// An Operation is what was done to a load balancer.
type Operation string

// Operations on load balancers.
const (
	Created Operation = "Create"
	Updated Operation = "Update"
	Deleted Operation = "Delete"
	Read    Operation = "Get"
)

// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/frontend"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/guests"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
)

// Clock is the simulator's time.
type Clock = clock.Clock

// A SimClock is a clock that runs at any speed, and can be moved.
type SimClock = clock.SimClock

// NewClock returns a clock that starts now and runs at a rate: 1 is real time.
func NewClock(rate float64) *SimClock { return clock.NewClock(rate) }

// NewManualClock returns a clock that stands still until it is moved.
func NewManualClock(start time.Time) *SimClock { return clock.NewManualClock(start) }

// A Profile sets how long things take. Scale multiplies every latency; 0 makes everything immediate.
type Profile = cloud.Profile

// The profiles: Recorded is what real VCDs were seen to take, Fast a tenth of it, Instant nothing at all, so that a
// task is done before its first GET.
var (
	Instant  = cloud.Instant
	Fast     = cloud.Fast
	Recorded = cloud.Recorded
)

// ProfileByName returns a profile by its name.
func ProfileByName(name string) (Profile, bool) { return cloud.ProfileByName(name) }

// Assumptions are what could not be verified on a real VCD, one field each.
type Assumptions = cloud.Assumptions

// DefaultAssumptions are what is most probable.
func DefaultAssumptions() Assumptions { return cloud.DefaultAssumptions() }

// A Version is a release of VCD, named by its highest API version.
type Version = cells.Version

// The releases that are simulated.
const (
	Version103  = cells.Version103
	Version1042 = cells.Version1042
	Version104  = cells.Version104
	Version105  = cells.Version105
	Version106  = cells.Version106
)

// A Cell is one server of the site. All cells have the same database; each has its own API versions, certificate and
// faults.
type Cell = cells.Cell

// A CellStatus is the state of a cell.
type CellStatus = cells.CellStatus

// A Fault is a rule: what it matches, how often, and what happens.
type Fault = faults.Fault

// Faults are the rules of a simulator, asked in order; the first that applies wins.
type Faults = faults.Faults

// BusyText is one of the two texts of BUSY_ENTITY.
type BusyText = faults.BusyText

// The texts of BUSY_ENTITY.
const (
	BusyTenant   = faults.BusyTenant
	BusyProvider = faults.BusyProvider
)

// BodyKind is the format of a fault's answer; "" is an error as the API that was called writes it.
type BodyKind = faults.BodyKind

// Kinds of bodies: what VCD writes, and what stands between it and its callers.
const (
	BodyXML     = faults.BodyXML
	BodyJSON    = faults.BodyJSON
	BodyHTML    = faults.BodyHTML
	BodyEmpty   = faults.BodyEmpty
	BodyNothing = faults.BodyNothing
)

// A Request is an entry of the request log.
type Request = journal.Request

// An Exchange is a request with its answer, as they went over the wire. A request that a fault rule answered, or whose
// connection it dropped, is none.
type Exchange = frontend.Exchange

// A Moment is when a Gate is called for a request.
type Moment = frontend.Moment

// The moments of a request.
const (
	Arrived = frontend.Arrived
	Worked  = frontend.Worked
)

// A Gate is called for every request except those of the control API, at both moments, without the simulator's lock and
// from the request's own goroutine: the request waits until it returns. If it returns false, the connection is closed
// without an answer. ctx ends when the client goes away.
type Gate = frontend.Gate

// A Guest is what runs inside the VMs. It is called without the simulator's lock, from goroutines of its own.
type Guest = guests.Guest

// A PowerGuest is a Guest with more of a machine than on and off.
type PowerGuest = guests.PowerGuest

// A GuestHost is what a guest reports to while its VM is on.
type GuestHost = guests.GuestHost

// A GuestVM is a VM as its guest sees it.
type GuestVM = guests.GuestVM

// A GuestNIC is a network card with what is on its wire.
type GuestNIC = guests.GuestNIC

// A GuestDisk is an independent disk that is attached to the VM.
type GuestDisk = guests.GuestDisk

// A GuestReport is what VMware Tools report of a guest.
type GuestReport = guests.GuestReport

// RightsOfCloudProvider are the rights of the role RoleCloudProvider.
func RightsOfCloudProvider() []string { return access.RightsOfCloudProvider() }

// KubernetesBundle are the rights that a provider publishes to organizations that run Kubernetes.
func KubernetesBundle() []string { return access.KubernetesBundle() }

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

// A SimClock is a clock that runs at any speed and can be moved.
type SimClock = clock.SimClock

// NewClock returns a clock that starts now and runs at the given rate; 1 is real time.
func NewClock(rate float64) *SimClock { return clock.NewClock(rate) }

// NewManualClock returns a clock that stands still until a caller moves it.
func NewManualClock(start time.Time) *SimClock { return clock.NewManualClock(start) }

// A Profile sets the duration of operations. Scale multiplies every latency; 0 means that every operation is
// immediate.
type Profile = cloud.Profile

// The profiles. Recorded uses durations that were observed at real VCDs, and Fast a tenth of these. With Instant,
// operations take no time: a task is done before its first GET.
var (
	Instant  = cloud.Instant
	Fast     = cloud.Fast
	Recorded = cloud.Recorded
)

// ProfileByName returns a profile by its name.
func ProfileByName(name string) (Profile, bool) { return cloud.ProfileByName(name) }

// Assumptions are the details of VCD that could not be verified on a real VCD, one per field.
type Assumptions = cloud.Assumptions

// DefaultAssumptions returns the most probable assumptions.
func DefaultAssumptions() Assumptions { return cloud.DefaultAssumptions() }

// A Version is a release of VCD, named by its highest API version.
type Version = cells.Version

// The simulated releases.
const (
	Version103  = cells.Version103
	Version1042 = cells.Version1042
	Version104  = cells.Version104
	Version105  = cells.Version105
	Version106  = cells.Version106
)

// A Cell is one server of the site. All cells share one database. Each has its own API versions, certificate and
// faults.
type Cell = cells.Cell

// A CellStatus is the state of a cell.
type CellStatus = cells.CellStatus

// A Fault is a rule: the requests that it matches, how often it applies, and its effect.
type Fault = faults.Fault

// Faults are the rules of a simulator, evaluated in order. The first rule that applies wins.
type Faults = faults.Faults

// BusyText is one of the two texts of BUSY_ENTITY.
type BusyText = faults.BusyText

// The texts of BUSY_ENTITY.
const (
	BusyTenant   = faults.BusyTenant
	BusyProvider = faults.BusyProvider
)

// A BodyKind is the format of a fault's response. "" is an error in the format of the API that was called.
type BodyKind = faults.BodyKind

// Kinds of bodies: those of VCD, and those of proxies between VCD and its clients.
const (
	BodyXML     = faults.BodyXML
	BodyJSON    = faults.BodyJSON
	BodyHTML    = faults.BodyHTML
	BodyEmpty   = faults.BodyEmpty
	BodyNothing = faults.BodyNothing
)

// A Request is an entry of the request log.
type Request = journal.Request

// An Exchange is a request with its response, as sent over the wire. Requests that a fault rule answers or whose
// connection it drops are not exchanges.
type Exchange = frontend.Exchange

// A Moment is a point in the handling of a request at which a Gate is called.
type Moment = frontend.Moment

// The moments of a request.
const (
	Arrived = frontend.Arrived
	Worked  = frontend.Worked
)

// A Gate is called for every request except those of the control API, at both moments. It runs without the
// simulator's lock, in the goroutine of the request, which waits until the gate returns. If it returns false, the
// connection is closed without a response. ctx ends when the client disconnects.
type Gate = frontend.Gate

// A Guest simulates the software inside the VMs. It is called without the simulator's lock, from separate goroutines.
type Guest = guests.Guest

// A PowerGuest is a Guest with more power operations than on and off.
type PowerGuest = guests.PowerGuest

// A GuestHost receives the reports of a guest while its VM is on.
type GuestHost = guests.GuestHost

// A GuestVM is a VM as its guest sees it.
type GuestVM = guests.GuestVM

// A GuestNIC is a network card and the network that it is connected to.
type GuestNIC = guests.GuestNIC

// A GuestDisk is an independent disk that is attached to the VM.
type GuestDisk = guests.GuestDisk

// A GuestReport contains what VMware Tools reports about a guest.
type GuestReport = guests.GuestReport

// RightsOfCloudProvider returns the rights of the role RoleCloudProvider.
func RightsOfCloudProvider() []string { return access.RightsOfCloudProvider() }

// KubernetesBundle returns the rights that a provider publishes to organizations that run Kubernetes.
func KubernetesBundle() []string { return access.KubernetesBundle() }

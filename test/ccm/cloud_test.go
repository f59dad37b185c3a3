// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

// A cloud has the methods that the suite needs. Each fixture has a separate cloud, and all clouds have the same
// machines.
type cloud interface {
	program
	compute
	loadBalancing
	wire
	// close stops the cloud.
	close() error
}

// A program configures how the cloud controller manager runs on a cloud.
type program interface {
	// files returns the files that the program reads, keyed by their paths below its folder. The configuration contains
	// the given settings in addition to the defaults of the cloud. config is the path for --cloud-config.
	files(s settings) (config string, files map[string]string, err error)
	// secret returns the data of the Secret that the program reads from the API server. nil means no Secret.
	secret() map[string]string
	// manifest returns the manifest that users apply.
	manifest() addons.Cloud
	// lacks returns the missing capabilities of the cloud, with the reasons.
	lacks() map[capability]string
}

// A capability is a feature that some scenarios need and some clouds lack.
type capability string

// Capabilities.
const (
	balancers    capability = "load balancers"
	healthChecks capability = "health checks of members"
)

// settings are values of the configuration, keyed by paths such as loadbalancer.class.
type settings map[string]any

// or returns a setting, or the given default if it is not set.
func (s settings) or(key, otherwise string) any {
	if value, is := s[key]; is {
		return value
	}
	return otherwise
}

// A compute manages the machines of a cloud.
type compute interface {
	machines() []machine
	powerOff(name string)
	powerOn(name string)
	// remove removes a machine.
	remove(name string)
	// readdress changes the address of a machine.
	readdress(name string, to netip.Addr)
}

// A machine is a machine of a cloud, with the data that its kubelet reports.
type machine struct {
	Name, ProviderID string
	Addresses        []netip.Addr
}

// A loadBalancing lists and breaks the load balancers of a cloud.
type loadBalancing interface {
	// frontends returns everything that clients reach, sorted. If uid is not empty, it returns only objects with the
	// marker of that owner.
	frontends(uid string) []frontend
	// leftovers returns the objects that did not exist when the cloud started, sorted. If uid is not empty, it returns
	// only objects with the marker of that owner.
	leftovers(uid string) []string
	// snapshot describes the objects with an owner's marker for comparisons: IDs and contents.
	snapshot(uid string) []string
	// deleteFrontends deletes the objects of an owner that forward traffic to the nodes, as a user would.
	deleteFrontends(t *testing.T, uid string)
	// addressAnnotation returns the annotation that requests an address.
	addressAnnotation() string
}

// A frontend is an address and port that clients reach, with its backends.
type frontend struct {
	Gateway  string
	Address  netip.Addr
	Port     int
	Protocol string
	Backends []string // address:port, sorted

	Application string
	Certificate string   // name
	Monitors    []string // names are specific to the cloud
	Sticky      bool
	Transparent bool
}

// String returns the parts that matter to clients.
func (f frontend) String() string {
	return fmt.Sprintf("%s %s -> %s", netip.AddrPortFrom(f.Address, uint16(f.Port)), f.Protocol,
		strings.Join(f.Backends, ","))
}

// A wire records the traffic between the cloud controller manager and its cloud.
type wire interface {
	// requests returns the requests since the last call of forget.
	requests() []request
	forget()
}

// A request is one call to the cloud.
type request struct {
	Operation string
	Kind      requestKind
}

// A requestKind is the purpose of a request.
type requestKind int

// Kinds of requests.
const (
	reading requestKind = iota
	writing
	waiting // for the completion of a write
	loggingIn
)

// faults injects failures into operations of the cloud.
type faults interface {
	// add makes an operation fail the given number of times.
	add(kind fault, operation string, times int)
	// pending lists the faults that have not happened yet.
	pending() []string
	clear()
}

// A fault is a kind of failure.
type fault string

// The faults of every cloud.
const (
	droppedBefore fault = "dropped before processing"
	droppedAfter  fault = "dropped after processing"
	serverError   fault = "500"
	unavailable   fault = "503 with Retry-After"
	busy          fault = "busy"
	taskFailed    fault = "task failed"
	unauthorized  fault = "401"
)

// allFaults returns all faults, grouped by symptom.
func allFaults() map[string][]fault {
	return map[string][]fault{
		"silence":  {droppedBefore, droppedAfter, unavailable}, // after which the controller sends no requests for a while
		"refusals": {serverError, busy, taskFailed, unauthorized},
	}
}

// describe returns the operations of the requests of the given kinds.
func describe(requests []request, kinds ...requestKind) []string {
	var out []string
	for _, r := range requests {
		if slices.Contains(kinds, r.Kind) {
			out = append(out, r.Operation)
		}
	}
	return out
}

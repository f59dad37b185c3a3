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

// A cloud has the methods that the suite needs. Each fixture has its own, and the machines of all are the same.
type cloud interface {
	program
	compute
	balancing
	wire
	// close stops it.
	close() error
}

// A program configures how the cloud controller manager runs on a cloud.
type program interface {
	// files returns the files that it reads, by their paths below its folder. The configuration has the settings in
	// addition to those that all clouds need. config is the path for --cloud-config.
	files(s settings) (config string, files map[string]string, err error)
	// secret returns the data that it reads from the API server, by the name in its manifest; nil for none.
	secret() map[string]string
	// manifest returns the manifest that its users apply.
	manifest() addons.Cloud
	// lacks returns the capabilities that the cloud does not have, with the reason.
	lacks() map[capability]string
}

// A capability is a feature that a scenario needs and that not every cloud has.
type capability string

// Capabilities.
const (
	balancers    capability = "load balancers"
	healthChecks capability = "health checks of members"
)

// settings are keys of the configuration, by their paths, such as loadbalancer.class.
type settings map[string]any

// or returns a setting, or otherwise a default.
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

// A machine is a machine of a cloud, with the data that its kubelet has.
type machine struct {
	Name, ProviderID string
	Addresses        []netip.Addr
}

// A balancing shows the load balancers of a cloud.
type balancing interface {
	// fronts returns everything that clients reach, sorted. If an owner is given, it returns only objects with its
	// marker.
	fronts(uid string) []front
	// left returns everything that did not exist in the beginning, sorted. If an owner is given, it returns only
	// objects with its marker.
	left(uid string) []string
	// mark describes the objects with an owner's marker for comparisons: IDs and contents.
	mark(uid string) []string
	// ruin deletes the objects that send clients to the nodes for an owner, as a user would.
	ruin(t *testing.T, uid string)
	// addressAnnotation returns the annotation that requests an address.
	addressAnnotation() string
}

// A front is an address and port that clients reach, and its backends.
type front struct {
	Gateway  string
	Address  netip.Addr
	Port     int
	Protocol string
	Backends []string // address:port, sorted

	Application string
	Certificate string   // its name
	Monitors    []string // in the terms of the cloud
	Sticky      bool
	Transparent bool
}

// String returns the parts that matter to clients.
func (f front) String() string {
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
	knocking
)

// faults are disturbances, by operation.
type faults interface {
	// add makes an operation fail the given number of times.
	add(kind fault, operation string, times int)
	// left lists the faults that did not happen.
	left() []string
	clear()
}

// A fault is a kind of disturbance.
type fault string

// The faults of every cloud.
const (
	droppedBefore fault = "dropped before the work"
	droppedAfter  fault = "dropped after the work"
	serverError   fault = "500"
	unavailable   fault = "503 with Retry-After"
	busy          fault = "busy"
	taskFailed    fault = "task failed"
	unauthorized  fault = "401"
)

// allFaults returns all faults, by symptom.
func allFaults() map[string][]fault {
	return map[string][]fault{
		"silence":  {droppedBefore, droppedAfter, unavailable}, // after which no requests are sent to a cloud for a while
		"refusals": {serverError, busy, taskFailed, unauthorized},
	}
}

// describe returns the number of requests of some kinds, by operation.
func describe(requests []request, kinds ...requestKind) []string {
	var out []string
	for _, r := range requests {
		if slices.Contains(kinds, r.Kind) {
			out = append(out, r.Operation)
		}
	}
	return out
}

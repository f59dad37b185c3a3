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

// A cloud is what the suite needs of a cloud. It is one for each fixture, and the machines of all are the same.
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
	// files are the files that it reads, by their paths below its folder; the configuration has the settings besides
	// those that all clouds need. The first of them is given to --cloud-config.
	files(s settings) (config string, files map[string]string, err error)
	// secret is what it reads from the API server, by the name in its manifest; nil: nothing.
	secret() map[string]string
	// manifest is what its users apply.
	manifest() addons.Cloud
	// lacks are the capabilities that the cloud has not, with the reason.
	lacks() map[capability]string
}

// A capability is what a scenario needs and not every cloud has.
type capability string

// Capabilities.
const (
	balancers    capability = "load balancers"
	healthChecks capability = "health checks of members"
)

// settings are keys of the configuration, by their paths, such as loadbalancer.class.
type settings map[string]any

// or returns a setting, or what it is otherwise.
func (s settings) or(key, otherwise string) any {
	if value, is := s[key]; is {
		return value
	}
	return otherwise
}

// A compute is what a cloud has of machines.
type compute interface {
	machines() []machine
	powerOff(name string)
	powerOn(name string)
	// remove removes a machine.
	remove(name string)
	// readdress gives a machine another address.
	readdress(name string, to netip.Addr)
}

// A machine is a machine of a cloud, as kubelet on it would know it.
type machine struct {
	Name, ProviderID string
	Addresses        []netip.Addr
}

// A balancing is what a cloud has of load balancers.
type balancing interface {
	// fronts are all that clients reach, sorted; of an owner, only those that are marked as its own.
	fronts(uid string) []front
	// left is everything that is there and was not in the beginning, sorted; of an owner, only what is marked as its
	// own.
	left(uid string) []string
	// mark describes the objects with an owner's marker, for comparisons: ids and contents.
	mark(uid string) []string
	// ruin deletes what sends clients to the nodes for an owner, as a person does.
	ruin(t *testing.T, uid string)
	// addressAnnotation asks for an address.
	addressAnnotation() string
}

// A front is an address and port that clients reach, and whom behind.
type front struct {
	Gateway  string
	Address  netip.Addr
	Port     int
	Protocol string
	Backends []string // address:port, sorted

	Application string
	Certificate string   // its name
	Monitors    []string // in the cloud's words
	Sticky      bool
	Transparent bool
}

// String is what matters to clients.
func (f front) String() string {
	return fmt.Sprintf("%s %s -> %s", netip.AddrPortFrom(f.Address, uint16(f.Port)), f.Protocol,
		strings.Join(f.Backends, ","))
}

// A wire is what goes between the cloud controller manager and its cloud.
type wire interface {
	// requests are those since the last call of forget.
	requests() []request
	forget()
}

// A request is one call to the cloud.
type request struct {
	Operation string
	Kind      requestKind
}

// A requestKind is what a request is for.
type requestKind int

// Kinds of requests.
const (
	reading requestKind = iota
	writing
	waiting // for what was written to be done
	knocking
)

// faults are disturbances, by operation.
type faults interface {
	// add orders one that hits an operation so many times.
	add(kind fault, operation string, times int)
	// left lists those that did not happen.
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

// allFaults are all of them, by symptom.
func allFaults() map[string][]fault {
	return map[string][]fault{
		"silence":  {droppedBefore, droppedAfter, unavailable}, // after which a cloud is left alone for a while
		"refusals": {serverError, busy, taskFailed, unauthorized},
	}
}

// describe describes how many requests of a kind there were, by operation.
func describe(requests []request, kinds ...requestKind) []string {
	var out []string
	for _, r := range requests {
		if slices.Contains(kinds, r.Kind) {
			out = append(out, r.Operation)
		}
	}
	return out
}

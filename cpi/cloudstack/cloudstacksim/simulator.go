// SPDX-License-Identifier: Apache-2.0

// Package cloudstacksim simulates Apache CloudStack: an HTTP handler that serves the commands that a cloud controller
// manager needs. It keeps state, verifies signatures, runs asynchronous jobs, rejects the requests that CloudStack
// rejects, and injects faults on demand. It shares no code with the client, so that a bug in one of them is not hidden
// by the other.
package cloudstacksim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure a [Simulator].
type Options struct {
	// Version of CloudStack, such as 4.20.1.0, the default.
	Version string
	// Latency of jobs.
	Latency time.Duration
	// PageSize is the maximum page size of a list, and the default page size, as default.page.size is; 0 means 500.
	PageSize int
	// HideFree hides free public addresses from users.
	HideFree bool
	// Before is called before each command is executed, and may change the state. Nil disables it.
	Before func(s *Simulator, command string)
	// ShowDestroyed shows destroyed virtual machines to users, as allow.user.view.destroyed.vm does.
	ShowDestroyed bool
}

// Credentials of the initial users.
const (
	UserKey     = "user-key"
	UserSecret  = "user-secret"
	AdminKey    = "root-key"
	AdminSecret = "root-secret"
)

// IDs of the initial objects.
const (
	ZoneID    = "10000000-0000-4000-8000-000000000001"
	ProjectID = "10000000-0000-4000-8000-000000000002"
	VPCID     = "10000000-0000-4000-8000-000000000003"
)

// An Object is an object in the form in which the API shows it.
type Object map[string]any

// Kinds of objects, by the keys of their lists.
const (
	VMs       = "virtualmachine"
	Networks  = "network"
	Addresses = "publicipaddress"
	Rules     = "loadbalancerrule"
	Firewalls = "firewallrule"
	ACLs      = "networkacl"
	ACLLists  = "networkacllist"
	// PortForwards are port forwarding rules of public addresses. VPNs are remote access VPNs of public addresses.
	PortForwards = "portforwardingrule"
	VPNs         = "remoteaccessvpn"
	// Policies are stickiness policies of rules.
	Policies = "stickinesspolicy"

	Zones    = "zone"
	Projects = "project"
	Events   = "event"
)

type user struct {
	secret string
	admin  bool
}

// A Simulator is a CloudStack with one zone.
type Simulator struct {
	opts Options

	mu      sync.Mutex
	users   map[string]user
	objects map[string][]Object // by kind
	members map[string][]string // IDs of VMs, by rule
	tags    map[string][]Object // by kind and ID of the object
	jobs    map[string]*job
	faults  []*Fault
	calls   []string
	next    int
	away    bool

	quarantined map[string]bool // public addresses
}

type job struct {
	done   time.Time
	status int
	result any
}

// New returns a CloudStack with a zone, a project and two users, a root administrator and a plain one.
func New(o Options) *Simulator {
	if o.Version == "" {
		o.Version = "4.20.1.0"
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	s := &Simulator{
		opts:        o,
		objects:     map[string][]Object{},
		members:     map[string][]string{},
		tags:        map[string][]Object{},
		jobs:        map[string]*job{},
		quarantined: map[string]bool{},
		users:       map[string]user{UserKey: {secret: UserSecret}, AdminKey: {AdminSecret, true}},
	}
	s.objects[Zones] = []Object{{"id": ZoneID, "name": "zone 1"}}
	s.objects[Projects] = []Object{{"id": ProjectID, "name": "shop"}}
	return s
}

// id returns a new ID.
func (s *Simulator) id() string {
	s.next++
	return fmt.Sprintf("20000000-0000-4000-8000-%012d", s.next)
}

// put adds an object. The caller holds the lock.
func (s *Simulator) put(kind string, o Object) Object {
	if o["id"] == nil {
		o["id"] = s.id()
	}
	s.objects[kind] = append(s.objects[kind], o)
	return o
}

// Add adds an object and returns its ID.
func (s *Simulator) Add(kind string, o Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.put(kind, maps.Clone(o))["id"])
}

// AddNetwork adds an isolated network. With the ID of a VPC, it adds a tier of the VPC, whose ACL list denies all
// traffic.
func (s *Simulator) AddNetwork(name, vpc string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := Object{
		"name":    name,
		"type":    "Isolated",
		"zoneid":  ZoneID,
		"service": services("Lb", "Dhcp", "Firewall", "Vpn"),
	}
	if vpc != "" {
		acls := s.put(ACLLists, Object{"name": "acl of " + name, "vpcid": vpc})
		n["vpcid"] = vpc
		n["aclid"] = acls["id"]
		n["aclname"] = acls["name"]
		n["service"] = services("Lb", "Dhcp", "NetworkACL", "Vpn")
	}
	return text(s.put(Networks, n)["id"])
}

func services(names ...string) []Object {
	var out []Object
	for _, name := range names {
		out = append(out, Object{"name": name})
	}
	return out
}

// AddVM adds a running virtual machine with a NIC in each network. The first NIC is the default one. Addresses are in
// the order of the networks.
func (s *Simulator) AddVM(name string, networks, addresses []string) string {
	var nics []Object
	for i, network := range networks {
		nics = append(nics, Object{
			"id":        "nic-" + name + fmt.Sprint(i),
			"networkid": network,
			"ipaddress": addresses[i],
			"isdefault": i == 0,
		})
	}
	return s.Add(VMs, Object{
		"name":                name,
		"displayname":         name,
		"instancename":        "i-2-" + name + "-VM",
		"hostname":            "hypervisor-1",
		"state":               "Running",
		"zoneid":              ZoneID,
		"zonename":            "zone 1",
		"serviceofferingname": "m1.large",
		"nic":                 nics,
	})
}

// AddAddresses adds free public addresses.
func (s *Simulator) AddAddresses(addresses ...string) {
	for _, a := range addresses {
		s.Add(Addresses, Object{
			"ipaddress":         a,
			"state":             "Free",
			"zoneid":            ZoneID,
			"forvirtualnetwork": true,
			"issourcenat":       false,
			"isstaticnat":       false,
			"issystem":          false,
		})
	}
}

// Allocate associates a free public address with a network, as a user would, and returns its ID.
func (s *Simulator) Allocate(address, network string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.objects[Addresses] {
		if a["ipaddress"] == address {
			s.allocate(a, s.find(Networks, network))
			return text(a["id"])
		}
	}
	return ""
}

// Rotate replaces the keys of a user.
func (s *Simulator) Rotate(key, newKey, newSecret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[newKey] = user{newSecret, s.users[key].admin}
	delete(s.users, key)
}

// Quarantine makes the association of a free public address fail, as CloudStack does since 4.19 for some time after
// another account had the address. The address lists do not show the quarantine.
func (s *Simulator) Quarantine(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quarantined[address] = true
}

// Edit calls a function for each object of a kind. The function may change the object.
func (s *Simulator) Edit(kind string, change func(Object) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects[kind] {
		change(o)
	}
}

// Delete deletes all objects of a kind for which a function returns true, as a user would.
func (s *Simulator) Delete(kind string, chosen func(Object) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[kind] = slices.DeleteFunc(s.objects[kind], chosen)
}

// Objects returns copies of all objects of a kind, with their tags.
func (s *Simulator) Objects(kind string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Object
	for _, o := range s.objects[kind] {
		out = append(out, s.shown(kind, o, true))
	}
	return out
}

// Members returns the IDs of the virtual machines that are members of a rule.
func (s *Simulator) Members(rule string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members[rule])
}

// SetMembers replaces the members of a rule, as a user would.
func (s *Simulator) SetMembers(rule string, vms ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[rule] = vms
}

// SetAway starts or ends an outage.
func (s *Simulator) SetAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// A Fault makes a call fail.
type Fault struct {
	// Command that fails; empty means any command except queryAsyncJobResult.
	Command string
	// Skip is the number of matching calls that succeed first.
	Skip int
	// Times is the number of calls that fail; 0 means one, a negative number means all.
	Times int
	// Code is the status of the response; 0 means 530.
	Code int
	// Done means that the command is executed and only its response is lost.
	Done bool
	// Comes is a public address that another client associates with the network of the request at the same time.
	Comes string
}

// Fail adds a fault.
func (s *Simulator) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Code == 0 {
		f.Code = codeInternal
	}
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Simulator) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// fault returns the fault for a call, or nil. The caller holds the lock.
func (s *Simulator) fault(command string) *Fault {
	for _, f := range s.faults {
		if f.Command != command && (f.Command != "" || command == jobCommand) || f.Times == 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Times--
		return f
	}
	return nil
}

// Calls returns the commands called since the last call of Calls, without polls of jobs.
func (s *Simulator) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// Writes returns how many of the commands change state.
func Writes(commands []string) int {
	return len(commands) - Reads(commands)
}

// Reads returns how many of the commands change no state.
func Reads(commands []string) int {
	n := 0
	for _, c := range commands {
		if strings.HasPrefix(c, "list") {
			n++
		}
	}
	return n
}

func (s *Simulator) find(kind, id string) Object {
	for _, o := range s.objects[kind] {
		if o["id"] == id {
			return o
		}
	}
	return nil
}

// text returns a value as text. It returns an empty string for nil.
func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

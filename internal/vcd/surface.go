package vcd

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var errNotYet = errors.New("not implemented yet")

// PoolOptions say how a Pool behaves; the zero value is usable.
type PoolOptions struct {
	Metrics           prometheus.Registerer // nil: no metrics
	UserAgent         string
	RequestsPerSecond float64       // per site; 0: 20
	Burst             int           // 0: 40
	TaskPoll          time.Duration // 0: 2 s
	RequestTimeout    time.Duration // per request; 0: 60 s
	LookupTTL         time.Duration // how long look-ups are remembered; 0: 10 min
	IdleTimeout       time.Duration // sessions unused for longer are logged out; 0: 30 min
	Clock             Clock         // nil: real time
}

// A Clock tells the time.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// A Pool holds the sessions of a process.
type Pool struct{}

// NewPool returns an empty pool.
func NewPool(PoolOptions) *Pool { return &Pool{} }

// Session returns the session for config, logging in if there is none.
func (p *Pool) Session(context.Context, Config) (*Session, error) { return nil, errNotYet }

// Close logs all sessions out.
func (p *Pool) Close(context.Context) error { return errNotYet }

// A Session is one login, shared by all who work with the same Config.
type Session struct{}

// Refresh forgets what look-ups remembered.
func (s *Session) Refresh() {}

// FindVDC finds a VDC of the session's organisation.
func (s *Session) FindVDC(_ context.Context, nameOrURN string) (VDC, error) { return VDC{}, errNotYet }

// FindNetwork finds a network that VMs of the VDC can be connected to.
func (s *Session) FindNetwork(_ context.Context, vdc VDC, nameOrURN string) (Network, error) {
	return Network{}, errNotYet
}

// FindTemplate finds a vApp template by catalog and name, or by URN.
func (s *Session) FindTemplate(_ context.Context, catalog, template string) (Template, error) {
	return Template{}, errNotYet
}

// FindSizingPolicy finds a VM sizing policy of the VDC.
func (s *Session) FindSizingPolicy(_ context.Context, vdc VDC, nameOrURN string) (Policy, error) {
	return Policy{}, errNotYet
}

// FindPlacementPolicy finds a VM placement policy of the VDC.
func (s *Session) FindPlacementPolicy(_ context.Context, vdc VDC, nameOrURN string) (Policy, error) {
	return Policy{}, errNotYet
}

// FindStorageProfile finds a storage profile of the VDC; the default one for the empty name.
func (s *Session) FindStorageProfile(_ context.Context, vdc VDC, nameOrURN string) (StorageProfile, error) {
	return StorageProfile{}, errNotYet
}

// VMs returns the VMs of a vApp from the inventory of its VDC, which is at most maxAge old.
func (s *Session) VMs(_ context.Context, vdc VDC, vApp string, maxAge time.Duration) ([]VMRecord, error) {
	return nil, errNotYet
}

// QueryVM looks for a VM by its URN in the whole organisation: with a failed [Session.VM] it is half the proof that
// a VM is gone.
func (s *Session) QueryVM(_ context.Context, id string) (VMRecord, error) { return VMRecord{}, errNotYet }

// Invalidate makes the next [Session.VMs] of the VDC ask VCD.
func (s *Session) Invalidate(vdc VDC) {}

// FindVApp finds a vApp of the VDC by name.
func (s *Session) FindVApp(_ context.Context, vdc VDC, name string) (VApp, error) { return VApp{}, errNotYet }

// VApp reads a vApp.
func (s *Session) VApp(_ context.Context, id string) (VApp, error) { return VApp{}, errNotYet }

// ComposeVApp starts the creation of a vApp with its first VMs. The vApp has its ID at once.
func (s *Session) ComposeVApp(_ context.Context, vdc VDC, spec VAppSpec) (VApp, Task, error) {
	return VApp{}, Task{}, errNotYet
}

// AddVMs starts adding VMs to a vApp. Their networks must be connected to the vApp.
func (s *Session) AddVMs(_ context.Context, vAppID string, vms []VMSpec) (Task, error) {
	return Task{}, errNotYet
}

// ConnectNetworks starts connecting networks to a vApp, in addition to those it has.
func (s *Session) ConnectNetworks(_ context.Context, vAppID string, networks []Ref) (Task, error) {
	return Task{}, errNotYet
}

// SetLease starts setting the leases of a vApp; 0 is never.
func (s *Session) SetLease(_ context.Context, vAppID string, runtime, storage time.Duration) (Task, error) {
	return Task{}, errNotYet
}

// DeleteVApp starts the next step of deleting a vApp: undeploying it while it is deployed, else removing it.
func (s *Session) DeleteVApp(_ context.Context, id string) (Task, error) { return Task{}, errNotYet }

// VM reads a VM.
func (s *Session) VM(_ context.Context, id string) (VM, error) { return VM{}, errNotYet }

// ReconfigureVM starts one reconfiguration of a VM.
func (s *Session) ReconfigureVM(_ context.Context, id string, change VMChange) (Task, error) {
	return Task{}, errNotYet
}

// PowerOn starts powering a VM on.
func (s *Session) PowerOn(_ context.Context, id string) (Task, error) { return Task{}, errNotYet }

// Shutdown starts shutting the guest down; it needs VMware Tools in the guest.
func (s *Session) Shutdown(_ context.Context, id string) (Task, error) { return Task{}, errNotYet }

// PowerOff starts powering a VM off and undeploying it.
func (s *Session) PowerOff(_ context.Context, id string) (Task, error) { return Task{}, errNotYet }

// DetachDisk starts detaching an independent disk from a VM; diskID is the URN of the independent disk.
func (s *Session) DetachDisk(_ context.Context, vmID, diskID string) (Task, error) {
	return Task{}, errNotYet
}

// DeleteVM starts deleting a VM, which must be powered off.
func (s *Session) DeleteVM(_ context.Context, id string) (Task, error) { return Task{}, errNotYet }

// Follow polls the task, with all others of the session, until it ends; then wake is called once, in a goroutine
// of its own. The key names who started it, such as the UID of a machine; a key follows one task at a time.
func (s *Session) Follow(key string, t Task, wake func()) {}

// Task returns the task that key follows, from memory.
func (s *Session) Task(key string) (Task, bool) { return Task{}, false }

// Forget stops following the task of key.
func (s *Session) Forget(key string) {}

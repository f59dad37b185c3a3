// SPDX-License-Identifier: Apache-2.0

// Package session opens sessions in VCD for the identities that objects refer to, and turns what VCD answers into
// results. It also holds what reconcilers of several kinds watch and look up.
package session

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// How long to wait before looking again.
const (
	// TaskPoll is a fallback: the end of a task wakes us.
	TaskPoll = 10 * time.Second
	// BusyPoll is for entities held by the task of another user.
	BusyPoll = 3 * time.Second
	// UnreachablePoll is for a VCD that does not answer.
	UnreachablePoll = 30 * time.Second
	// RemedyPoll is for what a person has to mend in VCD.
	RemedyPoll = phases.RemedyPoll
	// trustPoll is for a site whose certificate is not trusted: it may get the former one back.
	trustPoll = 20 * time.Second
	// loginPoll is for refused credentials: those that never worked are tried once per version of their Secret, others
	// again after a growing while.
	loginPoll = 10 * time.Minute
)

// Inventory answers for all machines at once.
type Inventory interface {
	VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error)
	QueryVM(ctx context.Context, id string) (vcd.VMRecord, error)
	Invalidate(vdc vcd.VDC)
}

// tasks follows the tasks of a session in the background, and cancels them.
type tasks interface {
	Follow(key string, t vcd.Task, wake func())
	Task(key string) (vcd.Task, bool)
	Forget(key string)
	CancelTask(ctx context.Context, id string) error
}

// The clients that a session consists of, by names that do not collide with their methods.
type (
	affinity  = vcd.AffinityRules
	disks     = vcd.Disks
	gateways  = vcd.Gateways
	networks  = vcd.Networks
	templates = vcd.Templates
	vApps     = vcd.VApps
	vdcs      = vcd.VDCs

	// Machines reads and changes VMs.
	Machines = vcd.VMs
)

// A Session is what reconcilers need of a vcd.Session.
type Session struct {
	*affinity
	*disks
	*gateways
	*networks
	*templates
	*vApps
	*vdcs
	*Machines
	Inventory // an interface, so that tests can lose rows
	tasks     // an interface, because what follows a task outlives the context of the pass that started it

	Version string // of the Secret that it was opened with

	Identity           string   // kind and name of the identity that it was opened with
	AllowedExtraConfig []string // patterns of the extra configuration that the identity allows

	site    *vcd.Session
	drivers *drivers
}

// Refresh forgets what was looked up by name.
func (s *Session) Refresh() { s.site.Refresh() }

// MayHave reports whether the user may have a right: VCD does not show all users what they have.
func (s *Session) MayHave(ctx context.Context, right string) (bool, error) {
	return s.site.MayHave(ctx, right)
}

// FindLost returns a VM, or the evidence that it is gone.
func (s *Session) FindLost(ctx context.Context, lost vcd.Lost) (vcd.VM, vcd.Absence, error) {
	return s.site.FindLost(ctx, lost)
}

// LostVApp returns the evidence that a vApp is gone.
func (s *Session) LostVApp(ctx context.Context, vdc vcd.VDC, ids ...string) (vcd.Absence, error) {
	return s.site.LostVApp(ctx, vdc, ids...)
}

// LostGateway returns the evidence that an edge gateway is gone.
func (s *Session) LostGateway(ctx context.Context, vdc vcd.VDC, id string) (vcd.Absence, error) {
	return s.site.LostGateway(ctx, vdc, id)
}

// Entities returns the runtime defined entities.
func (s *Session) Entities() *vcd.Entities { return s.site.Entities }

// Balancers returns a driver of load balancers, with caches of its own.
func (s *Session) Balancers() *edge.Driver { return newDriver(s.site, edge.Options{}) }

// SharedBalancers returns the driver of load balancers that all users of the session share, and its caches.
func (s *Session) SharedBalancers() *edge.Driver { return s.drivers.of(s.site) }

// Opener opens sessions, or returns those that are open.
type Opener func(context.Context, vcd.Config) (*Session, error)

// Logout ends the sessions of credentials at a site, without waiting.
type Logout func(context.Context, vcd.Config)

// Of returns the sessions of pool.
func Of(pool *vcd.Pool) Opener {
	shared := &drivers{clock: pool.Clock()}
	return func(ctx context.Context, config vcd.Config) (*Session, error) {
		s, err := pool.Session(ctx, config)
		if err != nil {
			return nil, err
		}
		return &Session{
			site:      s,
			drivers:   shared,
			affinity:  s.Affinity,
			disks:     s.Disks,
			gateways:  s.Gateways,
			networks:  s.Networks,
			tasks:     s.Tasks,
			templates: s.Templates,
			vApps:     s.VApps,
			vdcs:      s.VDCs,
			Machines:  s.VMs,
			Inventory: s.Inventory,
		}, nil
	}
}

// FirstRetry is the delay after the first failure. It doubles each time.
const FirstRetry = 15 * time.Second

// As returns a context whose requests to VCD count as those of the cluster of obj: clusters are queued fairly.
func As(ctx context.Context, obj client.Object) context.Context {
	return vcd.As(ctx, obj.GetNamespace()+"/"+obj.GetLabels()[clusterv1.ClusterNameLabel])
}

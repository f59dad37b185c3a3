// SPDX-License-Identifier: Apache-2.0

// Package session narrows a session in VCD to the requests that reconcilers send.
package session

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Inventory lists the VMs of all machines at once.
type Inventory interface {
	VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error)
	DueVMs(ctx context.Context, vdc vcd.VDC, vApp string, lastDue func(now time.Time) time.Time) ([]vcd.VMRecord, error)
	QueryVM(ctx context.Context, id string) (vcd.VMRecord, error)
	Invalidate(vdc vcd.VDC, vApp string)
	InvalidateBefore(vdc vcd.VDC, vApp string, at time.Time)
}

// tasks tracks the tasks of a session in the background, and cancels them.
type tasks interface {
	Follow(key string, t vcd.Task, wake func())
	Task(key string) (vcd.Task, bool)
	Forget(key string)
	CancelTask(ctx context.Context, id string) error
}

// The embedded clients of a session, with names that do not collide with their methods.
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

// A Session is the part of a vcd.Session that reconcilers need.
type Session struct {
	*affinity
	*disks
	*gateways
	*networks
	*templates
	*vApps
	*vdcs
	*Machines
	Inventory // an interface, so that tests can hide rows
	tasks     // an interface, because tracking a task outlives the context of the pass that started it

	Version string // version of the Secret with which the session was opened

	Identity           string   // kind and name of the identity with which the session was opened
	AllowedExtraConfig []string // patterns of the extra configuration that the identity allows

	site    *vcd.Session
	drivers *drivers
}

// Refresh clears the cache of lookups by name.
func (s *Session) Refresh() { s.site.Refresh() }

// MayHave reports whether the user may have a right. VCD does not show all users their rights.
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

// Balancers returns a driver of load balancers with its own caches.
func (s *Session) Balancers() *edge.Driver { return newDriver(s.site, edge.Options{}) }

// SharedBalancers returns the driver of load balancers, with its caches, that all users of the session share.
func (s *Session) SharedBalancers() *edge.Driver { return s.drivers.of(s.site) }

// Opener opens a session, or returns an open one.
type Opener func(context.Context, vcd.Config) (*Session, error)

// Logout ends the sessions of credentials at a site, without waiting.
type Logout func(context.Context, vcd.Config)

// Of returns an Opener for the sessions of pool.
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

// As returns a context that assigns requests to VCD to the cluster of obj, because clusters are queued fairly.
func As(ctx context.Context, obj client.Object) context.Context {
	return vcd.As(ctx, obj.GetNamespace()+"/"+obj.GetLabels()[clusterv1.ClusterNameLabel])
}

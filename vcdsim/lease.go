// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// leases ends the leases of vApps.
type leases struct{ sim *Simulator }

// watch sets the alarm for the next end of a vApp's leases. An alarm that rings too early, because the lease was
// renewed, sets the next.
func (l *leases) watch(v *store.VApp) {
	for _, end := range []time.Time{v.Lease.Undeploys(), v.Lease.Deletes()} {
		if end.IsZero() {
			continue
		}
		l.sim.alarms.after(max(end.Sub(l.sim.clock.Now()), 0), store.Alarm{Bell: bellLease, ID: v.ID, End: end})
	}
}

// end stops a vApp whose runtime lease ended, and deletes one whose storage lease did.
func (l *leases) end(id string, end time.Time) {
	v := l.sim.store.VApps[id]
	if v == nil {
		return
	}
	owner := store.Entity{Kind: "vapp", ID: v.ID, Name: v.Name}
	switch {
	case v.Lease.Undeploys().Equal(end):
		if l.sim.tasks.checkIdle(l.sim.vapps.locks(v)...) != nil {
			l.sim.alarms.after(time.Minute, store.Alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.sim.tasks.start(nil, store.Work{Op: opUndeploy, Power: store.PoweredOff, VApp: v.ID, VMs: l.sim.vapps.vmIDs(v)}, owner,
			l.sim.vapps.locks(v))
	case v.Lease.Deletes().Equal(end):
		if l.sim.tasks.checkIdle(l.sim.vapps.locks(v)...) != nil {
			l.sim.alarms.after(time.Minute, store.Alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.sim.tasks.start(nil, store.Work{Op: opDeleteVApp, VApp: v.ID}, owner, l.sim.vapps.locks(v))
	}
}

// deployedChanged keeps the lease in step with whether anything in the vApp is deployed.
func (l *leases) deployedChanged(v *store.VApp) {
	if v == nil {
		return
	}
	switch {
	case l.sim.store.AnyDeployed(v):
		v.Deployed = true
	case !l.sim.assume.VAppStaysDeployed:
		v.Deployed = false
	}
	deployed := v.Deployed
	switch {
	case deployed && v.Lease.Deployed.IsZero():
		v.Lease.Deployed = l.sim.clock.Now()
		v.Lease.Stopped = time.Time{}
	case !deployed && (!v.Lease.Deployed.IsZero() || v.Lease.Stopped.IsZero()):
		v.Lease.Deployed = time.Time{}
		v.Lease.Stopped = l.sim.clock.Now()
	default:
		return
	}
	l.watch(v)
}

// capped applies the organization's maximum: 0 asks for no end, which only an organization without one grants.
func capped(asked, limit time.Duration) time.Duration {
	if limit > 0 && (asked == 0 || asked > limit) {
		return limit
	}
	return asked
}

// seconds reads a lease, which is written in seconds.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

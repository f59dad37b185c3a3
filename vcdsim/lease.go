// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "time"

// undeploys is when the runtime lease ends, zero if never.
func (l Lease) undeploys() time.Time {
	if l.Runtime == 0 || l.Deployed.IsZero() {
		return time.Time{}
	}
	return l.Deployed.Add(l.Runtime)
}

// deletes is when the storage lease ends, zero if never. It runs only while the vApp is stopped.
func (l Lease) deletes() time.Time {
	if l.Storage == 0 || !l.Deployed.IsZero() || l.Stopped.IsZero() {
		return time.Time{}
	}
	return l.Stopped.Add(l.Storage)
}

// leases ends the leases of vApps.
type leases struct{ sim *Simulator }

// watch sets the alarm for the next end of a vApp's leases. An alarm that rings too early, because the lease was
// renewed, sets the next.
func (l *leases) watch(v *VApp) {
	for _, end := range []time.Time{v.Lease.undeploys(), v.Lease.deletes()} {
		if end.IsZero() {
			continue
		}
		l.sim.alarms.after(max(end.Sub(l.sim.clock.Now()), 0), alarm{Bell: bellLease, ID: v.ID, End: end})
	}
}

// end stops a vApp whose runtime lease ended, and deletes one whose storage lease did.
func (l *leases) end(id string, end time.Time) {
	v := l.sim.store.VApps[id]
	if v == nil {
		return
	}
	owner := Entity{"vapp", v.ID, v.Name}
	switch {
	case v.Lease.undeploys().Equal(end):
		if l.sim.tasks.checkIdle(l.sim.vapps.locks(v)...) != nil {
			l.sim.alarms.after(time.Minute, alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.sim.tasks.start(nil, Work{Op: opUndeploy, Power: PoweredOff, VApp: v.ID, VMs: l.sim.vapps.vmIDs(v)}, owner,
			l.sim.vapps.locks(v))
	case v.Lease.deletes().Equal(end):
		if l.sim.tasks.checkIdle(l.sim.vapps.locks(v)...) != nil {
			l.sim.alarms.after(time.Minute, alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.sim.tasks.start(nil, Work{Op: opDeleteVApp, VApp: v.ID}, owner, l.sim.vapps.locks(v))
	}
}

// deployedChanged keeps the lease in step with whether anything in the vApp is deployed.
func (l *leases) deployedChanged(v *VApp) {
	if v == nil {
		return
	}
	switch {
	case l.sim.store.anyDeployed(v):
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

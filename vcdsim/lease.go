// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// leases ends the leases of vApps.
type leases struct{ cloud *cloud }

// leasesOf returns the leases of a cloud.
func leasesOf(c *cloud) leases { return leases{cloud: c} }

// watch sets the alarm for the next end of a vApp's leases. An alarm that rings too early, because the lease was
// renewed, sets the next.
func (l leases) watch(v *store.VApp) {
	for _, end := range []time.Time{v.Lease.Undeploys(), v.Lease.Deletes()} {
		if end.IsZero() {
			continue
		}
		l.cloud.alarms.after(max(end.Sub(l.cloud.clock.Now()), 0), store.Alarm{Bell: bellLease, ID: v.ID, End: end})
	}
}

// end stops a vApp whose runtime lease ended, and deletes one whose storage lease did.
func (l leases) end(id string, end time.Time) {
	v := l.cloud.store.VApps[id]
	if v == nil {
		return
	}
	owner := store.Entity{Kind: "vapp", ID: v.ID, Name: v.Name}
	switch {
	case v.Lease.Undeploys().Equal(end):
		if l.cloud.tasks.checkIdle(vappsOf(l.cloud).locks(v)...) != nil {
			l.cloud.alarms.after(time.Minute, store.Alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.cloud.tasks.start(nil, store.Work{Op: opUndeploy, Power: store.PoweredOff, VApp: v.ID, VMs: vappsOf(l.cloud).vmIDs(v)}, owner,
			vappsOf(l.cloud).locks(v))
	case v.Lease.Deletes().Equal(end):
		if l.cloud.tasks.checkIdle(vappsOf(l.cloud).locks(v)...) != nil {
			l.cloud.alarms.after(time.Minute, store.Alarm{Bell: bellLease, ID: id, End: end})
			return
		}
		l.cloud.tasks.start(nil, store.Work{Op: opDeleteVApp, VApp: v.ID}, owner, vappsOf(l.cloud).locks(v))
	}
}

// deployedChanged keeps the lease in step with whether anything in the vApp is deployed.
func (l leases) deployedChanged(v *store.VApp) {
	if v == nil {
		return
	}
	switch {
	case l.cloud.store.AnyDeployed(v):
		v.Deployed = true
	case !l.cloud.assume.VAppStaysDeployed:
		v.Deployed = false
	}
	deployed := v.Deployed
	switch {
	case deployed && v.Lease.Deployed.IsZero():
		v.Lease.Deployed = l.cloud.clock.Now()
		v.Lease.Stopped = time.Time{}
	case !deployed && (!v.Lease.Deployed.IsZero() || v.Lease.Stopped.IsZero()):
		v.Lease.Deployed = time.Time{}
		v.Lease.Stopped = l.cloud.clock.Now()
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

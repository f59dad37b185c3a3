// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Leases ends the leases of vApps.
type Leases struct{ cloud *cloud.Cloud }

// LeasesOf returns the leases of a cloud.
func LeasesOf(c *cloud.Cloud) Leases { return Leases{cloud: c} }

// setAlarm sets alarms for the ends of a vApp's leases. An alarm that rings too early, because the lease was renewed,
// has no effect.
func (l Leases) setAlarm(v *store.VApp) {
	for _, end := range []time.Time{v.Lease.Undeploys(), v.Lease.Deletes()} {
		if end.IsZero() {
			continue
		}
		l.cloud.Alarms.After(max(end.Sub(l.cloud.Clock.Now()), 0), store.Alarm{Bell: cloud.BellLease, ID: v.ID, End: end})
	}
}

// End stops a vApp whose runtime lease has expired, and deletes a vApp whose storage lease has expired.
func (l Leases) End(id string, end time.Time) {
	v := l.cloud.Store.VApps[id]
	if v == nil {
		return
	}
	owner := store.Entity{Kind: "vapp", ID: v.ID, Name: v.Name}
	switch {
	case v.Lease.Undeploys().Equal(end):
		if l.cloud.Tasks.CheckIdle(VAppsOf(l.cloud).Locks(v)...) != nil {
			l.cloud.Alarms.After(time.Minute, store.Alarm{Bell: cloud.BellLease, ID: id, End: end})
			return
		}
		work := store.Work{
			Op:    cloud.OpUndeploy,
			Power: store.PoweredOff,
			VApp:  v.ID,
			VMs:   VAppsOf(l.cloud).VMIDs(v),
		}
		l.cloud.Tasks.Start(nil, work, owner,
			VAppsOf(l.cloud).Locks(v))
	case v.Lease.Deletes().Equal(end):
		if l.cloud.Tasks.CheckIdle(VAppsOf(l.cloud).Locks(v)...) != nil {
			l.cloud.Alarms.After(time.Minute, store.Alarm{Bell: cloud.BellLease, ID: id, End: end})
			return
		}
		l.cloud.Tasks.Start(nil, store.Work{Op: cloud.OpDeleteVApp, VApp: v.ID}, owner, VAppsOf(l.cloud).Locks(v))
	}
}

// DeployedChanged updates the deployment state of a vApp and its leases after its VMs have changed. It is a no-op if v
// is nil.
func (l Leases) DeployedChanged(v *store.VApp) {
	if v == nil {
		return
	}
	switch {
	case l.cloud.Store.AnyDeployed(v):
		v.Deployed = true
	case !l.cloud.Assume.VAppStaysDeployed:
		v.Deployed = false
	}
	deployed := v.Deployed
	switch {
	case deployed && v.Lease.Deployed.IsZero():
		v.Lease.Deployed = l.cloud.Clock.Now()
		v.Lease.Stopped = time.Time{}
	case !deployed && (!v.Lease.Deployed.IsZero() || v.Lease.Stopped.IsZero()):
		v.Lease.Deployed = time.Time{}
		v.Lease.Stopped = l.cloud.Clock.Now()
	default:
		return
	}
	l.setAlarm(v)
}

// Capped limits a lease to the maximum of the organization. A lease of 0 never expires, which is only possible if the
// organization has no maximum.
func Capped(requested, limit time.Duration) time.Duration {
	if limit > 0 && (requested == 0 || requested > limit) {
		return limit
	}
	return requested
}

// Seconds converts a lease from seconds.
func Seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

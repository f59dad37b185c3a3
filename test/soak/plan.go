// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// An action is what happens at one point of a run.
type action string

// Actions of users on one cluster.
const (
	actCreate    action = "create"
	actScale     action = "scale workers"
	actPlane     action = "scale control plane"
	actRoll      action = "roll workers"
	actRollPlane action = "roll control plane"
	actUpgrade   action = "upgrade Kubernetes"
	actRemediate action = "remediate"
	actService   action = "create Service"
	actNoService action = "delete Service"
	actDelete    action = "delete"
)

// Disturbances of a site or of a program.
const (
	actFault      action = "fault"
	actCellDown   action = "cell down"
	actKill       action = "kill manager"
	actKillCCM    action = "kill CCM"
	actRotate     action = "rotate credentials"
	actUpgradeVCD action = "upgrade VCD"
)

// An event is an action with its time and arguments.
type event struct {
	At       time.Duration // simulated time since the start
	Action   action
	Cluster  string // empty for disturbances
	Slot     int    // of the cluster
	Layout   int    // index in layouts
	Identity identityKind
	Older    bool          // the cluster starts with the older Kubernetes version
	Number   int           // a count, or an index modulo the number of objects
	Site     int           // index in sites, of a disturbance
	For      time.Duration // how long a disturbance lasts
}

// String describes an event in one line.
func (e event) String() string {
	if e.Cluster == "" {
		return fmt.Sprintf("%s %s %d at site %d for %s", hours(e.At), e.Action, e.Number, e.Site, e.For)
	}
	text := fmt.Sprintf("%s %s %s", hours(e.At), e.Cluster, e.Action)
	if e.Action == actCreate {
		text += fmt.Sprintf(" as %s with identity %s", layouts()[e.Layout].name, e.Identity)
	}
	return fmt.Sprintf("%s %d", text, e.Number)
}

// hours formats simulated time as hours and minutes.
func hours(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// A scope is the size of a run.
type scope struct {
	seed     uint64
	clusters int
	ccms     int // number of slots whose clusters have Services
	duration time.Duration
	sites    int
}

const (
	// thinking is the mean simulated time between two actions on a cluster.
	thinking = 45 * time.Minute
	// living is the mean simulated life of a cluster.
	living = 8 * time.Hour
	// pausing is the simulated time until a deleted cluster is followed by another.
	pausing = 10 * time.Minute
	// maxWorkers is the maximum number of workers of a cluster.
	maxWorkers = 3
)

// plan returns all events of a run, by time. It depends on its argument alone.
func plan(s scope) []event {
	var all []event
	for slot := range s.clusters {
		all = append(all, lives(s, slot)...)
	}
	for site := range s.sites {
		all = append(all, disturbances(s, site)...)
	}
	all = append(all, cloudStackEvents(s)...)
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	return all
}

// lives returns the events of the clusters that follow each other in a slot. The first of all slots are created within
// the first eighth of the run, and their layouts are those of the list in turn, so that no layout is missing.
func lives(s scope, slot int) []event {
	rng := rand.New(rand.NewPCG(s.seed, uint64(slot))) //nolint:gosec // reproducible on purpose
	var all []event
	at := time.Duration(rng.Int64N(int64(s.duration/8) + 1))
	layout := slot % len(layouts())
	for generation := 0; at < s.duration; generation++ {
		birth := event{
			At:       at,
			Action:   actCreate,
			Cluster:  fmt.Sprintf("soak-%d-%d", slot, generation),
			Slot:     slot,
			Layout:   layout,
			Identity: identityKinds()[rng.IntN(len(identityKinds()))],
			Older:    rng.IntN(2) == 0,
			Number:   rng.IntN(maxWorkers),
		}
		end := at + jittered(rng, min(living, s.duration))
		all = append(all, birth)
		all = append(all, changes(rng, birth, min(end, s.duration), slot < s.ccms)...)
		if end < s.duration {
			all = append(all, event{At: end, Action: actDelete, Cluster: birth.Cluster, Slot: slot})
		}
		at = end + pausing
		layout = rng.IntN(len(layouts()))
	}
	return all
}

// changes returns the events between the creation and the end of a cluster, which may have Services.
func changes(rng *rand.Rand, birth event, end time.Duration, services bool) []event {
	var all []event
	older := birth.Older
	mean := min(thinking, max(end-birth.At, time.Minute)/4)
	for at := birth.At + jittered(rng, mean); at < end; at += jittered(rng, mean) {
		e := event{At: at, Cluster: birth.Cluster, Slot: birth.Slot, Number: rng.IntN(100)}
		e.Action = changeOf(rng, &older, services)
		all = append(all, e)
	}
	return all
}

// changeOf draws a change. A cluster is upgraded at most once.
func changeOf(rng *rand.Rand, older *bool, services bool) action {
	switch n := rng.IntN(20); {
	case n >= 14 && !services, n < 6:
		return actScale
	case n < 8:
		return actRoll
	case n < 9:
		return actRollPlane
	case n < 10:
		return actPlane
	case n < 12:
		return actRemediate
	case n < 14 && *older:
		*older = false
		return actUpgrade
	case n < 14:
		return actScale
	case n < 18:
		return actService
	default:
		return actNoService
	}
}

// A recurrence is a disturbance that recurs.
type recurrence struct {
	action action
	every  time.Duration // mean
	lasts  time.Duration // maximum
}

func recurrences() []recurrence {
	return []recurrence{
		{actFault, 12 * time.Minute, 10 * time.Minute},
		{actCellDown, time.Hour, 10 * time.Minute},
		{actKill, 40 * time.Minute, 3 * time.Minute},
		{actKillCCM, 20 * time.Minute, 3 * time.Minute},
		{actRotate, 4 * time.Hour, 0},
	}
}

// disturbances returns the disturbances of a site. Each kind occurs at least about three times. The last tenth of the
// run has no new ones, so that all end with it. VCD is upgraded in the middle, one cell after the other.
func disturbances(s scope, site int) []event {
	rng := rand.New(rand.NewPCG(s.seed, uint64(1<<32+site))) //nolint:gosec // reproducible on purpose
	var all []event
	end := s.duration * 9 / 10
	for _, r := range recurrences() {
		mean := min(r.every, s.duration/4)
		for at := jittered(rng, mean); at < end; at += jittered(rng, mean) {
			e := event{At: at, Action: r.action, Site: site, Number: rng.IntN(1000)}
			if r.lasts > 0 {
				e.For = min(time.Duration(rng.Int64N(int64(r.lasts))), s.duration-at)
			}
			all = append(all, e)
		}
	}
	middle := s.duration * time.Duration(3+site) / 10
	for cell := range cells {
		all = append(all, event{
			At:     middle + time.Duration(cell)*s.duration/20,
			Action: actUpgradeVCD,
			Site:   site,
			Number: cell,
		})
	}
	return all
}

// cloudStackEvents returns the events of the cluster on CloudStack. They do not overlap.
func cloudStackEvents(s scope) []event {
	rng := rand.New(rand.NewPCG(s.seed, 1<<33)) //nolint:gosec // reproducible on purpose
	mean := min(10*time.Minute, s.duration/8)
	var all []event
	for at := jittered(rng, mean); at < s.duration; at += jittered(rng, mean) {
		e := event{At: at, Cluster: cloudStackName, Slot: s.clusters, Number: rng.IntN(100)}
		switch rng.IntN(5) {
		case 0:
			e.Action = actFault
			e.For = min(time.Duration(rng.Int64N(int64(mean))), s.duration-at)
		case 1:
			e.Action = actNoService
		default:
			e.Action = actService
		}
		all = append(all, e)
	}
	return all
}

// jittered returns a random duration around a mean: from half of it to one and a half times.
func jittered(rng *rand.Rand, mean time.Duration) time.Duration {
	return mean/2 + time.Duration(rng.Int64N(int64(mean)+1))
}

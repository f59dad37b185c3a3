// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"math/rand/v2"
	"time"
)

// A Profile sets the duration of operations. Scale multiplies every latency; 0 means that every operation is immediate.
type Profile struct {
	Name  string
	Scale float64
}

// The profiles. Recorded uses durations that were observed at real VCDs, and Fast a tenth of these. With Instant,
// operations take no time: a task is done before its first GET.
var (
	Instant  = Profile{Name: "instant"}
	Fast     = Profile{Name: "fast", Scale: 0.1}
	Recorded = Profile{Name: "recorded", Scale: 1}
)

// ProfileByName returns a profile by its name.
func ProfileByName(name string) (Profile, bool) {
	for _, p := range []Profile{Instant, Fast, Recorded} {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Latencies of the recorded profile. Those marked "guess" were never measured on a real VCD.
const (
	LatencyLogin        = 170 * time.Millisecond
	LatencyOrgList      = 7 * time.Millisecond
	LatencyOrg          = 95 * time.Millisecond
	LatencyVDC          = 140 * time.Millisecond
	LatencyVApp         = 155 * time.Millisecond
	LatencyVM           = 128 * time.Millisecond
	LatencyQuery        = 40 * time.Millisecond // guess
	LatencyCloudAPI     = 34 * time.Millisecond
	LatencyTask         = 19 * time.Millisecond
	LatencyLegacy       = 20 * time.Millisecond
	LatencyWrite        = 350 * time.Millisecond
	DurationCompose     = 2 * time.Second
	DurationRecompose   = 60 * time.Second // linked clone; ±30 %
	DurationConsolidate = 30 * time.Second // guess: copies the disk of the template
	DurationNetworks    = 5 * time.Second
	DurationReconfig    = 4 * time.Second
	DurationPowerOn     = 8 * time.Second  // guess
	DurationPowerOff    = 5 * time.Second  // guess
	DurationShutdown    = 20 * time.Second // guess
	DurationUndeploy    = 10 * time.Second // guess
	DurationDelete      = 5 * time.Second  // guess
	DurationDisk        = 3 * time.Second
	DurationAttach      = 4 * time.Second  // guess
	DurationMetadata    = 1 * time.Second  // guess
	DurationLease       = 1 * time.Second  // guess
	DurationGuestBoot   = 45 * time.Second // guess
	DurationGuestWrite  = 3 * time.Second
	durationGateway     = 5 * time.Second  // NAT rules, pools, virtual services; guess for others
	DurationImport      = 5 * time.Second  // guess: after the last byte of an upload
	DurationHealth      = 15 * time.Second // guess: until the health of a virtual service is known
)

// Scaled scales a duration with the profile.
func (p Profile) Scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.Scale)
}

// Jittered scales a duration with the profile and varies the result by up to spread in each direction.
func (p Profile) Jittered(d time.Duration, spread float64, rng *rand.Rand) time.Duration {
	return time.Duration(float64(p.Scaled(d)) * (1 - spread + 2*spread*rng.Float64()))
}

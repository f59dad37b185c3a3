// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"math/rand/v2"
	"time"
)

// A Profile sets how long things take. Scale multiplies every latency; 0 makes everything immediate.
type Profile struct {
	Name  string
	Scale float64
}

// The profiles: Recorded is what real VCDs were seen to take, Fast a tenth of it, Instant nothing at all, so that a
// task is done before its first GET.
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

// latencies of the recorded profile. Those marked "guess" were never measured on a real VCD.
const (
	latencyLogin        = 170 * time.Millisecond
	latencyOrgList      = 7 * time.Millisecond
	latencyOrg          = 95 * time.Millisecond
	latencyVDC          = 140 * time.Millisecond
	latencyVApp         = 155 * time.Millisecond
	latencyVM           = 128 * time.Millisecond
	latencyQuery        = 40 * time.Millisecond // guess
	latencyCloudAPI     = 34 * time.Millisecond
	latencyTask         = 19 * time.Millisecond
	latencyLegacy       = 20 * time.Millisecond
	latencyWrite        = 350 * time.Millisecond
	durationCompose     = 2 * time.Second
	durationRecompose   = 60 * time.Second // linked clone; plus or minus 30 %
	durationConsolidate = 30 * time.Second // guess: the disk of the template is copied
	durationNetworks    = 5 * time.Second
	durationReconfig    = 4 * time.Second
	durationPowerOn     = 8 * time.Second  // guess
	durationPowerOff    = 5 * time.Second  // guess
	durationShutdown    = 20 * time.Second // guess
	durationUndeploy    = 10 * time.Second // guess
	durationDelete      = 5 * time.Second  // guess
	durationDisk        = 3 * time.Second
	durationAttach      = 4 * time.Second  // guess
	durationMetadata    = 1 * time.Second  // guess
	durationLease       = 1 * time.Second  // guess
	durationGuestBoot   = 45 * time.Second // guess
	durationGuestWrite  = 3 * time.Second
	durationGateway     = 5 * time.Second  // NAT rules, pools, virtual services; others are guesses
	durationImport      = 5 * time.Second  // guess: from the last byte of an upload on
	durationHealth      = 15 * time.Second // guess: until a virtual service is known to be up
)

// scaled applies the profile.
func (p Profile) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * p.Scale)
}

// jittered applies the profile and varies the result by up to spread on each side.
func (p Profile) jittered(d time.Duration, spread float64, rng *rand.Rand) time.Duration {
	return time.Duration(float64(p.scaled(d)) * (1 - spread + 2*spread*rng.Float64()))
}

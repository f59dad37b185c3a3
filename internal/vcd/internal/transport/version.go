// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Oldest and newest API version that this package supports: VMware Cloud Director 10.4.2 to 10.6.
var (
	oldestAPI = Version{37, 2}
	newestAPI = Version{39, 1}
)

const (
	// versionRefusal is how long a version that a cell rejected is avoided, even if another cell offers it.
	versionRefusal = 10 * time.Minute
	// versionsAge is how long the offered versions stay cached where a newer version would matter.
	versionsAge = time.Hour
)

// LaterCalls are requests to a part of the API that was added after oldestAPI. They use a version that supports it,
// independently of the agreed version. All other requests stay at one version, because documents differ between
// versions.
type LaterCalls struct {
	Under string // prefix of their paths
	Since Version
	// Containing is a part of their paths after Under. It may be empty.
	Containing string
	// Optional means that they use the agreed version if VCD offers no version that supports them.
	Optional bool
}

// match reports whether a path belongs to the requests.
func (l LaterCalls) match(path string) bool {
	rest, under := strings.CutPrefix(path, l.Under)
	return under && strings.Contains(rest, l.Containing)
}

// RefuseVersion records that VCD, or one of its cells, rejected a version, and discards the agreement on it.
func (s *Site) RefuseVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[version] = s.Clock.Now().Add(versionRefusal)
	if s.version == version {
		s.version = ""
	}
}

// agree chooses one of the versions that VCD offers, and records all of them.
func (s *Site) agree(document []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offered, err := offeredVersions(document)
	if err != nil {
		return "", err
	}
	s.offered = offered
	s.offeredAt = s.Clock.Now()
	s.version = s.choose(offered)
	return s.version, nil
}

// VersionFor returns the version for a request to a path: the agreed version, or the oldest offered one that supports
// the path.
func (s *Site) VersionFor(path, agreed string) (string, error) {
	for _, later := range s.later {
		if !later.match(path) {
			continue
		}
		if version, ok := ParseVersion(agreed); ok && version.Compare(later.Since) >= 0 {
			return agreed, nil
		}
		version, err := s.OfferedSince(later.Since)
		if err != nil && later.Optional {
			return agreed, nil
		}
		return version, err
	}
	return agreed, nil
}

// OfferedSince returns the oldest offered version that is not older than since.
func (s *Site) OfferedSince(since Version) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usable := slices.DeleteFunc(slices.Clone(s.offered), func(v Version) bool { return v.Compare(since) < 0 })
	if len(usable) == 0 {
		return "", &failure.LookupError{
			Kind:   "API version",
			Name:   since.String(),
			Err:    failure.ErrInvalid,
			Reason: "or later is not supported by this VCD",
		}
	}
	return s.choose(usable), nil
}

// ForgetOldVersions discards the agreed version if it was negotiated long ago, because VCD may have been upgraded.
func (s *Site) ForgetOldVersions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Clock.Now().Sub(s.offeredAt) > versionsAge {
		s.version = ""
	}
}

// choose returns the oldest version, so that the same wire format is used everywhere. It returns a rejected version
// only if there is no other. The caller holds the lock.
func (s *Site) choose(versions []Version) string {
	now := s.Clock.Now()
	for _, v := range versions {
		if !now.Before(s.refused[v.String()]) {
			return v.String()
		}
	}
	return versions[0].String()
}

// versionName matches the name of a version, including previews.
var versionName = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4})*(-[a-z0-9.]{1,16})?$`)

// offeredVersions returns the versions that VCD offers and this package supports, sorted. It fails if there are none.
func offeredVersions(document []byte) ([]Version, error) {
	var offered struct {
		Versions []struct {
			Version string `xml:"Version"`
		} `xml:"VersionInfo"`
	}
	if err := xml.Unmarshal(document, &offered); err != nil {
		return nil, failure.Unavailable("the list of API versions is not a response from VCD")
	}
	var usable []Version
	var names []string
	for _, v := range offered.Versions {
		if versionName.MatchString(v.Version) { // Other text may come from another server and is not quoted.
			names = append(names, v.Version)
		}
		parsed, ok := ParseVersion(v.Version)
		if ok && parsed.Compare(oldestAPI) >= 0 && parsed.Compare(newestAPI) <= 0 {
			usable = append(usable, parsed)
		}
	}
	if len(usable) == 0 {
		return nil, &failure.LookupError{
			Kind:   "API version",
			Name:   oldestAPI.String() + " to " + newestAPI.String(),
			Err:    failure.ErrInvalid,
			Reason: "is not supported by this VCD, which supports: " + strings.Join(names, ", "),
		}
	}
	slices.SortFunc(usable, Version.Compare)
	return usable, nil
}

// A Version is a version of VCD's API, such as 37.2.
type Version struct{ Major, Minor int }

// ParseVersion parses a version of two numbers. It rejects alpha versions.
func ParseVersion(s string) (Version, bool) {
	first, second, ok := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return Version{major, minor}, ok && err1 == nil && err2 == nil
}

// Compare returns a negative number if v is older than o, 0 if they are equal, and a positive number if v is newer.
func (v Version) Compare(o Version) int {
	if v.Major != o.Major {
		return v.Major - o.Major
	}
	return v.Minor - o.Minor
}

// String returns the version as VCD writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

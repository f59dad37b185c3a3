package vcd

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// API versions this package speaks, inclusive: VMware Cloud Director 10.4.2 to 10.6.
var (
	oldestAPI = apiVersion{37, 2}
	newestAPI = apiVersion{39, 1}
)

const (
	// maxAgreements is how many versions are given up for one call: cells of two releases offer different ones.
	maxAgreements = 4
	// versionRefusal is how long a version that a cell refused is avoided, though another may offer it.
	versionRefusal = 10 * time.Minute
)

// refuseVersion notes that VCD, or one of its cells, refused a version, and forgets the agreement on it.
func (s *site) refuseVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[version] = s.clock.Now().Add(versionRefusal)
	if s.version == version {
		s.version = ""
	}
}

// agree takes a version out of what VCD offers.
func (s *site) agree(document []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	version, err := chooseVersion(document, func(version string) bool { return now.Before(s.refused[version]) })
	if err == nil {
		s.version = version
	}
	return version, err
}

// chooseVersion takes the oldest version that both sides speak, so that the same wire format is used everywhere. What was
// refused is taken only if there is nothing else.
func chooseVersion(document []byte, refused func(version string) bool) (string, error) {
	var offered struct {
		Versions []struct {
			Version string `xml:"Version"`
		} `xml:"VersionInfo"`
	}
	if err := xml.Unmarshal(document, &offered); err != nil {
		return "", &connectionError{ErrUnavailable, "the list of API versions is not an answer of VCD"}
	}
	var usable []apiVersion
	var names []string
	for _, v := range offered.Versions {
		names = append(names, v.Version)
		parsed, ok := parseAPIVersion(v.Version)
		if ok && parsed.compare(oldestAPI) >= 0 && parsed.compare(newestAPI) <= 0 {
			usable = append(usable, parsed)
		}
	}
	if len(usable) == 0 {
		return "", &LookupError{
			Kind: "API version", Name: oldestAPI.String() + " to " + newestAPI.String(), Err: ErrInvalid,
			Reason: "is not offered by this VCD, which speaks: " + strings.Join(names, ", "),
		}
	}
	slices.SortFunc(usable, apiVersion.compare)
	for _, v := range usable {
		if !refused(v.String()) {
			return v.String(), nil
		}
	}
	return usable[0].String(), nil
}

// An apiVersion is a version of VCD's API, such as 37.2.
type apiVersion struct{ major, minor int }

// parseAPIVersion refuses alpha versions.
func parseAPIVersion(s string) (apiVersion, bool) {
	first, second, ok := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return apiVersion{major, minor}, ok && err1 == nil && err2 == nil
}

func (v apiVersion) compare(o apiVersion) int {
	if v.major != o.major {
		return v.major - o.major
	}
	return v.minor - o.minor
}

// String returns the version as VCD writes it.
func (v apiVersion) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

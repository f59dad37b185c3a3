// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// Versions are the versions of a site.
type Versions struct {
	API     []string // API versions that it offers, oldest first
	Release string   // VCD release, such as 10.6.0.24056521; empty if not visible
}

var (
	versionText = regexp.MustCompile(`^[0-9]{2,3}\.[0-9]{1,2}$`)
	releaseText = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,2})?\.[0-9]{7,9}\b`)
)

// Versions reads the API versions that the site offers, and the VCD release if it is visible to the user.
func (s *Session) Versions(ctx context.Context) (Versions, error) {
	offered, err := s.OfferedVersions(ctx)
	if err != nil {
		return Versions{}, err
	}
	versions := Versions{API: offered}
	got, err := s.Raw(ctx, RawCall{Method: http.MethodGet, Path: "/api/admin"})
	var admin struct {
		Description string `xml:"Description"`
	}
	if err == nil && xml.Unmarshal(got.Body, &admin) == nil { // not visible to every user
		versions.Release = releaseText.FindString(admin.Description)
	}
	return versions, ctx.Err()
}

// OfferedVersions returns the API versions that the site offers, oldest first.
func (s *Session) OfferedVersions(ctx context.Context) ([]string, error) {
	got, err := s.Raw(ctx, RawCall{Method: http.MethodGet, Path: "/api/versions"})
	if err != nil {
		return nil, fmt.Errorf("requesting the API versions: %w", err)
	}
	var offered struct {
		Versions []string `xml:"VersionInfo>Version"`
	}
	if err := xml.Unmarshal(got.Body, &offered); err != nil {
		return nil, fmt.Errorf("reading the API versions: %w", err)
	}
	versions := slices.DeleteFunc(offered.Versions, func(v string) bool { return !versionText.MatchString(v) })
	slices.SortFunc(versions, CompareVersions)
	return versions, nil
}

// CompareVersions compares two API versions, such as 39.1. It returns a negative number if a is older than b, 0 if they
// are equal, and a positive number if a is newer. Other texts count as the oldest version.
func CompareVersions(a, b string) int {
	first, _ := transport.ParseVersion(a)
	second, _ := transport.ParseVersion(b)
	return first.Compare(second)
}

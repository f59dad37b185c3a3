// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// Versions are what a site is.
type Versions struct {
	API     []string // that it offers, oldest first
	Release string   // of VCD, such as 10.6.0.24056521; empty if it is not shown
}

var (
	versionText = regexp.MustCompile(`^[0-9]{2}\.[0-9]$`)
	releaseText = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,2})?\.[0-9]{7,9}\b`)
)

// Versions reads which versions of the API the site offers, and which release of VCD it is, if that is shown.
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
	if err == nil && xml.Unmarshal(got.Body, &admin) == nil { // Not every user is shown it.
		versions.Release = releaseText.FindString(admin.Description)
	}
	return versions, ctx.Err()
}

// OfferedVersions are the versions of the API that the site offers, oldest first.
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
	slices.Sort(versions)
	return versions, nil
}

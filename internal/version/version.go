// SPDX-License-Identifier: Apache-2.0

// Package version identifies the build of the programs.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Version and Commit are set by the linker (see LDFLAGS of the Makefile); otherwise they are empty.
var (
	// Version is the release, such as v2.0.0.
	Version = ""
	// Commit is the full hash of the commit, with the suffix "-dirty" if the work tree had changes.
	Commit = ""
)

// shortCommit is the length of an abbreviated commit hash.
const shortCommit = 12

// String returns the release, such as v2.0.0, as set by the linker or requested with "go install". For other builds it
// returns the commit, if it is known.
func String() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && released(info) {
		return info.Main.Version
	}
	if c := commit(); c != "" {
		return "commit " + c
	}
	return "unknown"
}

// Long returns the release with the commit, the Go version and the platform.
func Long() string {
	from := ""
	if c := commit(); c != "" && Version != "" {
		from = "commit " + c + ", "
	}
	return fmt.Sprintf("%s (%s%s, %s/%s)", String(), from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// released reports whether a build comes from a released version of the module. A build from a work tree has VCS
// settings.
func released(info *debug.BuildInfo) bool {
	fromTree := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs" })
	return !fromTree && info.Main.Version != "" && info.Main.Version != "(devel)"
}

// Info returns a metric with the constant value 1 and the build information in its labels.
func Info() prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "capvcd_build_info",
		Help: "Build information of the program, as labels of the constant value 1.",
	}, []string{"version", "commit", "go_version"})
	info.WithLabelValues(String(), commit(), runtime.Version()).Set(1)
	return info
}

// commit returns the abbreviated commit hash, with the suffix "-dirty" if the work tree had changes. It is empty if no
// commit was recorded.
func commit() string {
	if Commit != "" {
		return short(Commit)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	suffix := map[string]string{"true": dirtySuffix}[settings["vcs.modified"]]
	return short(settings["vcs.revision"] + suffix)
}

const dirtySuffix = "-dirty"

// short abbreviates the hash, but keeps the suffix "-dirty".
func short(revision string) string {
	hash := revision
	changes := ""
	if n := len(revision) - len(dirtySuffix); n >= 0 && revision[n:] == dirtySuffix {
		hash = revision[:n]
		changes = dirtySuffix
	}
	if hash == "" {
		return ""
	}
	return hash[:min(shortCommit, len(hash))] + changes
}

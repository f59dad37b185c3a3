// Package version says which build of the programs this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the release, such as v2.0.0. The linker sets it; otherwise it is what Go knows of the build.
var Version = ""

// String returns the release, such as v2.0.0, or what is known of the commit it was built from.
func String() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	if revision == "" {
		return "unknown"
	}
	return "commit " + revision + modified
}

// Long returns the release with the Go version and the platform.
func Long() string {
	return fmt.Sprintf("%s (%s, %s/%s)", String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

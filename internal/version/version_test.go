// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLong(t *testing.T) {
	for _, tc := range []struct{ name, version, commit, short, long string }{
		{
			name:    "a release has its short commit",
			version: "v2.0.0",
			commit:  "0123456789abcdef0123456789abcdef01234567",
			short:   "v2.0.0",
			long:    `^v2\.0\.0 \(commit 0123456789ab, go.*/.*\)$`,
		},
		{
			name:    "changes on top of the commit are marked",
			version: "v2.0.0",
			commit:  "0123456789abcdef0123456789abcdef01234567-dirty",
			short:   "v2.0.0",
			long:    `^v2\.0\.0 \(commit 0123456789ab-dirty, go`,
		},
		{
			name:   "a build without a release has its commit",
			commit: "0123456789abcdef",
			short:  "commit 0123456789ab",
			long:   `^commit 0123456789ab \(go`,
		},
		{name: "a short hash is unchanged", commit: "0123", short: "commit 0123", long: `^commit 0123 \(go`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			oldVersion := Version
			oldCommit := Commit
			t.Cleanup(func() {
				Version = oldVersion
				Commit = oldCommit
			})
			Version = tc.version
			Commit = tc.commit

			g.Expect(String()).To(Equal(tc.short))
			g.Expect(Long()).To(MatchRegexp(tc.long))
		})
	}
}

func TestReleased(t *testing.T) {
	tree := []debug.BuildSetting{{Key: "vcs", Value: "git"}}
	for _, tc := range []struct {
		name, version string
		settings      []debug.BuildSetting
		want          bool
	}{
		{"go install of a release", "v2.0.0", nil, true},
		{"go build in a work tree", "v2.0.0+dirty", tree, false},
		{"go run outside of one", "(devel)", nil, false},
		{"a test", "", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			info := &debug.BuildInfo{Main: debug.Module{Version: tc.version}, Settings: tc.settings}
			NewWithT(t).Expect(released(info)).To(Equal(tc.want))
		})
	}
}

func TestInfo(t *testing.T) {
	old := Version
	t.Cleanup(func() { Version = old })
	Version = "v2.0.0"
	NewWithT(t).Expect(testutil.CollectAndCompare(Info(), strings.NewReader(fmt.Sprintf(
		"# HELP capvcd_build_info Build information of the program, as labels of the constant value 1.\n# TYPE capvcd_build_info gauge\ncapvcd_build_info{commit=%q,go_version=%q,version=\"v2.0.0\"} 1\n", commit(), runtime.Version())))).
		To(Succeed())
}

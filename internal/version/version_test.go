package version

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLong(t *testing.T) {
	for _, tc := range []struct{ name, version, commit, short, long string }{
		{
			"a release tells its commit, cut", "v2.0.0", "0123456789abcdef0123456789abcdef01234567", "v2.0.0",
			`^v2\.0\.0 \(commit 0123456789ab, go.*/.*\)$`,
		},
		{
			"changes on top of the commit are told", "v2.0.0", "0123456789abcdef0123456789abcdef01234567-dirty", "v2.0.0",
			`^v2\.0\.0 \(commit 0123456789ab-dirty, go`,
		},
		{
			"a build of no release is its commit", "", "0123456789abcdef", "commit 0123456789ab",
			`^commit 0123456789ab \(go`,
		},
		{"a short hash stays as it is", "", "0123", "commit 0123", `^commit 0123 \(go`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			oldVersion, oldCommit := Version, Commit
			t.Cleanup(func() { Version, Commit = oldVersion, oldCommit })
			Version, Commit = tc.version, tc.commit

			g.Expect(String()).To(Equal(tc.short))
			g.Expect(Long()).To(MatchRegexp(tc.long))
		})
	}
}

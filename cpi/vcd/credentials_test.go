// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A volume is a directory as kubelet mounts a Secret.
type volume struct {
	dir string
	n   int
}

func (v *volume) write(t *testing.T, files map[string]string) {
	t.Helper()
	g := NewWithT(t)
	v.n++
	data := filepath.Join(v.dir, fmt.Sprintf("..%d", v.n))
	g.Expect(os.Mkdir(data, 0o700)).To(Succeed())
	for name, content := range files {
		g.Expect(os.WriteFile(filepath.Join(data, name), []byte(content), 0o600)).To(Succeed())
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name))
	}
	g.Expect(os.Symlink(filepath.Base(data), filepath.Join(v.dir, "..tmp"))).To(Succeed())
	g.Expect(os.Rename(filepath.Join(v.dir, "..tmp"), filepath.Join(v.dir, "..data"))).To(Succeed())
}

func TestCredentials(t *testing.T) {
	tests := []struct {
		name  string
		org   string
		files map[string]string
		want  vcd.Credentials
		wrong string
	}{
		{
			name:  "a user with a password",
			files: map[string]string{"username": "u\n", "password": "p\n"},
			want:  vcd.Credentials{Username: "u", Password: "p"},
		},
		{
			name:  "a user of another organization",
			files: map[string]string{"username": "system/administrator", "password": "p"},
			want:  vcd.Credentials{Username: "system/administrator", Password: "p"},
		},
		{
			name:  "the organization of the user is added",
			org:   "users",
			files: map[string]string{"username": "u", "password": "p"},
			want:  vcd.Credentials{Username: "users/u", Password: "p"},
		},
		{
			name:  "a token needs no user",
			org:   "users",
			files: map[string]string{"refreshToken": "t\n"},
			want:  vcd.Credentials{Username: "users/", APIToken: "t"},
		},
		{
			name:  "empty files count as none",
			files: map[string]string{"username": "u", "password": "p", "refreshToken": ""},
			want:  vcd.Credentials{Username: "u", Password: "p"},
		},
		{name: "nothing", want: vcd.Credentials{}, wrong: "neither a refreshToken nor"},
		{
			name:  "a user without a password",
			files: map[string]string{"username": "u"},
			want:  vcd.Credentials{},
			wrong: "neither a refreshToken nor",
		},
		{
			name:  "too many slashes",
			files: map[string]string{"username": "a/b/c", "password": "hunter2"},
			want:  vcd.Credentials{},
			wrong: "more than one slash",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			v := &volume{dir: t.TempDir()}
			v.write(t, tt.files)

			c, _, err := NewCredentials(v.dir, vcdconfig.VCD{UserOrg: tt.org}, time.Now).Current()

			if tt.wrong != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(tt.wrong), ContainSubstring(v.dir),
					Not(ContainSubstring("hunter2")))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c).To(Equal(tt.want))
		})
	}
}

func TestCredentialsThatChangeAreReadAgain(t *testing.T) {
	g := NewWithT(t)
	v := &volume{dir: t.TempDir()}
	now := time.Now()
	v.write(t, map[string]string{"username": "u", "password": "old"})
	credentials := NewCredentials(v.dir, vcdconfig.VCD{}, func() time.Time { return now })
	_, first, err := credentials.Current()
	g.Expect(err).NotTo(HaveOccurred())

	v.write(t, map[string]string{"username": "u"})
	now = now.Add(5 * time.Second)
	_, _, err = credentials.Current()
	g.Expect(err).To(MatchError(ContainSubstring("neither")))

	v.write(t, map[string]string{"username": "u", "password": "new"})
	now = now.Add(5 * time.Second)
	healed, version, err := credentials.Current()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(healed.Password).To(Equal("new"))
	g.Expect(version).NotTo(Equal(first))
	g.Expect(fmt.Sprintf("%v %+v %#v", healed, healed, healed)).NotTo(ContainSubstring("new"))
}

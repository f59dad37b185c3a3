// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// NewCredentials returns the credentials in the files username, password and refreshToken of dir. Missing files are
// replaced by values of the configuration.
func NewCredentials(dir string, c vcdconfig.VCD, now func() time.Time) *ccmconfig.Files[vcd.Credentials] {
	parse := func(files map[string]string) (vcd.Credentials, error) {
		out := vcd.Credentials{Username: c.User, Password: string(c.Secret), APIToken: string(c.RefreshToken)}
		out.Username = cmp.Or(files["username"], out.Username)
		out.Password = cmp.Or(files["password"], out.Password)
		out.APIToken = cmp.Or(files["refreshToken"], out.APIToken)
		return completeUser(out, c.UserOrg)
	}
	names := []string{"username", "password", "refreshToken"}
	return &ccmconfig.Files[vcd.Credentials]{Dir: dir, Names: names, Parse: parse, Now: now}
}

// completeUser validates credentials and adds the organization of the user.
func completeUser(c vcd.Credentials, org string) (vcd.Credentials, error) {
	problem := ""
	switch {
	case c.APIToken == "" && (c.Username == "" || c.Password == ""):
		problem = "the Secret has neither a refreshToken nor a username with a password: add one of them"
	case strings.Count(c.Username, "/") > 1:
		problem = "username has more than one slash: use user or org/user"
	case strings.HasPrefix(c.Username, "/") || strings.HasSuffix(c.Username, "/"):
		problem = "username must not begin or end with a slash: use user or org/user"
	case org != "" && !strings.Contains(c.Username, "/"):
		c.Username = org + "/" + c.Username
	}
	if problem != "" {
		return vcd.Credentials{}, errors.New(problem)
	}
	return c, nil
}

package vcd

import (
	"errors"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// NewCredentials returns the credentials in the files username, password and refreshToken of dir; the configuration has those that
// are in no file.
func NewCredentials(dir string, c vcdconfig.VCD, now func() time.Time) *ccmconfig.Files[vcd.Credentials] {
	parse := func(files map[string]string) (vcd.Credentials, error) {
		out := vcd.Credentials{Username: c.User, Password: string(c.Secret), APIToken: string(c.RefreshToken)}
		for name, into := range map[string]*string{"username": &out.Username, "password": &out.Password, "refreshToken": &out.APIToken} {
			if files[name] != "" {
				*into = files[name]
			}
		}
		return completeUser(out, c.UserOrg)
	}
	return &ccmconfig.Files[vcd.Credentials]{Dir: dir, Names: []string{"username", "password", "refreshToken"}, Parse: parse, Now: now}
}

// completeUser checks credentials and adds the organisation of the user.
func completeUser(c vcd.Credentials, org string) (vcd.Credentials, error) {
	switch {
	case c.APIToken == "" && (c.Username == "" || c.Password == ""):
		return vcd.Credentials{}, errors.New("there is neither a refreshToken nor a username with a password: write one of them into the Secret")
	case strings.Count(c.Username, "/") > 1:
		return vcd.Credentials{}, errors.New("username has more than one slash: write user, or org/user")
	case strings.HasPrefix(c.Username, "/") || strings.HasSuffix(c.Username, "/"):
		return vcd.Credentials{}, errors.New("username lacks what must be before or after its slash: write user, or org/user")
	case org != "" && !strings.Contains(c.Username, "/"):
		c.Username = org + "/" + c.Username
	}
	return c, nil
}

// SPDX-License-Identifier: Apache-2.0

package nodeproxy

import (
	_ "embed"
	"net/url"
	"strings"
)

//go:embed prepare.sh
var prepareSource string

// profile returns a script for login shells. It also defines a function that runs kubeadm without the variables.
func (s Settings) profile() string {
	variables := s.variables()
	if len(variables) == 0 {
		return ""
	}
	var script strings.Builder
	var without strings.Builder
	for _, v := range variables {
		script.WriteString("export " + v.name + "=" + quote(v.value) + "\n")
		without.WriteString(" -u " + v.name)
	}
	script.WriteString(notOfKubeadm)
	script.WriteString("kubeadm() {\n\tenv" + without.String() + " kubeadm \"$@\"\n}\n")
	return script.String()
}

// prepare returns the script that configures package managers, with the settings as its variables.
func (s Settings) prepare() string {
	password := ""
	if hasCredentials(s.HTTP) || hasCredentials(s.HTTPS) {
		password = "yes"
	}
	return strings.NewReplacer(
		"http_proxy=''", "http_proxy="+quote(literal(s.HTTP)),
		"https_proxy=''", "https_proxy="+quote(literal(s.HTTPS)),
		"no_proxy=''", "no_proxy="+quote(s.exceptions()),
		"password=''", "password="+quote(password),
	).Replace(prepareSource)
}

// quote returns text as one word of a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// literal escapes the character of the URL of a proxy that package managers expand. Only the user name and the password can
// contain it.
func literal(proxy string) string {
	return strings.ReplaceAll(proxy, "$", "%24")
}

// hasCredentials reports whether the URL of a proxy contains credentials.
func hasCredentials(proxy string) bool {
	parsed, err := url.Parse(proxy)
	return err != nil || parsed.User != nil
}

// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// plainText matches text that needs no quoting in configuration files and environments.
var plainText = regexp.MustCompile(`^[!#$%&()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+$`)

// directHost matches a host or a domain, with an optional port.
var directHost = regexp.MustCompile(`^\.?[0-9A-Za-z]([0-9A-Za-z._\-]*[0-9A-Za-z])?(:[0-9]{1,5})?$`)

// proxyErrors validates the settings of a proxy.
func proxyErrors(spec *infrav1.ProxySpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(proxyURLErrors(spec.HTTPProxy, path.Child("httpProxy")),
		proxyURLErrors(spec.HTTPSProxy, path.Child("httpsProxy")))
	for i, host := range spec.NoProxy {
		errs = append(errs, directErrors(host, path.Child("noProxy").Index(i))...)
	}
	if len(spec.NoProxy) > 0 && spec.HTTPProxy == "" && spec.HTTPSProxy == "" {
		errs = append(errs, field.Forbidden(path.Child("noProxy"),
			"requires a proxy: set httpProxy or httpsProxy, or remove noProxy"))
	}
	return errs
}

// proxyURLErrors validates the URL of a proxy. Its errors do not contain the password.
func proxyURLErrors(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	proxy, err := url.Parse(value)
	if err != nil || !plainText.MatchString(value) {
		return invalid(path, "(redacted)", "must be a URL without spaces and quotes, such as http://proxy.example.com:3128; percent-encode special characters of a password")
	}
	shown := proxy.Redacted()
	switch {
	case proxy.Scheme != "http" && proxy.Scheme != "https":
		return invalid(path, shown, "must begin with http:// or https://, such as http://proxy.example.com:3128")
	case proxy.Hostname() == "":
		return invalid(path, shown, "must have a host, such as http://proxy.example.com:3128")
	case strings.Trim(proxy.Path, "/") != "" || proxy.RawQuery != "" || proxy.Fragment != "":
		return invalid(path, shown, "must not have a path, query or fragment after host and port")
	}
	return nil
}

// directErrors validates a destination that is reached without a proxy.
func directErrors(value string, path *field.Path) field.ErrorList {
	if address, err := netip.ParseAddr(value); err == nil && address.Zone() == "" || directHost.MatchString(value) {
		return nil
	}
	if _, err := netip.ParsePrefix(value); err == nil {
		return nil
	}
	return invalid(path, value, "must be one host, domain, address or network, such as mirror.example.com, .corp.example.com, 10.0.0.5 or 10.0.0.0/8, without scheme and wildcard")
}

// proxyWarnings returns warnings about settings that are valid but not recommended.
func proxyWarnings(spec *infrav1.ProxySpec) []string {
	var warnings []string
	if spec.HTTPProxy != "" && spec.HTTPSProxy == "" {
		warnings = append(warnings, "spec.proxy.httpsProxy: without it, nodes pull images over https without a proxy")
	}
	for name, value := range map[string]string{"httpProxy": spec.HTTPProxy, "httpsProxy": spec.HTTPSProxy} {
		if proxy, err := url.Parse(value); err == nil && proxy.User != nil {
			warnings = append(warnings,
				"spec.proxy."+name+": its password is visible to all users who can read this object, nodes or pods")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// prefix is the prefix of all annotations. Annotations that continue with "avi" are compatible with VMware's CPI.
const prefix = "service.beta.kubernetes.io/vcloud-"

// settings are the parsed values of the annotations.
type settings struct {
	service.Settings

	sslPorts                        []int
	alias                           string
	noTermination                   bool
	internal                        bool
	subnet                          netip.Prefix
	ipSpace                         string
	engineGroup                     string
	algorithm                       string
	monitor                         lb.Monitor
	check                           lb.HealthCheck
	redirect                        int
	requestHeaders, responseHeaders lb.Headers
	profiles                        map[int]lb.Application
	aliases                         map[int]string
	secret                          string
	secrets                         map[int]string
	preserve                        bool
}

// shareKey matches keys that fit into the description of a virtual service, together with the rest of its marker.
var shareKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// annotations are all annotations of this backend, as docs/reference/annotations.md lists them. To add one, add a line,
// use its setting in dialect.go, and run the test of the page with -update.
var annotations = service.Annotations[settings]{
	Prefix: prefix,
	Older:  []string{"intended-addresses", "standing-at"},
	Table: []service.Annotation[settings]{
		{
			Name:    "avi-ssl-ports",
			Value:   "ports",
			Example: "443, 8443",
			Help:    "Ports of the Service on which the load balancer terminates TLS. Their appProtocol determines the mode: `https` (HTTP), otherwise plain TCP with TLS, which requires the premium feature set. Ports with appProtocol `https` terminate TLS even if they are not listed.",
			Parse:   func(w *settings, v string) (err error) { w.sslPorts, err = service.Ports(v); return err },
		},
		{
			Name:    "avi-ssl-cert-alias",
			Value:   "alias",
			Example: "shop-2026",
			Help:    "Alias of the certificate in the organization's certificate library, for all ports that terminate TLS. The default is the alias in the configuration, otherwise `<cluster id>-cert`.",
			Parse:   func(w *settings, v string) error { w.alias = v; return nil },
		},
		{
			Name:    "avi-ssl-no-termination",
			Value:   "true or false",
			Example: "true",
			Help:    "TLS passthrough, for example to an ingress controller: all ports are plain TCP, regardless of their appProtocol.",
			Parse:   func(w *settings, v string) (err error) { w.noTermination, err = service.Bool(v); return err },
		},
		{
			Name:    "load-balancer-ip",
			Value:   "addresses",
			Example: "203.0.113.7",
			Help:    "Address of the load balancer, or one of each family; takes precedence over `spec.loadBalancerIP`. It must belong to the gateway or to one of its IP Spaces. A private address makes the load balancer internal.",
			Parse:   func(w *settings, v string) (err error) { w.Addresses, err = service.Addresses(v); return err },
		},
		{
			Name:    "internal",
			Value:   "true or false",
			Example: "true",
			Help:    "The load balancer is reachable only inside the organization. Its address comes from the internal subnet of the annotation, otherwise from those of the configuration, otherwise from the one-arm range, and is not translated.",
			Parse:   func(w *settings, v string) (err error) { w.internal, err = service.Bool(v); return err },
		},
		{
			Name:    "internal-subnet",
			Value:   "CIDR",
			Example: "192.168.9.0/24",
			Help:    "Subnet for the address of an internal load balancer, within `loadbalancer.internalSubnets` if that is set. Addresses of Nodes and VMs are skipped.",
			Parse:   func(w *settings, v string) (err error) { w.subnet, err = netip.ParsePrefix(v); return err },
		},
		{
			Name:    "gateway",
			Value:   "name",
			Example: "dmz",
			Help:    "Name of the gateway in the configuration (`loadbalancer.gateways`) on which the load balancer is created. When it changes, the load balancer moves and gets another address.",
			Parse:   func(w *settings, v string) error { w.Location = v; return nil },
		},
		{
			Name:    "ip-space",
			Value:   "name",
			Example: "public-2",
			Help:    "Name of the IP Space for the address; any that the gateway can use, if empty.",
			Parse:   func(w *settings, v string) error { w.ipSpace = v; return nil },
		},
		{
			Name:    "engine-group",
			Value:   "name",
			Example: "dedicated",
			Help:    "Name of the service engine group of the virtual services, which must be assigned to the gateway; any with free capacity, if empty. When it changes, virtual services are recreated and connections break.",
			Parse:   func(w *settings, v string) error { w.engineGroup = v; return nil },
		},
		{
			Name:    "algorithm",
			Value:   "algorithm",
			Example: "LEAST_CONNECTIONS",
			Help:    "Load balancing algorithm: one of " + code(lb.Algorithms()) + ". Without it, new pools use `ROUND_ROBIN`, and the algorithm of existing pools is not changed.",
			Parse: func(w *settings, v string) (err error) {
				w.algorithm, err = oneOf(strings.ToUpper(v), lb.Algorithms())
				return err
			},
		},
		{
			Name:    "health-monitor",
			Value:   "monitor",
			Example: "ping",
			Help:    "Health monitor of the nodes: `tcp`, `udp`, `ping`, `http`, `https` or `none`. The default is `tcp` for TCP and `udp` for UDP. UDP ports support only `udp`, `ping` and `none`. This also applies to `externalTrafficPolicy: Local`, because nodes without endpoints do not accept TCP connections on the node port.",
			Parse: func(w *settings, v string) error {
				m, err := oneOf(strings.ToUpper(v), []string{"TCP", "UDP", "PING", "HTTP", "HTTPS", "NONE"})
				w.monitor = lb.Monitor(m)
				return err
			},
		},
		{
			Name:    "health-interval",
			Value:   "duration",
			Example: "10s",
			Help:    "Time between two probes of a node, in whole seconds; 10 seconds by default. Like all settings of health checks, it requires VCD 10.6.",
			Parse:   func(w *settings, v string) (err error) { w.check.Interval, err = seconds(v); return err },
		},
		{
			Name:    "health-timeout",
			Value:   "duration",
			Example: "3s",
			Help:    "Time to wait for the response to a probe, in whole seconds and less than the interval; 4 seconds by default. Requires VCD 10.6.",
			Parse:   func(w *settings, v string) (err error) { w.check.Timeout, err = seconds(v); return err },
		},
		{
			Name:    "health-failures",
			Value:   "number",
			Example: "2",
			Help:    "Failed probes in a row after which a node gets no traffic, 1 to 50; 3 by default. Requires VCD 10.6.",
			Parse:   func(w *settings, v string) (err error) { w.check.Failures, err = count(v); return err },
		},
		{
			Name:    "health-successes",
			Value:   "number",
			Example: "2",
			Help:    "Successful probes in a row after which a node gets traffic again, 1 to 50; 3 by default. Requires VCD 10.6.",
			Parse:   func(w *settings, v string) (err error) { w.check.Successes, err = count(v); return err },
		},
		{
			Name:    "health-path",
			Value:   "path",
			Example: "/healthz",
			Help:    "Path that probes of the health monitors `http` and `https` request; `/` by default. Requires VCD 10.6.",
			Parse:   func(w *settings, v string) error { w.check.Path = v; return nil },
		},
		{
			Name:    "health-codes",
			Value:   "classes",
			Example: "2xx, 3xx",
			Help: "Classes of status codes that probes of the health monitors `http` and `https` accept: " +
				code(lb.StatusClasses()) + "; `2xx` and `3xx` by default. Requires VCD 10.6.",
			Parse: func(w *settings, v string) (err error) { w.check.Codes, err = statusClasses(v); return err },
		},
		{
			Name:    "http-redirect-https",
			Value:   "port",
			Example: "443",
			Help:    "Port to which the load balancer redirects the requests of ports with appProtocol `http`, as HTTPS (status code 301). Requires VCD 10.5.",
			Parse:   func(w *settings, v string) (err error) { w.redirect, err = count(v); return err },
		},
		{
			Name:    "http-request-headers",
			Value:   "headers",
			Example: "X-Forwarded-Proto: https",
			Help:    "Headers of requests to the nodes, for ports with appProtocol `http` or `https`, one a line: `Name: value` sets a header, `Name:` removes it. At most 16. Requires VCD 10.5.",
			Parse:   func(w *settings, v string) (err error) { w.requestHeaders, err = headers(v); return err },
		},
		{
			Name:    "http-response-headers",
			Value:   "headers",
			Example: "Strict-Transport-Security: max-age=31536000",
			Help:    "Headers of responses to clients, for ports with appProtocol `http` or `https`, one a line: `Name: value` sets a header, `Name:` removes it. At most 16. Requires VCD 10.5.",
			Parse:   func(w *settings, v string) (err error) { w.responseHeaders, err = headers(v); return err },
		},
		{
			Name:    "port-profiles",
			Value:   "port=profile, …",
			Example: "443=l4, 8443=https",
			Help:    "Protocols of individual ports: `l4` (plain TCP or UDP), `l4-tls`, `http` or `https`; takes precedence over appProtocol and the SSL annotations.",
			Parse:   func(w *settings, v string) (err error) { w.profiles, err = profiles(v); return err },
		},
		{
			Name:    "port-certificates",
			Value:   "port=alias, …",
			Example: "443=shop, 8443=admin",
			Help:    "Aliases of certificates in the certificate library for individual ports.",
			Parse:   func(w *settings, v string) (err error) { w.aliases, err = service.PerPort(v); return err },
		},
		{
			Name:    "tls-secret",
			Value:   "name, or port=name, …",
			Example: "shop-tls",
			Help:    "Secret of type `kubernetes.io/tls` in the namespace of the Service, whose certificate is imported into the certificate library; takes precedence over aliases. When the Secret changes, the certificate is replaced. The cloud controller manager needs a RoleBinding to read the Secret: see the guide on load balancers.",
			Parse: func(w *settings, v string) (err error) {
				if !strings.Contains(v, "=") {
					w.secret = v
					return nil
				}
				w.secrets, err = service.PerPort(v)
				return err
			},
		},
		{
			Name:    "preserve-client-ip",
			Value:   "true or false",
			Example: "true",
			Help:    "Preserves client addresses for nodes. Requires a gateway in transparent mode and the right to manage IP sets.",
			Parse:   func(w *settings, v string) (err error) { w.preserve, err = service.Bool(v); return err },
		},
		{
			Name:    "share-ip",
			Value:   "key",
			Example: "dns",
			Help:    "Key of a shared address: Services of the cluster with the same key share one address if their ports differ. A key has 1 to 32 letters, digits, dots, dashes and underscores.",
			Parse: func(w *settings, v string) error {
				if !shareKey.MatchString(v) {
					return fmt.Errorf("%q is longer than 32 characters, or contains characters other than letters, digits and ._-", v)
				}
				w.Share = v
				return nil
			},
		},
		{
			Name:    "dry-run",
			Value:   "true or false",
			Example: "true",
			Help:    "Dry run: nothing is changed, and an event of the Service lists the plan. The deletion of the Service is not affected.",
			Parse:   func(w *settings, v string) (err error) { w.DryRun, err = service.Bool(v); return err },
		},
	},
}

// seconds parses a duration of whole seconds.
func seconds(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && (d < time.Second || d%time.Second != 0) {
		err = fmt.Errorf("%q is not a number of whole seconds: use a value such as 5s", s)
	}
	return d, err
}

// count parses a positive number.
func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a positive number", s)
	}
	return n, nil
}

// statusClasses parses a list of classes of status codes.
func statusClasses(s string) (string, error) {
	var out []string
	for word := range strings.SplitSeq(s, ",") {
		class, err := oneOf(strings.ToLower(strings.TrimSpace(word)), lb.StatusClasses())
		if err != nil {
			return "", fmt.Errorf("%w: use classes of status codes, %s", err, strings.Join(lb.StatusClasses(), ", "))
		}
		out = append(out, class)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ","), nil
}

const (
	maxHeaders     = 16
	maxHeaderValue = 1024
)

// headerName matches names of headers.
var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// framing are headers that frame requests and connections. Other values would let clients smuggle requests.
var framing = []string{
	"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
}

// headers parses headers, one a line.
func headers(s string) (lb.Headers, error) {
	lines := map[string]string{}
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, hasValue := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		value = strings.TrimSpace(value)
		key := strings.ToLower(name)
		switch {
		case !hasValue || !headerName.MatchString(name):
			return "", fmt.Errorf("%q is not a header: use lines such as \"X-Forwarded-Proto: https\"", line)
		case slices.Contains(framing, key):
			return "", fmt.Errorf("the header %s frames requests and cannot be changed: remove it", name)
		case len(value) > maxHeaderValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return "", fmt.Errorf("the value of the header %s is invalid: use at most %d characters of ASCII", name, maxHeaderValue)
		case lines[key] != "":
			return "", fmt.Errorf("the header %s is duplicated: remove one of the lines", name)
		}
		lines[key] = lb.HeaderLine(name, value)
	}
	if len(lines) > maxHeaders {
		return "", fmt.Errorf("%d headers are too many: use at most %d", len(lines), maxHeaders)
	}
	var sorted []string
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		sorted = append(sorted, lines[key])
	}
	return lb.Headers(strings.Join(sorted, "\n")), nil
}

func oneOf(s string, known []string) (string, error) {
	if !slices.Contains(known, s) {
		return "", fmt.Errorf("%q is unknown", s)
	}
	return s, nil
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

var profileNames = map[string]lb.Application{
	"l4":     lb.L4,
	"tcp":    lb.L4,
	"udp":    lb.L4,
	"l4-tls": lb.L4TLS,
	"http":   lb.HTTP,
	"https":  lb.HTTPS,
}

func profiles(s string) (map[int]lb.Application, error) {
	values, err := service.PerPort(s)
	if err != nil {
		return nil, err
	}
	out := map[int]lb.Application{}
	for n, value := range values {
		application, ok := profileNames[strings.ToLower(value)]
		if !ok {
			return nil, fmt.Errorf("the profile %q is unknown", value)
		}
		out[n] = application
	}
	return out, nil
}

// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// prefix of all annotations. Those that go on with "avi" are VMware's.
const prefix = "service.beta.kubernetes.io/vcloud-"

// settings are what annotations ask for.
type settings struct {
	service.Asked

	sslPorts      []int
	alias         string
	noTermination bool
	internal      bool
	subnet        netip.Prefix
	ipSpace       string
	engineGroup   string
	algorithm     string
	monitor       lb.Monitor
	interval      time.Duration
	profiles      map[int]lb.Application
	aliases       map[int]string
	secret        string
	secrets       map[int]string
	preserve      bool
}

// shareKey matches what fits into the description of a virtual service, with the rest of its marker.
var shareKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// annotations are all that there are, as docs/reference/annotations.md lists them. To add one, add a line, use its
// setting in dialect.go, and run the test of the page with -update.
var annotations = service.Annotations[settings]{
	Prefix: prefix,
	Older:  []string{"intended-addresses", "standing-at"},
	Table: []service.Annotation[settings]{
		{
			Name:    "avi-ssl-ports",
			Value:   "ports",
			Example: "443, 8443",
			Help: "Ports of the Service on which the load balancer ends TLS. Their appProtocol says how: `https` (HTTP), " +
				"else plain TCP with TLS, which takes " +
				"the premium feature set. Ports with appProtocol `https` end TLS without being named.",
			Parse: func(w *settings, v string) (err error) { w.sslPorts, err = service.Ports(v); return err },
		},
		{
			Name:    "avi-ssl-cert-alias",
			Value:   "alias",
			Example: "shop-2026",
			Help: "Alias of the certificate in the organization's certificate library, for all ports that end TLS. " +
				"Without it the alias in the configuration is used, else `<cluster id>-cert`.",
			Parse: func(w *settings, v string) error { w.alias = v; return nil },
		},
		{
			Name:    "avi-ssl-no-termination",
			Value:   "true or false",
			Example: "true",
			Help: "TLS passes through, for example to an ingress controller: all ports are plain TCP, whatever their " +
				"appProtocol.",
			Parse: func(w *settings, v string) (err error) { w.noTermination, err = service.Bool(v); return err },
		},
		{
			Name:    "load-balancer-ip",
			Value:   "addresses",
			Example: "203.0.113.7",
			Help: "The address of the load balancer, or one of each family, not more; goes before `spec.loadBalancerIP`. It " +
				"must be one of the gateway's, " +
				"in an IP Space of it, or a private one, which makes the load balancer internal.",
			Parse: func(w *settings, v string) (err error) { w.Addresses, err = service.Addresses(v); return err },
		},
		{
			Name:    "internal",
			Value:   "true or false",
			Example: "true",
			Help: "The load balancer is reached inside the organization only: its address is taken from the internal " +
				"subnet of " +
				"the annotation, else from those of the configuration, else from the one-arm range, and not translated.",
			Parse: func(w *settings, v string) (err error) { w.internal, err = service.Bool(v); return err },
		},
		{
			Name:    "internal-subnet",
			Value:   "CIDR",
			Example: "192.168.9.0/24",
			Help: "Subnet from which an internal load balancer takes its address, one in " +
				"`loadbalancer.internalSubnets` if " +
				"that is set. What Nodes and VMs have is passed over.",
			Parse: func(w *settings, v string) (err error) { w.subnet, err = netip.ParsePrefix(v); return err },
		},
		{
			Name:    "gateway",
			Value:   "name",
			Example: "dmz",
			Help: "Name of one of the gateways in the configuration (`loadbalancer.gateways`), where the load balancer " +
				"is made. When it changes, the load balancer moves, to another address.",
			Parse: func(w *settings, v string) error { w.Location = v; return nil },
		},
		{
			Name:    "ip-space",
			Value:   "name",
			Example: "public-2",
			Help:    "Name of the IP Space that the address is claimed from; any that the gateway can use, if empty.",
			Parse:   func(w *settings, v string) error { w.ipSpace = v; return nil },
		},
		{
			Name:    "engine-group",
			Value:   "name",
			Example: "dedicated",
			Help: "Name of the service engine group of the virtual services, one that is assigned to the gateway; any " +
				"with room, if empty. " +
				"When it changes, virtual services are made again: connections break.",
			Parse: func(w *settings, v string) error { w.engineGroup = v; return nil },
		},
		{
			Name:    "algorithm",
			Value:   "algorithm",
			Example: "LEAST_CONNECTIONS",
			Help: "How nodes are chosen: one of " + code(lb.Algorithms()) +
				". Without it, new pools are `ROUND_ROBIN` and what is set in VCD stays.",
			Parse: func(w *settings, v string) (err error) {
				w.algorithm, err = oneOf(strings.ToUpper(v), lb.Algorithms())
				return err
			},
		},
		{
			Name:    "health-monitor",
			Value:   "monitor",
			Example: "ping",
			Help: "How it is found out which nodes work: one of `tcp`, `udp`, `ping`, `http`, `https` and `none`. " +
				"Without it, `tcp` for TCP and `udp` for UDP; " +
				"with `externalTrafficPolicy: Local`, too: nodes without endpoints do not answer TCP on the node port.",
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
			Help: "Time between two probes of a node. The monitors of VCD that pools have here take none: it is not " +
				"followed, " +
				"and an event says so.",
			Parse: func(w *settings, v string) (err error) {
				if w.interval, err = time.ParseDuration(v); err == nil && w.interval < time.Second {
					err = fmt.Errorf("%s is less than a second", v)
				}
				return err
			},
		},
		{
			Name:    "port-profiles",
			Value:   "port=profile, …",
			Example: "443=l4, 8443=https",
			Help: "What the load balancer understands of single ports: `l4` (plain TCP or UDP), `l4-tls`, `http` or " +
				"`https`; goes before appProtocol and the annotations on SSL.",
			Parse: func(w *settings, v string) (err error) { w.profiles, err = profiles(v); return err },
		},
		{
			Name:    "port-certificates",
			Value:   "port=alias, …",
			Example: "443=shop, 8443=admin",
			Help:    "Aliases of certificates in the certificate library for single ports.",
			Parse:   func(w *settings, v string) (err error) { w.aliases, err = service.PerPort(v); return err },
		},
		{
			Name:    "tls-secret",
			Value:   "name, or port=name, …",
			Example: "shop-tls",
			Help: "Secret of type `kubernetes.io/tls` in the namespace of the Service, whose certificate is imported " +
				"into the certificate library; goes before aliases. " +
				"When the Secret changes, so does the certificate; the old one is removed. The role by which " +
				"the cloud controller manager reads it must be bound: see the guide on load balancers.",
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
			Help: "Nodes see the addresses of clients. Takes a gateway in transparent mode and the right to " +
				"manage IP sets.",
			Parse: func(w *settings, v string) (err error) { w.preserve, err = service.Bool(v); return err },
		},
		{
			Name:    "share-ip",
			Value:   "key",
			Example: "dns",
			Help: "Services of the cluster with the same key have one address together, if their ports differ. A key has " +
				"1 to 32 letters, digits, dots, dashes and underscores.",
			Parse: func(w *settings, v string) error {
				if !shareKey.MatchString(v) {
					return fmt.Errorf("%q has more than 32 characters, or others than letters, digits and ._-", v)
				}
				w.Share = v
				return nil
			},
		},
		{
			Name:    "dry-run",
			Value:   "true or false",
			Example: "true",
			Help: "Nothing is changed: what would be done is reported in an event of the Service. Deletion is not held " +
				"back by it.",
			Parse: func(w *settings, v string) (err error) { w.DryRun, err = service.Bool(v); return err },
		},
	},
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

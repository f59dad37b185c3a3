package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// prefix of all annotations. Those that begin with "avi" are VMware's.
const prefix = "service.beta.kubernetes.io/vcloud-"

// Annotations that are not wishes of people.
const (
	// IntentAnnotation has the addresses that the load balancer is meant to have; it is written before their first use.
	IntentAnnotation = prefix + "intended-addresses"
	// PlacesAnnotation has the ids of the places where something of the load balancer may be; it is written before anything is made there.
	PlacesAnnotation = prefix + "standing-at"
	// GatewayAnnotation names the gateway.
	GatewayAnnotation = prefix + "gateway"
	// DryRunAnnotation lets the plan for the Service be told as an event, and changes nothing.
	DryRunAnnotation = prefix + "dry-run"
)

// wishes are what annotations ask for.
type wishes struct {
	sslPorts      []int
	alias         string
	noTermination bool
	addresses     []netip.Addr
	internal      bool
	subnet        netip.Prefix
	gateway       string
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
	share         string
	intent        []netip.Addr
	standing      []string
	dryRun        bool
}

// An annotation is one that people may write on a Service.
type annotation struct {
	name    string // without the prefix
	value   string // what its value is
	example string
	says    string
	parse   func(w *wishes, value string) error
}

// annotations are all of them, as docs/reference/annotations.md lists them. To add one, add a line, read its wish in desired.go, and run
// the test of the page with -update.
var annotations = []annotation{
	{
		"avi-ssl-ports", "ports", "443, 8443", "Ports of the Service on which the load balancer ends TLS. Their appProtocol says how: `https` (HTTP), else plain TCP with TLS, which takes " +
			"the premium feature set. Ports with appProtocol `https` end TLS without being named.",
		func(w *wishes, v string) (err error) { w.sslPorts, err = ports(v); return err },
	},
	{
		"avi-ssl-cert-alias", "alias", "shop-2026", "Alias of the certificate in the organisation's certificate library, for all ports that end TLS. " +
			"Without it the alias in the configuration is used, else `<cluster id>-cert`.",
		func(w *wishes, v string) error { w.alias = v; return nil },
	},
	{
		"avi-ssl-no-termination", "true or false", "true", "TLS passes through, for example to an ingress controller: all ports are plain TCP, whatever their appProtocol.",
		func(w *wishes, v string) (err error) { w.noTermination, err = boolean(v); return err },
	},
	{
		"load-balancer-ip", "addresses", "203.0.113.7", "The address of the load balancer, or one of each family; goes before `spec.loadBalancerIP`. It must be one of the gateway's, " +
			"in an IP Space of it, or a private one, which makes the load balancer internal.",
		func(w *wishes, v string) (err error) { w.addresses, err = Addresses(v); return err },
	},
	{
		"internal", "true or false", "true", "The load balancer is reached inside the organisation only: its address is taken from the subnet for internal load balancers, else from the one-arm range, and not translated.",
		func(w *wishes, v string) (err error) { w.internal, err = boolean(v); return err },
	},
	{
		"internal-subnet", "CIDR", "192.168.9.0/24", "Subnet from which internal load balancers take their address. Nothing else may use it.",
		func(w *wishes, v string) (err error) { w.subnet, err = netip.ParsePrefix(v); return err },
	},
	{
		"gateway", "name", "dmz", "Name of one of the gateways in the configuration (`loadbalancer.gateways`), where the load balancer is made. When it changes, the load balancer moves, to another address.",
		func(w *wishes, v string) error { w.gateway = v; return nil },
	},
	{
		"ip-space", "name", "public-2", "Name of the IP Space that the address is claimed from; any that the gateway can use, if empty.",
		func(w *wishes, v string) error { w.ipSpace = v; return nil },
	},
	{
		"engine-group", "name", "dedicated", "Name of the service engine group of the virtual services, one that is assigned to the gateway; any with room, if empty. " +
			"When it changes, virtual services are made again: connections break.",
		func(w *wishes, v string) error { w.engineGroup = v; return nil },
	},
	{
		"algorithm", "algorithm", "LEAST_CONNECTIONS", "How nodes are chosen: one of " + code(lb.Algorithms()) + ". Without it, new pools are `ROUND_ROBIN` and what somebody set in VCD stays.",
		func(w *wishes, v string) (err error) {
			w.algorithm, err = oneOf(strings.ToUpper(v), lb.Algorithms())
			return err
		},
	},
	{
		"health-monitor", "monitor", "ping", "How it is found out which nodes work: one of `tcp`, `udp`, `ping`, `http`, `https` and `none`. Without it, `tcp` for TCP and `udp` for UDP; " +
			"with `externalTrafficPolicy: Local`, `http` on the health check node port, where VCD can, else `tcp`, as nodes without endpoints do not answer.",
		func(w *wishes, v string) error {
			m, err := oneOf(strings.ToUpper(v), []string{"TCP", "UDP", "PING", "HTTP", "HTTPS", "NONE"})
			w.monitor = lb.Monitor(m)
			return err
		},
	},
	{
		"health-interval", "duration", "10s", "Time between two probes of a node, where VCD can set it.",
		func(w *wishes, v string) (err error) {
			if w.interval, err = time.ParseDuration(v); err == nil && w.interval < time.Second {
				err = fmt.Errorf("%s is less than a second", v)
			}
			return err
		},
	},
	{
		"port-profiles", "port=profile, …", "443=l4, 8443=https", "What the load balancer understands of single ports: `l4` (plain TCP or UDP), `l4-tls`, `http` or `https`; goes before appProtocol and the annotations on SSL.",
		func(w *wishes, v string) (err error) { w.profiles, err = profiles(v); return err },
	},
	{
		"port-certificates", "port=alias, …", "443=shop, 8443=admin", "Aliases of certificates in the certificate library for single ports.",
		func(w *wishes, v string) (err error) { w.aliases, err = perPort(v); return err },
	},
	{
		"tls-secret", "name, or port=name, …", "shop-tls", "Secret of type `kubernetes.io/tls` in the namespace of the Service, whose certificate is imported into the certificate library; goes before aliases. " +
			"When the Secret changes, so does the certificate; the old one is removed. Somebody must bind the role by which the cloud controller manager reads it: see the guide on load balancers.",
		func(w *wishes, v string) (err error) {
			if !strings.Contains(v, "=") {
				w.secret = v
				return nil
			}
			w.secrets, err = perPort(v)
			return err
		},
	},
	{
		"preserve-client-ip", "true or false", "true", "Nodes see the addresses of clients. Takes a gateway in transparent mode and the right to manage IP sets.",
		func(w *wishes, v string) (err error) { w.preserve, err = boolean(v); return err },
	},
	{
		"share-ip", "key", "dns", "Services of the cluster with the same key have one address together, if their ports differ.",
		func(w *wishes, v string) (err error) {
			if w.share = v; strings.ContainsAny(v, " \t=") {
				err = fmt.Errorf("%q must be one word without =", v)
			}
			return err
		},
	},
	{
		"dry-run", "true or false", "true", "Nothing is changed: what would be done is told as an event of the Service. Deletion is not held back by it.",
		func(w *wishes, v string) (err error) { w.dryRun, err = boolean(v); return err },
	},
	{
		"intended-addresses", "addresses", "203.0.113.7", "Written by the cloud controller manager, before it uses an address for the first time: after a crash it goes on with this one. Leave it alone.",
		func(w *wishes, v string) (err error) { w.intent, err = Addresses(v); return err },
	},
	{
		"standing-at", "gateways", "urn:vcloud:gateway:0b4c2b5a-3f0e-4f0e-9f8e-0d1f3f6f2a11", "Written by the cloud controller manager, before it makes anything on a gateway: what the Service has is " +
			"looked for there, also when the configuration does not name the gateway any more; a `?` and a name stand for a gateway of the configuration that could not be found yet. " +
			"Leave it alone, unless the provider has deleted such a gateway: then take its URN out.",
		func(w *wishes, v string) error { w.standing = list(v); return nil },
	},
}

// read reads all annotations of the kind. What is wrong with one does not hide what is wrong with another.
func read(all map[string]string) (wishes, []lb.Finding) {
	var w wishes
	var wrong []lb.Finding
	for _, a := range annotations {
		value := strings.TrimSpace(all[prefix+a.name])
		if value == "" {
			continue
		}
		if err := a.parse(&w, value); err != nil {
			wrong = append(wrong, lb.Finding{Reason: BadAnnotation, Message: fmt.Sprintf("the annotation %s is wrong: %v; write %s, such as %q", prefix+a.name, err, a.value, a.example)})
		}
	}
	return w, wrong
}

// unknown tells of annotations with our prefix that there are not.
func unknown(all map[string]string) []lb.Finding {
	var out []lb.Finding
	for name := range all {
		rest, ours := strings.CutPrefix(name, prefix)
		if ours && !slices.ContainsFunc(annotations, func(a annotation) bool { return a.name == rest }) {
			out = append(out, lb.Finding{Reason: BadAnnotation, Message: fmt.Sprintf("the annotation %s is unknown and does nothing: correct its name or remove it", name)})
		}
	}
	slices.SortFunc(out, func(a, b lb.Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}

func boolean(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func oneOf(s string, known []string) (string, error) {
	if !slices.Contains(known, s) {
		return "", fmt.Errorf("%q is unknown", s)
	}
	return s, nil
}

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// list splits a list at commas; spaces do not matter.
func list(s string) []string {
	var out []string
	for _, x := range strings.Split(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}

func port(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is no port", s)
	}
	return n, nil
}

func ports(s string) ([]int, error) {
	var out []int
	for _, x := range list(s) {
		n, err := port(x)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// Addresses reads a list of addresses, as in [IntentAnnotation].
func Addresses(s string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, x := range list(s) {
		a, err := netip.ParseAddr(x)
		if err != nil {
			return nil, fmt.Errorf("%q is no address", x)
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// perPort reads a list of port=value.
func perPort(s string) (map[int]string, error) {
	out := map[int]string{}
	for _, x := range list(s) {
		number, value, ok := strings.Cut(x, "=")
		n, err := port(strings.TrimSpace(number))
		if value = strings.TrimSpace(value); !ok || value == "" || err != nil {
			return nil, fmt.Errorf("%q is not port=value", x)
		}
		out[n] = value
	}
	return out, nil
}

var profileNames = map[string]lb.Application{"l4": lb.L4, "tcp": lb.L4, "udp": lb.L4, "l4-tls": lb.L4TLS, "http": lb.HTTP, "https": lb.HTTPS}

func profiles(s string) (map[int]lb.Application, error) {
	values, err := perPort(s)
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

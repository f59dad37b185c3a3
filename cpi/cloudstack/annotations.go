// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// prefix is the prefix of all annotations, taken from the original controller.
const prefix = "service.beta.kubernetes.io/cloudstack-load-balancer-"

// associatedByPredecessor is the annotation that the original controller sets when it associated the requested address.
const associatedByPredecessor = prefix + "ip-associated-by-controller"

// settings are the parsed values of the annotations.
type settings struct {
	service.Settings

	proxy     bool
	notProxy  string // a value that the original controller treated as false
	hostname  string
	cidrs     []netip.Prefix
	algorithm string
	// stickiness is the requested policy of the rules; nil if none is requested.
	stickiness *cloudstack.Policy
}

// annotations are all annotations of this backend, as docs/reference/cloudstack-annotations.md lists them. To add one,
// add a line, use its setting in dialect.go, and run the test of the page with -update.
var annotations = service.Annotations[settings]{
	Prefix: prefix,
	Older:  []string{"intended-addresses", "standing-at"},
	Table: []service.Annotation[settings]{
		{
			Name:    "proxy-protocol",
			Value:   "true or false",
			Example: "true",
			Help:    "Send the PROXY protocol to the nodes on all TCP ports (`tcp-proxy`), so that they receive the addresses of clients. The servers must support it: kube-proxy passes it on, and a server without support fails. Clients in the cluster also use the load balancer (`ipMode: Proxy`).",
			Parse: func(w *settings, v string) (err error) {
				if w.proxy, err = service.Bool(v); err != nil {
					w.notProxy = v
				}
				return nil
			},
		},
		{
			Name:    "hostname",
			Value:   "hostname",
			Example: "shop.example.com",
			Help:    "Published in the status of the Service instead of the address. Make it resolve to the address.",
			Parse: func(w *settings, v string) error {
				if w.hostname = v; strings.ContainsAny(v, " /:") {
					return fmt.Errorf("%q is not a hostname", v)
				}
				return nil
			},
		},
		{
			Name:    "source-cidrs",
			Value:   "CIDRs",
			Example: "192.0.2.0/24, 198.51.100.7/32",
			Help:    "Clients that may connect. Both this annotation and `spec.loadBalancerSourceRanges` restrict clients: the annotation in the load balancer rule, the field in the firewall or the network ACL.",
			Parse:   func(w *settings, v string) (err error) { w.cidrs, err = prefixes(v); return err },
		},
		{
			Name:    "address",
			Value:   "address",
			Example: "203.0.113.7",
			Help:    "Public address of the load balancer; takes precedence over `spec.loadBalancerIP`. An address that is already associated with the network is never released. A free address is associated, and released with the Service.",
			Parse: func(w *settings, v string) (err error) {
				if w.Addresses, err = service.Addresses(v); len(w.Addresses) > 1 {
					err = fmt.Errorf("%q are several addresses", v)
				}
				return err
			},
		},
		{
			Name:    "keep-ip",
			Value:   "true or false",
			Example: "true",
			Help:    "Keeps the address associated when the Service is deleted or gets another address. The address then belongs to the account, even if the annotation is removed later.",
			Parse:   func(w *settings, v string) (err error) { w.Keep, err = service.Bool(v); return err },
		},
		{
			Name:    "network-id",
			Value:   "name or id",
			Example: "dmz",
			Help:    "Network of the configuration (`networks`) in which the load balancer is created. When it changes, the load balancer moves and gets another address.",
			Parse:   func(w *settings, v string) error { w.Location = v; return nil },
		},
		{
			Name:    "algorithm",
			Value:   "algorithm",
			Example: "leastconn",
			Help:    "Load balancing algorithm: `roundrobin` (default), `leastconn` or `source`. `sessionAffinity: ClientIP` always selects `source`.",
			Parse: func(w *settings, v string) error {
				if w.algorithm = strings.ToLower(v); !slices.Contains(algorithms(), w.algorithm) {
					return fmt.Errorf("%q is unknown", v)
				}
				return nil
			},
		},
		{
			Name:    "stickiness",
			Value:   "method and parameters",
			Example: "SourceBased expire=30m",
			Help:    "Session stickiness: `SourceBased` by the address of the client, for a time since its last connection; `LbCookie` and `AppCookie` by a cookie, for plain HTTP only. Parameters are those of CloudStack, such as `cookie-name=shop` or `nocache`. Applies to TCP ports. It replaces a policy that you created in CloudStack; without the annotation, that policy is kept.",
			Parse:   func(w *settings, v string) (err error) { w.stickiness, err = parseStickiness(v); return err },
		},
		{
			Name:    "dry-run",
			Value:   "true or false",
			Example: "true",
			Help:    "Dry run: nothing is changed, and an event of the Service lists the plan. The deletion of the Service is not affected.",
			Parse:   func(w *settings, v string) (err error) { w.DryRun, err = service.Bool(v); return err },
		},
		{
			Name:    "ip-associated-by-controller",
			Value:   "true",
			Example: "true",
			Help:    "Set by the original controller when it associated the requested address. The address is adopted, and released with the Service.",
		},
	},
}

// algorithms returns the algorithms of load balancer rules.
func algorithms() []string { return []string{"roundrobin", "leastconn", "source"} }

func prefixes(s string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, x := range service.List(s) {
		p, err := netip.ParsePrefix(x)
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR", x)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

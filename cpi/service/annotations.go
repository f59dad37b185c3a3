// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Dialect reads the cloud-specific parts of a Service, such as annotations.
type Dialect interface {
	// Names returns the cloud's names for the annotations and terms that the core uses.
	Names() Names
	// Read returns the settings in the annotations of a Service that apply to any cloud, and findings for invalid ones.
	Read(s *corev1.Service) (Settings, []loadbalancer.Finding)
	// SecretNames returns the Secrets in the namespace of a Service that [Dialect.Extend] reads.
	SecretNames(s *corev1.Service) []string
	// Extend adds the cloud-specific part of a request.
	Extend(in Input, request *Request)
}

// Names are the names that a cloud uses.
type Names struct {
	// OlderAddresses and OlderLocations are the annotations in which older builds stored the record of a Service
	// ([Record]). The core reads them once and removes them.
	OlderAddresses, OlderLocations string
	// Location is the annotation that selects the location. Noun is the cloud's term for a location.
	Location, Noun string
	// LocationID matches the IDs of locations. Nil means that any text may be an ID.
	LocationID *regexp.Regexp
}

// Settings are the settings in annotations that apply to any cloud.
type Settings struct {
	Addresses []netip.Addr // by name
	Location  string       // empty: the default one
	Share     string       // [loadbalancer.Desired.Share]
	Keep      bool         // [Desired.Keep]
	DryRun    bool
}

// An Annotation is an annotation that users may set on a Service. W is the type that the annotations of a cloud are
// parsed into.
type Annotation[W any] struct {
	Name    string // without the prefix
	Value   string // description of the syntax
	Example string
	Help    string // description in the reference page
	// Parse parses a value into w. It is nil for an annotation of another program.
	Parse func(w *W, value string) error
}

// Annotations are all annotations of a cloud. Their names begin with a prefix.
type Annotations[W any] struct {
	Prefix string
	Table  []Annotation[W]
	// Older are the names, without the prefix, of annotations in which older builds stored their records.
	Older []string
}

// Read parses the annotations of the table, and returns findings for invalid ones.
func (t Annotations[W]) Read(all map[string]string) (w W, wrong []loadbalancer.Finding) {
	for _, a := range t.Table {
		value := strings.TrimSpace(all[t.Prefix+a.Name])
		if value == "" || a.Parse == nil {
			continue
		}
		if err := a.Parse(&w, value); err != nil {
			wrong = append(wrong, finding(InvalidAnnotation, "the annotation %s is invalid: %v; expected %s, such as %q",
				t.Prefix+a.Name, err, a.Value, a.Example))
		}
	}
	return w, wrong
}

// Unknown returns a finding for each annotation with the prefix that is not in the table.
func (t Annotations[W]) Unknown(all map[string]string) []loadbalancer.Finding {
	var out []loadbalancer.Finding
	for name := range all {
		rest, ours := strings.CutPrefix(name, t.Prefix)
		if slices.Contains(t.Older, rest) {
			continue
		}
		if ours && !slices.ContainsFunc(t.Table, func(a Annotation[W]) bool { return a.Name == rest }) {
			out = append(out, finding(InvalidAnnotation,
				"the annotation %s is unknown and ignored: correct its name or remove it", name))
		}
	}
	slices.SortFunc(out, func(a, b loadbalancer.Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}

func finding(reason, format string, args ...any) loadbalancer.Finding {
	return loadbalancer.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Bool parses true or false, in any case.
func Bool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// List splits a list at commas. It trims spaces and drops empty elements.
func List(s string) []string {
	var out []string
	for x := range strings.SplitSeq(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}

// Addresses parses a list of addresses with at most one address per family.
func Addresses(s string) ([]netip.Addr, error) {
	seen := map[loadbalancer.Family]bool{}
	return each(s, func(x string) (netip.Addr, error) {
		a, err := netip.ParseAddr(x)
		if err != nil {
			return a, fmt.Errorf("%q is not an address", x)
		}
		f := loadbalancer.FamilyOf(a)
		if seen[f] {
			return a, fmt.Errorf("it has more than one %s address", f)
		}
		seen[f] = true
		return a.Unmap(), nil
	})
}

// Ports parses a list of ports.
func Ports(s string) ([]int, error) { return each(s, port) }

func each[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, x := range List(s) {
		value, err := parse(x)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

func port(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return n, nil
}

// PerPort parses a list of elements of the form port=value.
func PerPort(s string) (map[int]string, error) {
	out := map[int]string{}
	for _, x := range List(s) {
		number, value, ok := strings.Cut(x, "=")
		n, err := port(strings.TrimSpace(number))
		if value = strings.TrimSpace(value); !ok || value == "" || err != nil {
			return nil, fmt.Errorf("%q is not port=value", x)
		}
		out[n] = value
	}
	return out, nil
}

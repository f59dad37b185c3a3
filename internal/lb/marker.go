// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// markerWord is the first word of a marker, also on virtual machines and vApps, so that one search finds all
	// objects of a cluster.
	markerWord = "cluster-api-provider-vcd"

	// maxDescription is the maximum length of a description that all kinds of objects support.
	maxDescription = 255
)

// Via is the way in which clients reach a virtual service.
type Via string

// Ways to reach a virtual service.
const (
	// ViaItself is directly on its address.
	ViaItself Via = ""
	// ViaNAT is through a DNAT rule.
	ViaNAT Via = "nat"
	// ViaInside is directly on an address inside the organization.
	ViaInside Via = "inside"
)

// A Marker is the ownership marker of an object. The request that creates the object already contains it in the
// description.
type Marker struct {
	Owner loadbalancer.Owner
	// Listener is the key of the listener that the object serves, such as tcp-443; empty for objects that serve all
	// listeners.
	Listener string
	// Via is the way in which clients reach a virtual service.
	Via Via
	// Filtered is set on a virtual service if firewall rules admit only some sources.
	Filtered bool
	// Forwarded is set on a virtual service that was reached through DNAT rules, which may still exist.
	Forwarded bool
	// Gateway is set on an IP set: a hash of the ID of its gateway. In a VDC group, IP sets of all gateways belong to
	// the group.
	Gateway string
	// Share is the key under which the owner shares its address with other Services; empty if it does not.
	Share string
	// Probe is the monitor that was written to a pool, if it is not the default monitor of the listener.
	Probe Monitor
	// Checked is set on a pool that has, or is about to get, a health monitor with its own settings.
	Checked bool
	// Wrote is a short hash of the last written content that lists do not show; empty if lists show everything. With
	// it, an object that was not read in full can be compared with the desired state.
	Wrote string
}

// String returns the marker in the form in which descriptions contain it. If it would be too long, it omits the name of
// the Service.
func (m Marker) String() string {
	s := m.words(true)
	if len(s) > maxDescription {
		s = m.words(false)
	}
	return s
}

func (m Marker) words(named bool) string {
	words := []string{markerWord, "cluster=" + m.Owner.Cluster}
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+value)
		}
	}
	switch {
	case m.Owner.IsEndpoint():
		add("endpoint=", m.Owner.Name)
	case named && m.Owner.Name != "":
		words = append(words, "service="+m.Owner.Namespace+"/"+m.Owner.Name)
		fallthrough
	default:
		add("uid=", m.Owner.UID)
	}
	add("port=", m.Listener)
	add("via=", string(m.Via))
	if m.Filtered {
		words = append(words, "filtered=yes")
	}
	if m.Forwarded {
		words = append(words, "forwarded=yes")
	}
	add("gateway=", m.Gateway)
	add("share=", m.Share)
	add("wrote=", m.Wrote)
	add("probe=", string(m.Probe))
	if m.Checked {
		words = append(words, "check=own")
	}
	return strings.Join(words, " ")
}

// widestMarker returns the longest marker that the objects of a load balancer may need.
func widestMarker(d Desired) Marker {
	return Marker{
		Owner:     d.Owner,
		Share:     d.Share,
		Listener:  "tcp-65535",
		Via:       ViaInside,
		Filtered:  true,
		Forwarded: true,
		Wrote:     short(),
	}
}

// roundTrips reports whether a marker is parsed as it was written. An object with an unrecognized marker has no owner.
func (m Marker) roundTrips() bool {
	s := m.String()
	got, ok := ParseMarker(s)
	return ok && len(s) <= maxDescription && got.words(false) == m.words(false)
}

// ParseMarker finds the marker in a description. Users may add text before and after it. It returns false if there is
// no marker, if it is the marker of a machine, or if two markers name different owners: an object with two owners has
// none.
func ParseMarker(description string) (Marker, bool) {
	words := strings.Fields(description)
	var found Marker
	ok := false
	for i, word := range words {
		if word != markerWord {
			continue
		}
		m, isOurs := parseWords(words[i+1:])
		switch {
		case !isOurs:
			return Marker{}, false
		case ok && !m.Owner.Is(found.Owner):
			return Marker{}, false
		}
		found = m
		ok = true
	}
	return found, ok
}

// parseWords parses the words after the first one of a marker, up to the first unknown word. It returns false for the
// marker of a machine.
func parseWords(words []string) (Marker, bool) {
	var m Marker
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		field, known := markerFields[key]
		if key == "machine" {
			return Marker{}, false
		}
		if !known {
			break
		}
		field(&m, value)
	}
	return m, m.Owner.Cluster != ""
}

var markerFields = map[string]func(m *Marker, value string){
	"cluster": func(m *Marker, v string) { m.Owner.Cluster = v },
	"service": func(m *Marker, v string) { m.Owner.Namespace, m.Owner.Name, _ = strings.Cut(v, "/") },
	"uid":     func(m *Marker, v string) { m.Owner.UID = v },
	// Programs that do not recognize this word stop here, and consider the object one of the whole cluster.
	"endpoint": func(m *Marker, v string) {
		m.Owner.Name = v
		m.Owner.UID = v
	},
	"port":     func(m *Marker, v string) { m.Listener = v },
	"via":      func(m *Marker, v string) { m.Via = Via(v) },
	"filtered": func(m *Marker, v string) { m.Filtered = v == "yes" },
	"share":    func(m *Marker, v string) { m.Share = v },
	"wrote":    func(m *Marker, v string) { m.Wrote = v },
	"probe":    func(m *Marker, v string) { m.Probe = Monitor(v) },
	"check":    func(m *Marker, v string) { m.Checked = v == "own" },
	"gateway":  func(m *Marker, v string) { m.Gateway = v },

	"forwarded": func(m *Marker, v string) { m.Forwarded = v == "yes" },
}

// For reports whether an object belongs to a gateway, according to its marker.
func (m Marker) For(gateway string) bool { return m.Gateway == "" || m.Gateway == short(gateway) }

// describe writes the marker into a description in place of the old marker, and keeps text of users. It does not change
// a description with an equal marker.
func describe(old string, m Marker) string {
	if got, ok := ParseMarker(old); ok && got.words(false) == m.words(false) {
		return old
	}
	var kept []string
	words := strings.Fields(old)
	for i := 0; i < len(words); i++ {
		if words[i] != markerWord {
			kept = append(kept, words[i])
			continue
		}
		for i+1 < len(words) && markerKey(words[i+1]) {
			i++
		}
	}
	s := strings.Join(append([]string{m.String()}, kept...), " ")
	if len(s) > maxDescription {
		return m.String()
	}
	return s
}

func markerKey(word string) bool {
	key, _, _ := strings.Cut(word, "=")
	_, known := markerFields[key]
	return known
}

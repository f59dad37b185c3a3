// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// namedID is an id of a cluster in a name: as cloud provider interface 1.6.1 shortens it, or in full, as Cluster API
// Provider Cloud Director 1.3 writes it. A bare UUID could be anything.
var namedID = regexp.MustCompile(
	`(?:urn:vcloud:entity:vmware:)?capvcdCluster:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|` +
		`NO_RDE_[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)

// A Writer is the program that wrote an object.
type Writer string

// Writers.
const (
	// WriterThis is this provider, or its cloud controller manager.
	WriterThis Writer = "this provider"
	// WriterCPI is VMware's cloud provider interface.
	WriterCPI Writer = "CPI"
	// WriterCAPVCD is VMware's Cluster API provider.
	WriterCAPVCD Writer = "CAPVCD"
)

// ClusterOf returns the id of the cluster that an object is of, whichever that is, as its marker or name says; empty if
// neither does. It knows fewer objects than [OwnerOf], which is asked with an id.
func ClusterOf(kind loadbalancer.Kind, name, description string) (cluster string, by Writer) {
	if m, ok := ParseMarker(description); ok {
		return m.Owner.Cluster, WriterThis
	}
	if strings.Contains(description, markerWord) {
		return "", "" // Two owners have none.
	}
	switch kind {
	case KindAddress:
		return clusterIn(description, "cluster-", "-namespace-")
	case KindPool, KindService, KindRule, KindProfile:
		return clusterIn(name, prefixes[kind], "")
	default: // VMware's programs make no other.
		return "", ""
	}
}

// clusterIn finds the one id in a text that VMware's programs wrote. What the CPI writes begins and goes on as given.
func clusterIn(text, prefix, after string) (cluster string, by Writer) {
	found := namedID.FindAllString(text, -1)
	if len(found) != 1 {
		return "", ""
	}
	id := found[0]
	if strings.HasPrefix(id, "capvcdCluster:") {
		id = oldClusterPrefixes[0] + id
	}
	switch _, rest, _ := strings.Cut(text, found[0]); {
	case strings.HasPrefix(text, prefix) && strings.HasPrefix(rest, after):
		return id, WriterCPI
	case rest == "-tcp", after != "" && rest == "":
		return id, WriterCAPVCD
	}
	return "", ""
}

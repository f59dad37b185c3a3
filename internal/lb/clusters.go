// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// namedID matches the ID of a cluster in a name: shortened as in cloud provider interface 1.6.1, or in full as in
// Cluster API Provider Cloud Director 1.3. A bare UUID could be anything.
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

// ClusterOf returns the ID of the cluster of an object, according to its marker or name, or an empty string. The
// cluster may be any cluster. ClusterOf recognizes fewer objects than [OwnerOf], whose caller provides the ID.
func ClusterOf(kind loadbalancer.Kind, name, description string) (cluster string, by Writer) {
	if m, ok := ParseMarker(description); ok {
		return m.Owner.Cluster, WriterThis
	}
	if strings.Contains(description, markerWord) {
		return "", "" // An object with two owners has none.
	}
	switch kind {
	case KindAddress:
		return clusterIn(description, "cluster-", "-namespace-")
	case KindPool, KindService, KindRule, KindProfile:
		return clusterIn(name, prefixes[kind], "")
	default: // VMware's programs create no other kinds.
		return "", ""
	}
}

// clusterIn finds the only ID in a text that VMware's programs wrote. prefix and after are the texts around the ID in
// objects of the CPI.
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

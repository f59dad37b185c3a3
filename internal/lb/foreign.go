// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"slices"
	"strings"
)

// maxListed is the maximum number of names in a message.
const maxListed = 4

// reportForeign reports objects that may belong to the owner, and objects of the owner under another ID of its cluster.
// An owner that has only the latter gets no load balancer: it would use another address, and the existing one would
// never be removed.
func reportForeign(in input) outcome {
	out := in.outcome()
	if len(in.owned.doubtful) > 0 {
		out.notice(OwnershipUnverified, "objects that cloud provider interface 1.6.1 created for a Service of this name may belong to a Service in another namespace or in a cluster with a similar ID, so they are not changed: %s; remove them in VCD if no Service needs them", listed(in.owned.doubtful))
	}
	strays := in.observed.Strays
	if len(strays) == 0 {
		return out
	}
	var names []string
	for _, s := range strays {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	text := fmt.Sprintf("this Service has objects with another cluster ID, %q: %s", strays[0].Cluster,
		listed(slices.Compact(names)))
	if !in.desired.Absent && len(in.owned.services)+len(in.owned.pools) == 0 {
		out.refuse(ClusterIDMismatch, "%s; restore this cluster ID in the cloud controller manager, or remove the objects in VCD, to create a load balancer",
			text)
		return out
	}
	out.notice(ClusterIDMismatch, "%s; remove the objects in VCD, because they are not removed automatically", text)
	return out
}

// listed returns a text with the first names.
func listed(names []string) string {
	more := ""
	if n := len(names) - maxListed; n > 0 {
		names = names[:maxListed]
		more = fmt.Sprintf(" and %d more", n)
	}
	return `"` + strings.Join(names, `", "`) + `"` + more
}

// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"fmt"
	"strings"
)

// meminfo is /proc/meminfo as a VM with so much memory sees it: kubelet reads there what the node has.
func meminfo(host string, mebibytes int64) string {
	var out strings.Builder
	for line := range strings.Lines(host) {
		field, _, _ := strings.Cut(line, ":")
		switch field {
		case "MemTotal", "MemFree", "MemAvailable":
			fmt.Fprintf(&out, "%-16s%8d kB\n", field+":", mebibytes<<10)
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

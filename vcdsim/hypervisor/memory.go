// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"fmt"
	"strings"
)

// meminfo returns /proc/meminfo for a VM with this amount of memory. kubelet reads the capacity of the node from it.
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

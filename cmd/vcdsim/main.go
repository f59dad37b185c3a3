// SPDX-License-Identifier: Apache-2.0

// Command vcdsim runs a simulated VMware Cloud Director.
package main

import (
	"os"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/program"
)

func main() { os.Exit(program.Main(program.Plain{})) }

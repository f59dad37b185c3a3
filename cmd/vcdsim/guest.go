package main

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"

// bootHook is what runs in the VMs: nothing, so that every VM comes up.
func bootHook() vcdsim.Guest { return nil }

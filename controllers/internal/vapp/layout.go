// SPDX-License-Identifier: Apache-2.0

// Package vapp defines the layout of machines in vApps, and finds drivers in workload clusters that depend on it.
package vapp

import (
	"strconv"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// PerMachine reports whether each machine of a cluster has its own vApp.
func PerMachine(c *infrav1.VCDCluster) bool {
	return c.Spec.VApp.Layout == infrav1.VAppPerMachine
}

// Name returns the name of the vApp that all machines of the cluster share.
func Name(c *infrav1.VCDCluster, clusterName string) string {
	if c.Spec.VApp.Name != "" {
		return c.Spec.VApp.Name
	}
	return clusterName
}

// MaxVMs is the maximum number of VMs in a vApp, according to VMware's documentation.
const MaxVMs = 128

// maxName is the maximum length of a vApp's name.
const maxName = 128

// Numbered returns the name of the n-th vApp of a cluster, given the name of the first. A cluster gets another vApp
// when the last one is full.
func Numbered(first string, n int) string {
	if n <= 1 {
		return first
	}
	suffix := "-" + strconv.Itoa(n)
	return first[:min(len(first), maxName-len(suffix))] + suffix
}

// LegacyDrivers is the message of a problem. Its argument lists the drivers in the workload cluster.
const LegacyDrivers = "Layout PerMachine is not compatible with drivers in the workload cluster that search a single vApp for nodes: %s. Replace or remove them, or recreate the cluster with layout PerFailureDomain"

// LegacyDriversInZones is the message of a problem. Its argument lists the drivers in the workload cluster.
const LegacyDriversInZones = "The cluster has a vApp in each of several zones, but drivers in the workload cluster search a single vApp for nodes: %s. Replace or remove them, or recreate the cluster in one zone"

// LegacyDriversFull is the message of a problem. Its argument lists the drivers in the workload cluster.
const LegacyDriversFull = "The vApp is full, and drivers in the workload cluster search a single vApp for nodes: %s. Replace or remove them, or delete machines"

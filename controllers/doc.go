// Package controllers makes VMware Cloud Director look like the Cluster API objects: it reconciles identities,
// VCDClusters and VCDMachines.
//
// Every reconciler runs a list of phases. A phase looks, asks VCD for at most one thing, and comes back; it never
// waits. What is known of VCD beyond the objects is remembered in memory, and losing it costs a read, never a
// VM. The package speaks to VCD through small interfaces over internal/vcd and knows nothing of its wire format.
package controllers

// SPDX-License-Identifier: Apache-2.0

// Package inplace serves the hooks by which Cluster API updates machines in place. They answer from the request alone:
// the package sends no requests, to the API server or to VCD. The reconciler of VCDMachines changes the VMs.
package inplace

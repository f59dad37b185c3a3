// SPDX-License-Identifier: Apache-2.0

// Package vcd is the backend of the cloud controller manager for VMware Cloud Director: the machines of the cluster
// from one query for all of them, and the session that everything of the backend shares.
package vcd

// ProviderName is the name of the provider, and the scheme of provider IDs. It is that of VMware's CPI.
const ProviderName = "vmware-cloud-director"

// SPDX-License-Identifier: Apache-2.0

// Package vcd is the backend of the cloud controller manager for VMware Cloud Director. It reads all machines of the
// cluster with one query, implements load balancers on edge gateways, and shares one session.
package vcd

// ProviderName is the name of the provider, and the scheme of provider IDs. It is that of VMware's CPI.
const ProviderName = "vmware-cloud-director"

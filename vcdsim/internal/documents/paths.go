// SPDX-License-Identifier: Apache-2.0

package documents

// AssignmentPath is the path of assignments of service engine groups to gateways.
const AssignmentPath = "1.0.0/loadBalancer/serviceEngineGroups/assignments"

// PoolPath is the path of load balancer pools.
const PoolPath = "1.0.0/loadBalancer/pools"

// MonitorPath is the path of health monitors with their own settings.
const MonitorPath = "1.0.0/loadBalancer/healthMonitors"

// ServicePath is the path of virtual services.
const ServicePath = "1.0.0/loadBalancer/virtualServices"

// IPsecPath is the path of the IPsec VPN tunnels of a gateway.
const IPsecPath = "1.0.0/edgeGateways/{gateway}/ipsec/tunnels"

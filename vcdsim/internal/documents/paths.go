// SPDX-License-Identifier: Apache-2.0

package documents

// AssignmentPath is where assignments of service engine groups to gateways are.
const AssignmentPath = "1.0.0/loadBalancer/serviceEngineGroups/assignments"

// PoolPath is where the pools of load balancers are.
const PoolPath = "1.0.0/loadBalancer/pools"

// ServicePath is where virtual services are.
const ServicePath = "1.0.0/loadBalancer/virtualServices"

// IPsecPath is where the IPsec VPN tunnels of a gateway are.
const IPsecPath = "1.0.0/edgeGateways/{gateway}/ipsec/tunnels"

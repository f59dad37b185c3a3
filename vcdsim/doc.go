// SPDX-License-Identifier: Apache-2.0

// Package vcdsim simulates VMware Cloud Director over real HTTPS: sessions, organizations, VDCs, networks,
// catalogs, vApps, VMs, independent disks, tasks and the query service, with VCD's wire format, its asynchronous
// tasks, its busy entities, its refusals and its leases. A simulated VM that is powered on is handed to a Guest,
// which decides from the VM's own configuration whether it boots and which addresses it uses.
//
// It is a library (New, Start, State; package vcdsimtest for tests) and, as cmd/vcdsim, a program. It shares no code
// with any client of VCD, so that a client's mistake cannot hide in it. What could not be verified on a real VCD is a
// field of Assumptions.
//
// The frontend (server.go) serves a request: fault rules, session, API version, then the handler under the simulator's
// lock. Each noun has a file that begins with its routes; a handler is a function of the request, such as getVM, and of
// what the request is about, which a finder such as ownVM or idleVM looks up and checks first. What several clients can
// see at once is in the store. A handler changes it directly or starts a task, whose operation (operations.go) changes
// it when the task ends: tasks, alarms, guests, leases, vapps, vms, ipam, edges, spaces and alb of Simulator do that, a
// type per noun. Objects of the JSON API that have no behaviour of their own are a collection of documents, or a
// setting.
package vcdsim

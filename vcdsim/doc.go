// SPDX-License-Identifier: Apache-2.0

// Package vcdsim simulates VMware Cloud Director over real HTTPS: sessions, organizations, VDCs, networks, catalogs,
// vApps, VMs, independent disks, tasks and the query service, with VCD's wire format, asynchronous tasks, busy
// entities, refusals and leases. A simulated VM that is powered on is passed to a Guest. The guest decides from the
// configuration of the VM whether it boots and which addresses it uses.
//
// It is a library (New, Start, State; package vcdsimtest for tests) and, as cmd/vcdsim, a program. It shares no code
// with any client of VCD, so that it cannot hide a client's mistake. Details that could not be verified on a real VCD
// are fields of Assumptions.
//
// The frontend (internal/frontend) serves a request: fault rules, session, API version, then the handler under the
// lock. The simulated site is a cloud (internal/cloud): the store, and the tasks, alarms and guests that change it.
// Nouns have separate packages, such as internal/compute for vApps and VMs. Each package lists its routes, operations,
// collections and settings as values; routes.go, operations.go and collections.go combine them. A handler is a function
// of the request (internal/api) and of its object, which a finder such as compute.OwnVM looks up and checks first. It
// changes the store directly or starts a task, whose operation changes the store when the task ends. Objects of the
// JSON API without special behavior are stored as collections of documents or as settings (internal/documents).
package vcdsim

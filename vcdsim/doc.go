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
// The frontend (internal/frontend) serves a request: fault rules, session, API version, then the handler under the
// lock. What is simulated is a cloud (internal/cloud): the store, and tasks, alarms and guests that change it. Nouns
// have packages of their own, such as internal/compute for vApps and VMs. Each lists its routes, operations,
// collections and settings as values; routes.go, operations.go and collections.go put these together. A handler is a
// function of the request (internal/api) and of what the request is about, which a finder such as compute.OwnVM looks
// up and checks first. It changes the store directly or starts a task, whose operation changes it when the task ends.
// Objects of the JSON API that have no behaviour of their own are a collection of documents, or a setting
// (internal/documents).
package vcdsim

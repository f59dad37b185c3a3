// Package vcdsim simulates VMware Cloud Director over real HTTPS: sessions, organisations, VDCs, networks,
// catalogs, vApps, VMs, independent disks, tasks and the query service, with VCD's wire format, its asynchronous
// tasks, its busy entities, its refusals and its leases. A simulated VM that is powered on is handed to a Guest,
// which decides from the VM's own configuration whether it boots and which addresses it uses.
//
// It is a library (New, Start, State; package vcdsimtest for tests) and, as cmd/vcdsim, a program. It shares no code
// with any client of VCD, so that a client's mistake cannot hide in it. What could not be verified on a real VCD is a
// field of Assumptions.
package vcdsim

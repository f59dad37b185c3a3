// SPDX-License-Identifier: Apache-2.0

// Command soak lets many clusters live at random on simulated sites while faults and crashes happen, and judges that
// nothing is lost and nothing is left. `make soak` runs it. It consists of:
//   - a plan (plan.go): all actions of a run with their times. The seed determines it.
//   - a world (world.go, site.go): simulated sites, and a management cluster with two managers.
//   - actions (cluster.go, disturb.go): the changes by users, and the disturbances.
//   - judges: watch.go while the run lasts, settle.go at its end, samples.go for growth.
//
// The clocks of the sites run faster than real time, by -pace. The managers, Cluster API and the guests use real time.
package main

// SPDX-License-Identifier: Apache-2.0

// Package terraform runs VMware's Terraform provider against vcdsim, for each preset that has a tenant: it applies a
// configuration, wants an empty plan, changes it, imports it, destroys it, and compares what is left with what was
// there before.
//
// The provider and OpenTofu are built from their Go modules, which the folders provider and opentofu pin, once, into the
// cache of the test stack. Terraform itself cannot be built as a Go module: its go.mod replaces modules by folders that
// the module does not have. The environment variable TERRAFORM names another program to run.
package terraform

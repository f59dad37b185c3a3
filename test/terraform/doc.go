// SPDX-License-Identifier: Apache-2.0

// Package terraform runs VMware's Terraform provider against vcdsim, for each preset with a tenant: it applies a
// configuration, expects an empty plan, changes, imports and destroys the configuration, and compares the final state
// of the simulator with the initial one.
//
// The provider and OpenTofu are built once from Go modules, which the folders provider and opentofu pin, into the cache
// of the test stack. Terraform itself cannot be built as a Go module, because its go.mod replaces modules by folders
// that the module does not contain. The environment variable TERRAFORM selects another program.
package terraform
